//! Spider files: reads the text of a TOML file into a [`Spider`], and collects all its mistakes, each with its place.
//!
//! A file is read as far as possible, so that one pass finds every mistake. CSS selectors and paths are parsed when
//! extracting; here only their containing values are.

mod arguments;
mod ban;
mod download;
mod expect;
mod fields;
mod follow;
mod formats;
mod given;
mod hand_over;
mod handler;
mod login;
mod notes;
mod pages;
mod paginate;
mod patterns;
mod placeholders;
mod proxies;
mod quality;
mod request;
mod rows;
mod rules;
mod schedule;
mod secret;
mod section;
mod sinks;
mod start;
mod steps;
#[cfg(test)]
mod tests;
mod transform;
mod urls;
mod webhooks;

use std::collections::HashSet;

pub use self::arguments::with_arguments;
use self::given::Given;
use self::notes::Notes;
use self::section::Section;
use super::arguments::Declarations;
use super::{ItemRule, Origin, Render, Spider};
use crate::frontier::DedupScope;
use crate::mistake::{Mistake, Place};

/// The content of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The spider, without invalid settings, and without those that name unset variables or arguments.
    pub spider: Spider,
    /// The mistakes, in order.
    pub mistakes: Vec<Mistake>,
    /// The environment variables that are named and not set, and the arguments without a value, each with its place.
    pub unset: Vec<Mistake>,
    /// The declared arguments.
    pub arguments: Declarations,
    /// Memory size of its patterns in bytes.
    pub patterns: usize,
}

impl Reading {
    /// Returns the spider, if the file has no mistakes and nothing is unset.
    pub fn ready(self) -> Result<Spider, Vec<Mistake>> {
        let Self { spider, mut mistakes, unset, .. } = self;
        mistakes.extend(unset);
        mistakes.sort_by_key(|mistake| mistake.place);
        if mistakes.is_empty() { Ok(spider) } else { Err(mistakes) }
    }

    /// Like [`ready`](Self::ready), for a file that others will use: they know which environment variables are set.
    pub(crate) fn ready_elsewhere(mut self) -> Result<Spider, Vec<Mistake>> {
        let lacking = self.arguments.values().filter(|declared| declared.value.is_none());
        let lacking: Vec<Place> = lacking.map(|declared| declared.place).collect();
        self.unset.retain(|mistake| mistake.place.is_some_and(|place| lacking.contains(&place)));
        self.ready()
    }
}

/// Reads `text`, the file of a spider whose defaults are `usual`. Variables are looked up in `environment`. Settings
/// that a text from `origin` may not have are mistakes.
pub fn read(
    usual: Spider,
    text: &str,
    origin: Origin<'_>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Reading {
    let (notes, mut spider) = (Notes::new(text, origin, environment), usual);
    match notes.parse() {
        Ok(table) => {
            file(&mut spider, &notes, Section::new(&notes, String::new(), &table, 0..0));
            arguments::note_unused(&notes, &table);
        }
        Err(mistake) => notes.add(mistake),
    }
    let patterns = notes.patterns();
    let (mistakes, unset, arguments) = notes.into_lists();
    Reading { spider, mistakes, unset, arguments, patterns }
}

fn file(spider: &mut Spider, notes: &Notes<'_>, mut file: Section<'_>) {
    // First, because the rest refers to them.
    if let Some(arguments) = file.within(arguments::SECTION, |section| arguments::declarations(&section)) {
        notes.declare(arguments);
    }
    spider.allowed_domains = file.all("allowed_domains", start::allowed);
    spider.max_pages = file.read("max_pages", Given::positive);
    spider.dedup = dedup(&mut file);
    let domains = &spider.allowed_domains;
    spider.start = file.within("start", |section| start::start(section, domains)).unwrap_or_default();
    if let Some(given) = file.get(schedule::KEY) {
        spider.schedule = schedule::schedule(&given);
        schedule::note_lacking(&given, notes, &spider.start);
    }
    if let Some(urls) = file.within("urls", |section| urls::urls(section, &spider.urls)) {
        spider.urls = urls;
    }
    spider.follow = file.within("follow", follow::follow);
    spider.route = file.all("route", |given| Section::from_given(given).and_then(rules::route));
    spider.politeness = file.within("politeness", rules::politeness).unwrap_or_default();
    spider.retry = file.within("retry", rules::retry).unwrap_or_default();
    let has_home = !spider.home().is_empty() || notes.lacks_arguments();
    spider.request =
        file.within("request", |section| request::request(section, has_home)).unwrap_or_default();
    spider.render = file.read("render", render).unwrap_or_default();
    spider.ban = file.within("ban", ban::ban).unwrap_or_default();
    let start = file.get("start");
    spider.handler = file.within("handler", handler::handler).flatten();
    if let (Some(start), None, false) = (start, &spider.handler, spider.start.tasks.is_empty()) {
        start.wrong::<()>("its `tasks` need a program that does them: a [handler]");
    }
    spider.formats = formats::formats(&mut file);
    spider.used_for = file.all("used_for", used_for);
    let has_reader = spider.page_handler().is_some();
    if let Some(items) = items(&mut file, has_reader) {
        spider.items = items;
    }
    kinds_of_pages(&mut file, spider, has_reader);
    let is_rendered = spider.needs_browser();
    spider.steps = file.read("steps", |given| steps::steps(given, is_rendered)).unwrap_or_default();
    spider.downloads = download::downloads(&mut file, spider, has_reader);
    spider.hand_overs = hand_over::hand_overs(&mut file, spider, has_reader);
    spider.session = file.within("session", |section| login::session(section, has_home));
    login(&mut file, spider, has_reader);
    let given = file.get("proxies");
    spider.proxies =
        file.within("proxies", |section| proxies::proxies(section, spider.session.is_some())).flatten();
    if let (Some(given), Some(_)) = (given, &spider.request.proxy) {
        given.wrong::<()>("`request.proxy` names the only proxy: leave one of the two out");
    }
    let fields = expect::known(&spider.items);
    spider.expect = file.within("expect", |section| expect::expect(section, &fields)).unwrap_or_default();
    spider.quality = file.within("quality", |section| quality::quality(section, spider)).flatten();
    let given_sinks = file.get("sinks");
    spider.sinks = given_sinks
        .as_ref()
        .map(|given| given.all(|given| Section::from_given(given).and_then(sinks::sink)).unwrap_or_default());
    if let Some(given) = given_sinks {
        sinks::note_system_columns(&given, spider);
    }
    if let Some(given) = file.get("webhooks") {
        spider.webhooks = webhooks::webhooks(&given);
    }
    file.end();
}

/// Reads `render`: whether a browser renders pages.
fn render(given: &Given<'_>) -> Option<Render> {
    let render: Render = given.variant()?;
    match given.notes.is_tried() && render.needs_browser() {
        true => given.wrong("no browser runs where a spider is tried over HTTP"),
        false => Some(render),
    }
}

/// Reads `[login]`, with which a spider has a session.
fn login(file: &mut Section<'_>, spider: &mut Spider, has_reader: bool) {
    let session = spider.session.clone().unwrap_or_default();
    spider.login = file.within("login", |section| login::login(section, &session, has_reader)).flatten();
    if spider.login.is_some() {
        spider.session = Some(session);
    } else if session.headers.iter().any(|(_, value)| login::has_placeholder(value))
        && file.get("login").is_none()
        && let Some(given) = file.get("session")
    {
        given.wrong::<()>("headers: what they name comes from a log-in: add [login]");
    }
}

/// Reads a use of items, as pages name it.
fn used_for(given: &Given<'_>) -> Option<String> {
    let name = given.verbatim()?;
    match !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        true => Some(name.to_owned()),
        false => given.wrong("a use is a name such as `train-ai`, `search` or `tdm`"),
    }
}

/// Reads the dedup scope, if the file sets one.
fn dedup(file: &mut Section<'_>) -> Option<DedupScope> {
    let recrawl = file.read("recrawl", Given::parsed);
    let given = file.get("dedup");
    if let (Some(given), Some(_)) = (&given, &recrawl) {
        return given.wrong("`recrawl` says which URLs a crawl takes for seen: leave one of the two out");
    }
    DedupScope::said(given.as_ref().and_then(Given::parsed), recrawl)
}

/// Reads the kinds of items, if the file has any. `has_reader`: whether a program reads the pages.
fn items(file: &mut Section<'_>, has_reader: bool) -> Option<Vec<ItemRule>> {
    let fields = file.get("fields");
    let kinds = file.get("items");
    if has_reader {
        let why = "the program of [handler] reads the pages and yields the items: leave this out";
        for given in fields.iter().chain(&kinds) {
            given.wrong::<()>(why);
        }
        return Some(vec![ItemRule { name: None, each: None, fields: Vec::new(), page: None }]);
    }
    if let (Some(_), Some(kinds)) = (&fields, &kinds) {
        kinds.wrong::<()>("give either [fields], one item a page, or [[items]], not both");
    }
    if let Some(fields) = fields {
        let fields = Section::from_given(&fields).map(fields::fields).unwrap_or_default();
        return Some(vec![ItemRule { name: None, each: None, fields, page: None }]);
    }
    Some(fields::kinds(&kinds?, &mut HashSet::new()))
}

/// Reads the kinds of pages, whose items are those of the spider.
fn kinds_of_pages(file: &mut Section<'_>, spider: &mut Spider, has_reader: bool) {
    let (given, lists) = (file.get("page"), file.get("paginate"));
    if has_reader {
        for given in given.iter().chain(&lists) {
            given.wrong::<()>("the program of [handler] reads the pages and names the URLs: leave this out");
        }
        return;
    }
    if let Some(given) = &given {
        for other in file.get("fields").iter().chain(&file.get("items")) {
            other.wrong::<()>("with [[page]], items are those of kinds of pages: put this into one; one without `match`, the last, takes all other pages");
        }
        (spider.pages, spider.items) = pages::pages(given, spider.render);
    }
    spider.paginate = file.all("paginate", |given| paginate::paginate(given, &spider.pages));
}
