//! The result of trying a spider on one page, as shown by the command line and the API.

use std::fmt;
use std::time::Duration;

use trawl_common::frontier::limit::Limit;
use trawl_common::frontier::outcome::{Failure, Skip};
use trawl_common::ports::Error;
use trawl_common::request::NewRequest;
use trawl_common::spider::{LinkVerdict, PageKind, PageMatch, Scope, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use crate::{Extraction, Link, LinkKind, Unmet};

/// A page and the result of a spider on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The response for the page's URL.
    pub response: Response,
    /// The extracted items and the missing fields. The links are in `links`.
    pub extraction: Extraction,
    /// The page's links.
    pub links: Vec<JudgedLink>,
    /// The spider's kinds of pages, in order.
    pub kinds: Vec<JudgedKind>,
}

/// A link, with the spider's decision for one found on the start page.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedLink {
    /// The target.
    pub url: CanonicalUrl,
    /// The decision.
    pub verdict: LinkVerdict,
    /// The kind of its target.
    pub kind: LinkKind,
    /// The request for it; `None` for a plain GET.
    pub request: Option<Box<NewRequest>>,
}

/// A kind of page, with the reason why the page is not read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedKind {
    /// Its name.
    pub name: String,
    /// The reason; `None` for the kind that the page is of.
    pub why_not: Option<String>,
}

/// The reason why there is no result for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untried {
    /// The page could not be fetched or read.
    Failed(Failure),
    /// Workers would skip the page, for the reason in the text.
    Skipped(Skip, String),
}

/// The result of fetching a page within its host's rate and extracting it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The robots.txt verdict on the last URL, whether requested or not; `None` if it was not determined.
    pub robots: Option<RobotsOutcome>,
    /// The URLs that redirects led to, in order.
    pub redirects: Vec<CanonicalUrl>,
    /// The status of the last response; `None` if there was none.
    pub status: Option<u16>,
    /// The page, or the reason why there is none.
    pub page: Result<Tried, Untried>,
}

/// The verdict of a robots.txt on a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsOutcome {
    /// The spider ignores robots.txt.
    Ignored,
    /// The URL may be requested.
    Allowed,
    /// The URL may not be requested.
    Forbidden,
    /// The robots.txt cannot be read, so nothing may be requested.
    Unreadable,
}

/// The reason why a page was not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTried {
    /// The host may not be requested before this time.
    Later(HostKey, UnixMs),
    /// The trial took longer than this.
    Overdue(Duration),
    /// This many pages are being tried already.
    Full(usize),
    /// No client can be made with the spider's settings.
    Unusable(String),
    /// The store of the host schedules failed.
    Port(Error),
}

impl Tried {
    /// Creates the result from the response and what `spider` extracted from it, and judges each link by the spider's
    /// `scope`. `landed` is the URL of the page after redirects.
    pub fn new(
        spider: &Spider,
        scope: &Scope,
        landed: &CanonicalUrl,
        response: Response,
        extraction: Extraction,
    ) -> Self {
        let mut extraction = extraction;
        let verdict = |Link { url, kind, request, .. }: Link| {
            let verdict = match kind {
                LinkKind::File => LinkVerdict::Follow,
                kind => scope.verdict(landed, &url, u16::from(kind == LinkKind::Page)),
            };
            let verdict = match verdict {
                LinkVerdict::Follow if !spider.urls.takes(&url) => LinkVerdict::Beyond(Limit::UrlLength),
                verdict => verdict,
            };
            JudgedLink { url, verdict, kind, request }
        };
        let links = std::mem::take(&mut extraction.links).into_iter().map(verdict).collect();
        let kinds = spider.pages.iter().enumerate();
        let kinds = kinds.map(|(number, kind)| JudgedKind::new(number, kind, &extraction)).collect();
        Self { response, extraction, links, kinds }
    }
}

impl JudgedKind {
    fn new(number: usize, kind: &PageKind, extraction: &Extraction) -> Self {
        let PageMatch { content_type, selector, from, .. } = &kind.when;
        let from: Vec<&str> = from.iter().map(|from| from.value.as_str()).collect();
        let why_not = match extraction.unmet.get(number) {
            None if extraction.kind == Some(number) => None,
            None => Some("an earlier kind matches".to_owned()),
            Some(Unmet::Url) => Some("no pattern of `url` matches its URL".to_owned()),
            Some(Unmet::ContentType) => Some(format!("its type is not {}", content_type.join(" or "))),
            Some(Unmet::From) => Some(format!("no page or rule of {} led to it", from.join(" or "))),
            Some(Unmet::Selector) => {
                let selector = selector.as_ref().map(ToString::to_string);
                Some(format!("`{}` finds nothing", selector.unwrap_or_default()))
            }
        };
        Self { name: kind.name.value.clone(), why_not }
    }
}

impl From<Failure> for Untried {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl fmt::Display for Untried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => failure.fmt(f),
            Self::Skipped(_, why) => f.write_str(why),
        }
    }
}
