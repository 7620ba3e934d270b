//! Shows the result of one page, for people and as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use anstream::println;
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use trawl_cli::{count, counted};
use trawl_common::request::NewRequest;
use trawl_common::spider::{Carried, LinkVerdict, Required};
use trawl_common::text::printable;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{
    Extracted, Extraction, JudgedKind, JudgedLink, LinkKind, ListState, Rendering, Tried, Unfit,
};
use trawl_worker::TrialSession;

/// Maximum length of a displayed value.
const MAX_SHOWN: usize = 400;

/// A step that was taken in a page, and its time.
type StepTaken = (String, Duration);

/// The header fields that are shown to people.
const HEADERS: [&str; 6] =
    ["content-type", "last-modified", "etag", "cache-control", "x-robots-tag", "server"];

pub(super) fn print(
    url: &CanonicalUrl,
    tried: &Tried,
    took: Duration,
    (rendering, steps): (Option<Rendering>, &[StepTaken]),
    links: bool,
) {
    head(url, &tried.response, took);
    rendering.iter().for_each(|rendering| print_rendering(rendering, &tried.kinds));
    print_steps(steps);
    print_kinds(&tried.kinds);
    for item in &tried.extraction.items {
        print_item(item);
    }
    print_list(tried);
    let red = AnsiColor::Red.on_default();
    for missing in &tried.extraction.missing {
        let what = match missing.required {
            Required::Fail => ": the page fails",
            Required::Retry => ": the page is tried again",
            Required::Warn | Required::No => "",
        };
        println!("{red}missing{red:#} {}{what}", printable(&missing.field, MAX_SHOWN));
    }
    let yellow = AnsiColor::Yellow.on_default();
    for Unfit { field, value, reason, steps, is_cut } in &tried.extraction.unfit {
        let (word, field) = (if *is_cut { "cut" } else { "refused" }, printable(field, MAX_SHOWN));
        println!("{yellow}{word}{yellow:#} {field}: `{value}`: {reason}");
        steps.iter().for_each(|step| println!("        {step}"));
    }
    let followed = tried.links.iter().filter(|link| link.verdict == LinkVerdict::Follow).count();
    println!("{}, {} of them followed", counted(tried.links.len() as u64, "link"), count(followed as u64));
    if links {
        let (green, dim) = (AnsiColor::Green.on_default(), Style::new().dimmed());
        for JudgedLink { url, verdict, kind, request } in &tried.links {
            match verdict.why_not() {
                None if *kind == LinkKind::File => {
                    println!("  {green}keep  {green:#} {url}{}", asks(request.as_deref()))
                }
                None => println!("  {green}follow{green:#} {url}{}", asks(request.as_deref())),
                Some(why) => println!("  {dim}leave  {url} ({why}){dim:#}"),
            }
        }
    }
    print_handed(&tried.extraction, links);
}

/// Prints how much the page hands to each spider, and what, if `all` is set.
fn print_handed(Extraction { handed, tasks, .. }: &Extraction, all: bool) {
    let mut by_spider: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (spider, link) in handed {
        let shown = format!("{}{}", link.url, asks(link.request.as_deref()));
        by_spider.entry(spider.as_str()).or_default().push(shown);
    }
    for task in tasks {
        let spider = task.spider.as_ref().map_or("", |spider| spider.as_str());
        let shown = format!("task {}", printable(task.recipe.as_str(), MAX_SHOWN));
        by_spider.entry(spider).or_default().push(shown);
    }
    let green = AnsiColor::Green.on_default();
    for (spider, what) in by_spider {
        println!("{} handed to the spider {spider}", count(what.len() as u64));
        what.iter().filter(|_| all).for_each(|one| println!("  {green}hand  {green:#} {one}"));
    }
}

/// Prints the session of the trial: the names of its cookies, as their values may open an account.
pub(super) fn print_session(session: &TrialSession, lapse: Option<&str>) {
    let (bold, red) = (Style::new().bold(), AnsiColor::Red.on_default());
    let state = if session.is_logged_in() { "logged in" } else { "cookies alone" };
    println!("{bold}session{bold:#} {state}");
    for cookie in session.cookies() {
        let until = cookie.expires.map(|expires| format!(", until {expires}")).unwrap_or_default();
        println!(
            "  {:<14} {} for {}{}{until}",
            "cookie",
            printable(&cookie.name, 64),
            cookie.domain,
            cookie.path
        );
    }
    for name in session.taken() {
        println!("  {:<14} {}", "taken", printable(&name, 64));
    }
    if let Some(sign) = lapse {
        println!("  {red}the page looks as if the session had lapsed{red:#}: {sign}");
    }
}

/// Prints whether the page was rendered, and by which rule.
fn print_rendering(rendering: &Rendering, kinds: &[JudgedKind]) {
    let dim = Style::new().dimmed();
    let word = if rendering.is_wanted { "rendered" } else { "not rendered" };
    let whose = match rule_of(rendering, kinds) {
        Some(kind) => format!("the page `{}`", printable(kind, 64)),
        None => "the spider".to_owned(),
    };
    let render: &str = rendering.rule.render.into();
    println!("  {dim}{word:<14}{dim:#} by `render = \"{render}\"` of {whose}");
}

/// Prints the steps that were taken in a page, each with its time.
pub(super) fn print_steps(steps: &[StepTaken]) {
    let dim = Style::new().dimmed();
    for (number, (step, took)) in (1..).zip(steps) {
        let (word, step) = (format!("step {number}"), printable(step, MAX_SHOWN));
        println!("  {dim}{word:<14}{dim:#} {step} in {:.2} s", took.as_secs_f64());
    }
}

/// Returns the kind of page whose rule it is; `None` for the spider's.
fn rule_of<'a>(rendering: &Rendering, kinds: &'a [JudgedKind]) -> Option<&'a str> {
    rendering.rule.kind.and_then(|number| Some(&*kinds.get(number)?.name))
}

/// Prints which kind the page is of, and why it is of no other.
fn print_kinds(kinds: &[JudgedKind]) {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    for JudgedKind { name, why_not } in kinds {
        let name = printable(name, 64);
        match why_not {
            None => println!("  {bold}{:<14} {name}{bold:#}", "page"),
            Some(why) => println!("  {dim}{:<14} {name}: {}{dim:#}", "not page", printable(why, MAX_SHOWN)),
        }
    }
    if !kinds.is_empty() && kinds.iter().all(|kind| kind.why_not.is_some()) {
        println!(
            "  {bold}{:<14} of no kind: it yields no items, and [follow] alone says what is followed{bold:#}",
            "page"
        );
    }
}

/// Prints how the list goes on that the page belongs to, or why it ends.
fn print_list(tried: &Tried) {
    let bold = Style::new().bold();
    match &tried.extraction.list {
        Some(ListState { end: Some(end), .. }) => println!("{bold}list{bold:#} ends: {end}"),
        Some(_) => {
            let next = tried.links.iter().rev().find_map(|link| link.request.as_deref());
            let body = next.and_then(|next| next.body.text()).filter(|body| !body.is_empty());
            let url = next.map(|next| next.url.as_str()).unwrap_or_default();
            let body = body.map(|body| format!(" with {}", printable(body, MAX_SHOWN))).unwrap_or_default();
            println!("{bold}list{bold:#} goes on: {url}{body}");
        }
        None => {}
    }
}

/// Describes a request for a link, unless it has nothing of its own.
fn asks(request: Option<&NewRequest>) -> String {
    let Some(request) = request else { return String::new() };
    let carried = request.data.as_ref().map(Carried::from_data).unwrap_or_default();
    match carried.values.is_empty() {
        true => String::new(),
        false => format!(" carrying {}", printable(&Value::Object(carried.values).to_string(), MAX_SHOWN)),
    }
}

pub(super) fn head(url: &CanonicalUrl, response: &Response, took: Duration) {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    println!("{bold}{} {}{bold:#}", response.status, url);
    if let Some(landed) = &response.redirected_to {
        println!("  {dim}{:<14}{dim:#} {landed}", "redirected to");
    }
    for name in HEADERS {
        if let Some(value) = response.headers.get(name) {
            println!("  {dim}{name:<14}{dim:#} {}", printable(value, MAX_SHOWN));
        }
    }
    let bytes = counted(response.body.len() as u64, "byte");
    println!("  {dim}{:<14}{dim:#} {bytes} in {:.2} s", "body", took.as_secs_f64());
}

fn print_item(Extracted { rule, number, fields }: &Extracted) {
    let (bold, cyan) = (Style::new().bold(), AnsiColor::Cyan.on_default());
    println!("{bold}{} {}{bold:#}", rule.as_deref().unwrap_or("item"), number + 1);
    for (name, value) in fields {
        let name = printable(name, 64);
        match value {
            Value::Array(values) => {
                println!("  {cyan}{name:<14}{cyan:#} {} values", values.len());
                values.iter().for_each(|value| println!("  {:<14} - {}", "", shown(value)));
            }
            value => println!("  {cyan}{name:<14}{cyan:#} {}", shown(value)),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text, MAX_SHOWN),
        Value::Null => "-".to_owned(),
        value => printable(&value.to_string(), MAX_SHOWN),
    }
}

pub(super) fn print_json(
    url: &CanonicalUrl,
    tried: &Tried,
    (rendering, steps): (Option<Rendering>, &[StepTaken]),
    session: Option<&TrialSession>,
    lapse: Option<&str>,
) {
    let Tried { response, extraction, links, kinds } = tried;
    let item = |Extracted { rule, number, fields }: &Extracted| json!({ "item": rule, "number": number, "fields": fields });
    let link = |JudgedLink { url, verdict, kind, request }: &JudgedLink| json!({ "url": url.as_str(), "followed": verdict.why_not().is_none(), "download": *kind == LinkKind::File, "why": verdict.why_not(), "request": request });
    let kind = |JudgedKind { name, why_not }: &JudgedKind| json!({ "name": name, "why_not": why_not });
    let unfit = |wanted: bool| {
        let unfit = extraction.unfit.iter().filter(|unfit| unfit.is_cut == wanted);
        unfit.map(|Unfit { field, value, reason, steps, .. }| json!({ "field": field, "value": value, "reason": reason, "steps": steps })).collect::<Vec<_>>()
    };
    let step = |(step, took): &StepTaken| json!({ "step": step, "seconds": took.as_secs_f64() });
    let session = session.map(|session| {
        let cookies = session.cookies();
        let cookies = cookies.iter().map(|one| json!({ "name": one.name, "domain": one.domain, "path": one.path, "expires": one.expires.map(|at| at.to_string()) }));
        json!({ "logged_in": session.is_logged_in(), "cookies": cookies.collect::<Vec<_>>(), "taken": session.taken(), "lapsed": lapse })
    });
    let rendering = rendering.map(|rendering| {
        let render: &str = rendering.rule.render.into();
        json!({ "rendered": rendering.is_wanted, "render": render, "page": rule_of(&rendering, kinds), "steps": steps.iter().map(step).collect::<Vec<_>>() })
    });
    let headers = response.headers.iter().filter(|(name, _)| session.is_none() || *name != "set-cookie");
    let shown = json!({
        "url": url.as_str(),
        "redirected_to": response.redirected_to.as_ref().map(|url| url.as_str()),
        "status": response.status,
        "headers": headers.map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
        "session": session,
        "rendering": rendering,
        "bytes": response.body.len(),
        "page": kinds.iter().find(|kind| kind.why_not.is_none()).map(|kind| &kind.name),
        "pages": kinds.iter().map(kind).collect::<Vec<_>>(),
        "list": extraction.list.as_ref().map(|list| json!({ "pages": list.pages, "ends": list.end.map(|end| end.to_string()) })),
        "items": extraction.items.iter().map(item).collect::<Vec<_>>(),
        "missing": extraction.missing.iter().map(|missing| &missing.field).collect::<Vec<_>>(),
        "refused": unfit(false),
        "cut": unfit(true),
        "links": links.iter().map(link).collect::<Vec<_>>(),
        "handed": extraction.handed.iter().map(|(spider, link)| json!({ "spider": spider, "url": link.url.as_str(), "request": link.request })).collect::<Vec<_>>(),
        "tasks": extraction.tasks,
    });
    trawl_cli::print_json(&shown);
}
