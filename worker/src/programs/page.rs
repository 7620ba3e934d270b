//! Pages that are read by a program.

use std::collections::HashSet;
use std::sync::Arc;

use tracing::debug;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::frontier::{Request, Work};
use trawl_common::handler::stream::{FailureView, MAX_INLINE_BYTES, PageHead, ResponseHead};
use trawl_common::handler::{Answer, LogLine, Verdict};
use trawl_common::names::CrawlRef;
use trawl_common::request::{Method, NewRequest};
use trawl_common::settings::Urls;
use trawl_common::task::NewTask;
use trawl_common::text::printable;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extracted, Extraction, Link, LinkKind};
use trawl_handlers::{self as handlers, Ended, ItemsFile, Page, Stream};

use super::logs::{MAX_SHOWN_BYTES, log, log_warning};

/// The input of a program for a page, apart from the response or failure.
pub(crate) struct PageAbout<'a> {
    pub(crate) url: &'a CanonicalUrl,
    /// The URL, or the request for it.
    pub(crate) work: &'a Work,
    /// The target of the redirects, if there were any.
    pub(crate) landed: Option<&'a CanonicalUrl>,
    pub(crate) crawl: &'a CrawlRef,
    pub(crate) depth: u16,
    pub(crate) referrer: Option<String>,
    /// The spider's rules for equivalent URLs.
    pub(crate) urls: &'a Urls,
    /// The destination of the program's log.
    pub(crate) log: &'a LogWriter,
}

/// The result of requesting a page.
#[derive(Clone, Copy)]
pub(crate) enum Came<'a> {
    Response(&'a Response),
    Failure(&'a FailureView),
}

/// The result of reading a page with a program: an extraction, further items, requests and tasks.
pub(crate) struct Reading {
    pub(crate) extraction: Extraction,
    pub(crate) file: Option<ItemsFile>,
    pub(crate) requests: Vec<Request>,
    pub(crate) tasks: Vec<NewTask>,
}

impl Reading {
    /// Returns the result for a page that no program reads.
    pub(crate) fn new(mut extraction: Extraction) -> Self {
        let tasks = std::mem::take(&mut extraction.tasks);
        Self { extraction, file: None, requests: Vec::new(), tasks }
    }
}

/// The reason why a program yields nothing for a page.
pub(crate) enum Unread {
    /// It failed, and is to be retried.
    Failed(Failure),
    /// It reported a failure.
    SaysFailed(Failure),
    /// It skips the page.
    Skipped,
    /// It cannot be run here.
    NotRun(String),
}

/// Has a program read a page, or handle the failure of its request.
pub(crate) async fn read_page(
    program: &Stream,
    about: &PageAbout<'_>,
    came: Came<'_>,
) -> Result<Reading, Unread> {
    let write = |logs| log(about.log, about.crawl, about.work.as_str(), logs);
    match program.ask(handlers::Work::Page(page(about, came))).await {
        Ended::Answered(mut answer, file) => {
            let logs = std::mem::take(&mut answer.logs);
            let read = match answer.verdict {
                Verdict::Done => Ok(Reading { file, ..reading(about, answer) }),
                Verdict::Failed => Err(Unread::SaysFailed(said_so(&logs))),
                Verdict::Skip => Err(Unread::Skipped),
            };
            write(logs);
            read
        }
        Ended::Failed { failure, logs } => {
            write(logs);
            Err(Unread::Failed(failure))
        }
        Ended::NotRun(why) => Err(Unread::NotRun(why)),
    }
}

/// Returns the failure that a program reports: the last line of its last log entry.
pub(crate) fn said_so(logs: &[LogLine]) -> Failure {
    let last = logs.last().and_then(|entry| entry.message.lines().rev().find(|line| !line.trim().is_empty()));
    Failure::new(Class::Handler, last.unwrap_or("the program says that it failed").trim())
}

fn page(about: &PageAbout<'_>, came: Came<'_>) -> Page {
    let own = about.work.request().map(|request| &request.new);
    Page {
        head: PageHead {
            url: about.url.to_string(),
            method: own.map(|own| own.method).filter(|method| *method != Method::default()),
            data: own.and_then(|own| own.data.clone()),
            final_url: about.landed.map(ToString::to_string),
            crawl: about.crawl.id.clone(),
            depth: about.depth,
            referrer: about.referrer.clone(),
        },
        came: match came {
            Came::Response(response) => handlers::Came::Response(whole(about, response)),
            Came::Failure(failure) => handlers::Came::Failure(failure.clone()),
        },
    }
}

fn whole(about: &PageAbout<'_>, response: &Response) -> handlers::Response {
    let is_inline = response.body.len() <= MAX_INLINE_BYTES;
    let text = || match about.work.request().is_some_and(|request| request.new.any_status) {
        // Unchanged: text in another charset is passed as bytes.
        true => {
            std::str::from_utf8(&response.body).ok().filter(|text| !text.contains('\0')).map(str::to_owned)
        }
        false => trawl_extract::text(response),
    };
    let headers = response.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    handlers::Response {
        head: ResponseHead {
            status: response.status,
            headers: headers.collect(),
            fetched_at: response.fetched_at.to_string(),
        },
        bytes: response.body.clone(),
        text: if is_inline { text() } else { None },
    }
}

/// Converts a program's answer into the form of an extraction: links and requests are absolute and unique.
/// Invalid ones are left out, as for a page; invalid requests are logged.
fn reading(about: &PageAbout<'_>, answer: Answer) -> Reading {
    let base = about.landed.unwrap_or(about.url).to_url();
    let wanted = |new: NewRequest| {
        let url = base.join(new.url.trim()).ok().and_then(|url| about.urls.spelled(url).ok());
        let (href, is_request) = (new.url.clone(), !new.is_plain());
        let work = url.and_then(|(url, written)| Some((Work::of_request(url, new).ok()?, written)));
        if work.is_none() {
            debug!(page = %about.work, href, "what the program wants fetched is no URL");
            if is_request {
                let message =
                    format!("a request is left out: `{}` is no URL", printable(&href, MAX_SHOWN_BYTES));
                log_warning(about.log, about.crawl, about.work.as_str(), message);
            }
        }
        work
    };
    let (mut links, mut requests, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
    for (work, written) in answer.urls.into_iter().filter_map(wanted) {
        match work {
            _ if !seen.insert(work.key()) => {}
            Work::Url(url) => links.push(Link { url, written, kind: LinkKind::Page, request: None }),
            Work::Request(request) => requests.push(Arc::unwrap_or_clone(request)),
            Work::Task(_) => {}
        }
    }
    let items = answer.items.into_iter().enumerate();
    let items = items.map(|(number, fields)| Extracted { rule: None, number, fields }).collect();
    let extraction = Extraction { items, links, ..Extraction::default() };
    Reading { extraction, file: None, requests, tasks: answer.tasks }
}
