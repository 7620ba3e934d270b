//! `allowed_domains` and `[start]`.

use super::given::Given;
use super::placeholders;
use super::section::Section;
use crate::request::NewRequest;
use crate::spider::Start;
use crate::spider::domains::Domains;
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
    let start = Start {
        sitemaps: section.all("sitemaps", source),
        urls: section.all("urls", |given| page(given, &domains)),
        robots: section.all("robots", source),
        requests: section.all("requests", |given| request(given, &domains)),
        tasks: section.all("tasks", task),
    };
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

/// A request, as a line of a list has it.
fn request(given: &Given<'_>, domains: &Domains<'_>) -> Option<NewRequest> {
    let request = NewRequest::try_from(given.json()?).map_or_else(|error| given.wrong(error), Some)?;
    match CanonicalUrl::parse(&request.url) {
        Err(error) => given.wrong(format_args!("`{}`: {error}", printable(&request.url, 100))),
        Ok(url) if !domains.allow(&url.host().to_string()) => {
            given.wrong(format_args!("{} is not among `allowed_domains`", url.host()))
        }
        Ok(_) => Some(request),
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
