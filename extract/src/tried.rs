//! The result of trying a spider on one page, as the command line and the API show it.

use std::fmt;
use std::time::Duration;

use trawl_common::frontier::limit::Limit;
use trawl_common::frontier::outcome::{Failure, Skip};
use trawl_common::ports::{Error, Response};
use trawl_common::spider::{LinkVerdict, Scope, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;

use crate::{Extraction, Link};

/// A page that was tried, and what a spider makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// What the page's URL was answered with.
    pub response: Response,
    /// Its items, and what is missing. Its links are in `links`.
    pub extraction: Extraction,
    /// The page's links, and what the spider makes of each where it starts from the page.
    pub links: Vec<(CanonicalUrl, LinkVerdict)>,
}

/// Why there is nothing to show of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untried {
    /// There is no page, or it cannot be read.
    Failed(Failure),
    /// Workers leave it out, for the reason that the text gives.
    Skipped(Skip, String),
}

/// The result of fetching a page within its host's rate, and of reading it.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// What the robots.txt says of the URL that was asked last, or would have been; `None` if that was not found out.
    pub robots: Option<RobotsOutcome>,
    /// Where redirects led, in order.
    pub redirects: Vec<CanonicalUrl>,
    /// The status of the last answer; `None` if there was none.
    pub status: Option<u16>,
    /// The page, or why there is none.
    pub page: Result<Tried, Untried>,
}

/// What a robots.txt says of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsOutcome {
    /// Nobody asks it.
    Ignored,
    /// That it may be asked for.
    Allowed,
    /// That it may not.
    Forbidden,
    /// Nothing, as it cannot be read: then nothing may be asked for.
    Unreadable,
}

/// Why a page was not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTried {
    /// This host is not to be asked before then.
    Later(HostKey, UnixMs),
    /// It took longer than this.
    Overdue(Duration),
    /// So many pages are tried already.
    Full(usize),
    /// Nobody can fetch as the spider says.
    Unusable(String),
    /// Whoever keeps the schedules of hosts failed.
    Port(Error),
}

impl Tried {
    /// What `spider`, whose scope this is, makes of `response`, of which it extracted this. `landed` is the URL of the page.
    pub fn of(
        spider: &Spider,
        scope: &Scope,
        landed: &CanonicalUrl,
        response: Response,
        extraction: Extraction,
    ) -> Self {
        let mut extraction = extraction;
        let verdict = |Link { url, is_next, .. }: Link| {
            let verdict = match scope.verdict(landed, &url, u16::from(!is_next)) {
                LinkVerdict::Follow if !spider.urls.takes(&url) => LinkVerdict::Beyond(Limit::UrlLength),
                verdict => verdict,
            };
            (url, verdict)
        };
        let links = std::mem::take(&mut extraction.links).into_iter().map(verdict).collect();
        Self { response, extraction, links }
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
