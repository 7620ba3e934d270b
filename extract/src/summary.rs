//! Summarizes a spider in a few lines.

use trawl_common::events::Pattern;
use trawl_common::frontier::{DedupScope, Recrawl};
use trawl_common::schedule::Schedule;
use trawl_common::settings::SinkSettings;
use trawl_common::spider::arguments::Declaration;
use trawl_common::spider::{
    Field, FieldSource, Follow, Handler, ItemRule, Kind, Mode, Proxies, ProxyPer, ProxyUse, Render, Required,
    Session, Spider,
};
use trawl_common::text::{counted, printable};
use trawl_common::time::UnixMs;

use crate::summary_of_pages::either;
use crate::{Examined, summary_of_pages};

/// Number of schedule instants that are named.
const MAX_INSTANTS: usize = 3;

impl Examined {
    /// Returns the summary as pairs of a word and its text. Empty for a file with mistakes.
    pub fn summary(&self) -> Vec<(&'static str, String)> {
        let Some(ready) = &self.ready else { return Vec::new() };
        let spider = &self.reading.spider;
        let given = self.reading.arguments.iter().map(|(name, declared)| ("given", argument(name, declared)));
        let mut lines: Vec<_> = given.collect();
        lines.push(("starts", starts(spider)));
        lines.push(("takes", takes(spider)));
        lines.push(("follows", spider.follow.as_ref().map_or(follows_nothing(spider).to_owned(), follows)));
        lines.push(("obeys", self.obeys()));
        lines.extend(
            spider.max_pages.map(|pages| ("ends", format!("after {}", counted(pages.get(), "page")))),
        );
        lines.push(("dedups", dedups(spider.dedup)));
        lines.extend(spider.schedule.as_ref().map(|schedule| ("runs", runs(schedule))));
        lines.extend(spider.session.as_ref().map(|session| ("session", of_session(spider, session))));
        lines.extend(spider.proxies.as_ref().map(|proxies| ("asks", through(proxies))));
        lines.extend(renders(spider.render).map(|which| ("renders", which.to_owned())));
        lines.extend(summary_of_pages::steps(&spider.steps).map(|steps| ("steps", steps)));
        lines.extend(spider.handler.as_ref().map(|handler| ("program", program(handler))));
        let reads = if spider.page_handler().is_some() {
            "each page by its program"
        } else {
            lines.extend(spider.pages.iter().map(|kind| ("page", summary_of_pages::page(kind))));
            lines.extend(spider.paginate.iter().map(|one| ("lists", summary_of_pages::list(one))));
            lines.extend(spider.items.iter().map(|rule| ("items", items(rule))));
            lines.extend(
                spider.downloads.iter().map(|one| ("files", summary_of_pages::download(spider, one))),
            );
            lines.extend(spider.hand_overs.iter().map(|one| ("hands to", summary_of_pages::hand_over(one))));
            if ready.extractor.needs_tree() { "a tree of each page" } else { "each page as a stream" }
        };
        lines.push(("reads", reads.to_owned()));
        let sinks = spider.sinks.iter().flatten().map(sends_to);
        lines.extend(sinks.map(|sink| ("sends to", sink.replace("{spider}", spider.name.as_str()))));
        lines.extend(spider.webhooks.iter().map(|webhook| {
            let events: Vec<&str> = webhook.events.iter().map(Pattern::as_str).collect();
            ("tells", format!("{} of {}", webhook.url, events.join(", ")))
        }));
        lines
    }

    /// Returns the summary in one line.
    pub fn in_one_line(&self) -> String {
        if self.ready.is_none() {
            let mistakes = self.reading.mistakes.len() as u64;
            return format!("{}: see `trawl spider check`", counted(mistakes, "mistake"));
        }
        let spider = &self.reading.spider;
        let links = if spider.follow.is_some() { "follows links" } else { "follows no links" };
        format!("{}, {links}", starts(spider))
    }

    /// Returns warnings about settings that are valid but probably not intended, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let spider = &self.reading.spider;
        // `dedup = "spider"` is meant; `recrawl = "never"` stands in the example.
        let is_meant = spider.dedup == Some(DedupScope::Spider);
        let finds_little = spider.schedule.is_some() && spider.recrawl().is_never() && !is_meant;
        let seen = "schedule: each of its crawls leaves out what earlier ones have seen, pages that it starts from among them: set `recrawl` \
                    (as \"changed\") or `dedup` (as \"crawl\"), unless its sources name new URLs each time";
        let done = "schedule: its first crawl alone does the `tasks` of [start], which later ones have seen: set `dedup` (as \"crawl\")";
        let has_tasks = !spider.start.tasks.is_empty();
        let is_compared =
            spider.tracks() && !matches!(spider.dedup, None | Some(DedupScope::Spider | DedupScope::Crawl));
        let fetched = "page: with `carry` or `from` each crawl fetches its pages whole: `dedup` by age and `recrawl` hold for none of them";
        let warnings = [(finds_little, seen), (finds_little && has_tasks, done), (is_compared, fetched)];
        warnings.into_iter().filter(|(holds, _)| *holds).map(|(_, warning)| warning.to_owned()).collect()
    }

    fn obeys(&self) -> String {
        match self.robots.name() {
            None => "no robots.txt".to_owned(),
            Some(name) => format!("robots.txt as it speaks to `{name}`"),
        }
    }
}

/// `category (what is sold) = shoes`
fn argument(name: &str, Declaration { value, help, .. }: &Declaration) -> String {
    let help = help.as_ref().map(|help| format!(" ({})", printable(help, 200))).unwrap_or_default();
    let value =
        value.as_ref().map_or_else(|| ", which must be given".to_owned(), |value| format!(" = {value}"));
    format!("{name}{help}{value}")
}

/// Describes the URLs that its crawls take for seen.
fn dedups(dedup: Option<DedupScope>) -> String {
    let by = |dedup| match dedup {
        DedupScope::Spider => "what any of its crawls has seen".to_owned(),
        DedupScope::Crawl => "what the crawl itself has seen".to_owned(),
        DedupScope::Age(age) => format!(
            "what the crawl itself has seen, and what was fetched less than {} ago",
            humantime::format_duration(age)
        ),
        DedupScope::Recrawl(recrawl) => match recrawl {
            Recrawl::Never => "what any of its crawls has seen".to_owned(),
            recrawl => {
                format!("what the crawl itself has seen; fetches again what was crawled before: {recrawl}")
            }
        },
    };
    match dedup {
        Some(dedup) => format!("by {}", by(dedup)),
        None => format!(
            "by {}; a crawl that is asked for by the API, the console or as a job: by {}",
            by(DedupScope::Spider),
            by(DedupScope::Crawl)
        ),
    }
}

fn starts(spider: &Spider) -> String {
    let start = &spider.start;
    let lists = [
        (start.urls.len(), "URL"),
        (start.requests.len(), "request"),
        (start.csv.len(), "CSV file"),
        (start.tasks.len(), "task"),
        (start.sitemaps.len(), "sitemap"),
        (start.robots.len(), "robots.txt"),
    ];
    let parts: Vec<_> = lists
        .into_iter()
        .filter(|(length, _)| *length > 0)
        .map(|(length, name)| counted(length as u64, name))
        .collect();
    if parts.is_empty() { "where a command says".to_owned() } else { format!("from {}", parts.join(", ")) }
}

fn of_session(spider: &Spider, session: &Session) -> String {
    let steps = spider.login.as_ref().map_or(0, |login| login.steps.len() as u64);
    let login =
        if steps > 0 { format!("logs in by {}", counted(steps, "step")) } else { "cookies alone".to_owned() };
    let share = session.share.as_ref().map(|share| format!(", shared by the name {share}"));
    format!("{login}{}", share.unwrap_or_default())
}

/// `through 3 proxies, the same for a host`
fn through(Proxies { urls, per }: &Proxies) -> String {
    let same = match per {
        ProxyPer::Host => "the same for a host",
        ProxyPer::Spider => "the same for all hosts",
        ProxyPer::Request => "in turn",
    };
    format!("through {}, {same}", counted(urls.len() as u64, "proxy"))
}

fn takes(spider: &Spider) -> String {
    match spider.allowed_domains.as_slice() {
        [] => "URLs of any host".to_owned(),
        domains if domains.iter().any(|domain| domain == "*") => "URLs of any host".to_owned(),
        domains => format!("URLs of {}, and all below", domains.join(", ")),
    }
}

/// `0 3 * * * (Europe/Berlin): 2026-11-24T03:00:00+01:00, …`
fn runs(schedule: &Schedule) -> String {
    let instants = schedule.instants(UnixMs::now()).take(MAX_INSTANTS);
    let next: Vec<_> = instants.map(|instant| schedule.shown(instant)).collect();
    format!("{} ({}): {}", schedule.cron, schedule.timezone_name(), next.join(", "))
}

fn follows_nothing(spider: &Spider) -> &'static str {
    if spider.page_handler().is_some() { "what its program names" } else { "no links" }
}

/// Returns the pages that a browser renders, if it renders any.
fn renders(render: Render) -> Option<&'static str> {
    match render {
        Render::Never => None,
        Render::Always => Some("every page in a browser"),
        Render::Auto => Some("in a browser pages that lack a required field, or have scripts and no text"),
    }
}

/// `python3 run.py, once for each task, 10m and 1 GB at most, all its HTTP through the proxy`
fn program(handler: &Handler) -> String {
    let Handler { run, mode, timeout, concurrency, memory, proxy, .. } = handler;
    let mode = match mode {
        Mode::Once => "once for each task",
        Mode::Stream => "for all tasks and pages",
    };
    let proxy = match proxy {
        ProxyUse::Offer => "",
        ProxyUse::All => ", all its HTTP through the proxy",
        ProxyUse::None => ", without the proxy",
    };
    let run = printable(&run.join(" "), 200);
    let at_once = concurrency.map_or_else(String::new, |most| format!(", {most} at once on a worker"));
    let timeout = humantime::format_duration(*timeout);
    format!("{run}, {mode}, {timeout} and {memory} at most{at_once}{proxy}")
}

fn follows(follow: &Follow) -> String {
    let mut parts = Vec::new();
    if follow.links {
        parts.push(match follow.area.as_ref() {
            Some(area) => format!("links in `{area}`"),
            None => "links".to_owned(),
        });
    }
    parts.extend(follow.next.iter().map(|next| format!("`{next}`")));
    let mut what = parts.join(", ");
    for (patterns, word) in [(&follow.include, "with"), (&follow.exclude, "without")] {
        if !patterns.is_empty() {
            what += &format!(", {word} {}", either(patterns));
        }
    }
    format!("{what}, up to {} deep", follow.depth)
}

fn items(rule: &ItemRule) -> String {
    let name = rule.name.as_deref().map(|name| format!("{name}, ")).unwrap_or_default();
    let each = match &rule.each {
        Some(each) => format!("one for each `{each}`"),
        None => "one a page".to_owned(),
    };
    format!("{name}{each}: {}", fields(&rule.fields))
}

fn fields(fields: &[(String, Field)]) -> String {
    fields.iter().map(|(name, one)| field(name, one)).collect::<Vec<_>>().join(", ")
}

fn field(name: &str, field: &Field) -> String {
    if let FieldSource::Each(_, inner) = &field.from {
        return format!("{name} [{}]", fields(inner));
    }
    let mut notes = Vec::new();
    notes.extend(kind(field.kind));
    notes.extend(field.list.then_some("list"));
    notes.extend(match field.required {
        Required::No => None,
        Required::Warn => Some("required"),
        Required::Retry => Some("required, or tried again"),
        Required::Fail => Some("required, or failed"),
    });
    if notes.is_empty() { name.to_owned() } else { format!("{name} ({})", notes.join(", ")) }
}

/// Describes the type of a value, unless it is text, which is the default.
fn kind(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Text => None,
        Kind::Number => Some("number"),
        Kind::Integer => Some("integer"),
        Kind::Boolean => Some("boolean"),
        Kind::Date => Some("date"),
        Kind::Url => Some("url"),
        Kind::Html => Some("html"),
        Kind::Json => Some("json"),
    }
}

fn sends_to(sink: &SinkSettings) -> String {
    match sink {
        SinkSettings::Jsonl(lines) => format!("jsonl {}", lines.path.display()),
        SinkSettings::Csv(lines) => format!("csv {}", lines.path.display()),
        SinkSettings::Stream => "the stream `items`".to_owned(),
        SinkSettings::Postgres { url, .. } => format!("postgres {url}"),
        SinkSettings::Webhook { url, changed: true, .. } => format!("webhook {url}, what has changed"),
        SinkSettings::Webhook { url, .. } => format!("webhook {url}"),
        SinkSettings::Parquet(folder) => format!("parquet {}", folder.path.display()),
        SinkSettings::Warc(folder) => format!("warc {}", folder.path.display()),
    }
}
