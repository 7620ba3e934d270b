//! `allowed_domains` and `[start]`.

use serde_json::{Map, Value};

use super::given::Given;
use super::placeholders;
use super::rows::{self, Rows};
use super::section::Section;
use crate::request::{NewRequest, RequestTemplate};
use crate::spider::domains::Domains;
use crate::spider::{CsvRequests, Start};
use crate::task::NewTask;
use crate::text::printable;
use crate::web::url::CanonicalUrl;

/// A domain of `allowed_domains`, or `*` for any.
pub(super) fn allowed(given: &Given<'_>) -> Option<String> {
    let text = given.words()?.value;
    if text == "*" { Some(text) } else { domain(given) }
}

/// A domain, as hosts are written: in lower case, and in Punycode.
pub(super) fn domain(given: &Given<'_>) -> Option<String> {
    let text = given.words()?.value;
    let shown = printable(&text, 100);
    if text.contains("://") {
        let host = CanonicalUrl::parse(&text).map_or("example.com".to_owned(), |url| url.host().to_string());
        return given.wrong(format_args!("`{shown}` is a URL: write `{host}`"));
    }
    if let Some(rest) = text.strip_prefix("*.").or_else(|| text.strip_prefix('.')) {
        let rest = printable(rest, 100);
        return given.wrong(format_args!("write `{rest}`: a domain has all below it"));
    }
    let is_bare = |url: &CanonicalUrl| {
        url.as_str() == format!("http://{}/", url.host()) && !text.contains(['/', '?', '#', '\\'])
    };
    match CanonicalUrl::parse(&format!("http://{text}/")).ok().filter(is_bare) {
        Some(url) => Some(url.host().to_string()),
        None => {
            given.wrong(format_args!("`{shown}` is no domain: write `example.com`, without port or path"))
        }
    }
}

pub(super) fn start(mut section: Section<'_>, domains: &[String]) -> Start {
    let domains = Domains::new(domains);
    let mut start = Start {
        sitemaps: section.all("sitemaps", source),
        urls: section.all("urls", |given| page(given, &domains)),
        robots: section.all("robots", source),
        requests: Vec::new(),
        csv: Vec::new(),
        tasks: section.all("tasks", task),
    };
    let mut bytes = 0;
    for given in section.read("requests", Given::list).iter().flatten() {
        requests(given, &domains, &mut bytes, &mut start);
    }
    section.end();
    start
}

fn page(given: &Given<'_>, domains: &Domains<'_>) -> Option<String> {
    let url: CanonicalUrl = url(given)?;
    if !domains.allow(&url.host().to_string()) {
        return given.wrong(format_args!("{} is not among `allowed_domains`", url.host()));
    }
    Some(url.to_string())
}

/// Reads a request, or one for each of its rows. `bytes` is the size of all requests so far.
fn requests(given: &Given<'_>, domains: &Domains<'_>, bytes: &mut usize, start: &mut Start) {
    let Some(mut value) = given.json() else { return };
    let room = rows::MAX_ROWS.saturating_sub(start.requests.len());
    let rows = value.as_object_mut().and_then(|object| object.remove("rows"));
    let (rows, csv) = match rows.map(|rows| rows::rows(given, rows, room)) {
        None => (vec![Map::new()], None),
        Some(None) => return,
        Some(Some(Rows::Given(rows))) => (rows, None),
        Some(Some(Rows::Csv(file))) => (Vec::new(), Some(file)),
    };
    let template = match RequestTemplate::new(value) {
        Ok(template) => template,
        Err(error) => return given.wrong::<()>(error).unwrap_or_default(),
    };
    if let Some(file) = csv {
        let names = template.names().map_err(|error| given.wrong::<()>(error));
        if names.is_ok() && rows::may_read(given, &file) {
            start.csv.push(CsvRequests { file, request: template });
        }
        return;
    }
    for row in rows {
        let new = match template.fill(&row) {
            Ok(new) => request(given, new, domains).map(|new| carrying(new, row)),
            Err(error) => given.wrong(error),
        };
        // The others are likely to be wrong in the same way.
        let Some(new) = new else { return };
        *bytes += new.to_json().len();
        if *bytes > rows::MAX_BYTES {
            let most = rows::MAX_BYTES >> 20;
            return given
                .wrong(format_args!("all requests of a file have {most} MB at most"))
                .unwrap_or_default();
        }
        start.requests.push(new);
    }
}

/// Returns a request that carries a row, in addition to its own data.
fn carrying(new: NewRequest, row: Map<String, Value>) -> NewRequest {
    let data = match new.data {
        data if row.is_empty() => data,
        Some(Value::Object(own)) => Some(row.into_iter().chain(own).collect()),
        _ => Some(Value::Object(row)),
    };
    NewRequest { data, ..new }
}

fn request(given: &Given<'_>, new: NewRequest, domains: &Domains<'_>) -> Option<NewRequest> {
    match CanonicalUrl::parse(&new.url) {
        Err(error) => given.wrong(format_args!("`{}`: {error}", printable(&new.url, 100))),
        Ok(url) if !domains.allow(&url.host().to_string()) => {
            given.wrong(format_args!("{} is not among `allowed_domains`", url.host()))
        }
        Ok(_) => Some(new),
    }
}

/// A task of this spider, as a line of a list has it.
fn task(given: &Given<'_>) -> Option<NewTask> {
    let task = NewTask::try_from(given.json()?).map_or_else(|error| given.wrong(error), Some)?;
    match task.spider {
        Some(_) => given.wrong("a task in [start] is for this spider: leave out its `spider`"),
        None => Some(task),
    }
}

/// A URL, or else a file: only a text of this machine names one, and no argument chooses it.
fn source(given: &Given<'_>) -> Option<String> {
    let text = given.words()?.value;
    if text.contains("://") {
        url(given).map(String::from)
    } else if given.notes.limits().is_some() {
        given.wrong(
            "a spider that is deployed, or comes with a crawl, starts from URLs alone, not from a file",
        )
    } else if placeholders::is_in(given.verbatim()?) {
        given.wrong("no argument may say which file is read: with the values that are given this is no URL")
    } else {
        Some(text)
    }
}

fn url(given: &Given<'_>) -> Option<CanonicalUrl> {
    let text = given.words()?.value;
    CanonicalUrl::parse(&text)
        .map_or_else(|error| given.wrong(format_args!("`{}`: {error}", printable(&text, 100))), Some)
}
