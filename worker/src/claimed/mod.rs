//! One URL that this worker handles, and its outcome.

mod failure_for_program;
pub(crate) mod items_file;
pub(crate) mod new_work;
pub(crate) mod page_output;
pub(crate) mod settlement;

use std::sync::Arc;

use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Failure, Outcome};
use trawl_common::frontier::retry;
use trawl_common::frontier::{Key, Request, is_suspect};
use trawl_common::ports::{Claim, OpenCrawl};
use trawl_common::request::NewRequest;
use trawl_common::settings::Retry;
use trawl_common::spider::Carried;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;
use trawl_handlers::Stream;

pub(crate) use self::failure_for_program::FailureForProgram;
use crate::programs::Running;
use crate::spiders::LoadedSpider;

/// Returns the domain that led to the URL of a message: that of the page with the link or the redirect, or else its own.
/// `None` for a task.
pub(crate) fn led_by(message: &Message) -> Option<HostKey> {
    let is_redirected = message.hop.as_ref().is_some_and(|hop| hop.count > 0);
    let referrer = message.referrer.as_ref().filter(|_| !is_redirected).and_then(Key::page);
    let page = referrer.or_else(|| message.work.page().cloned())?;
    Some(HostKey::domain(&page.host()))
}

/// A URL to handle, with the number of its failures, and of its starts without an end.
#[derive(Clone)]
pub(crate) struct ClaimedUrl {
    /// The URL of its message, or of its request.
    pub(crate) url: CanonicalUrl,
    pub(crate) message: Message,
    pub(crate) attempts: u32,
    pub(crate) starts: u32,
    /// Whether it has waited for its host's addresses, and waits only for a slot of its host.
    pub(crate) waits_for_host_only: bool,
    /// Its crawl.
    pub(crate) crawl: OpenCrawl,
    /// Its spider.
    pub(crate) spider: Arc<LoadedSpider>,
}

impl ClaimedUrl {
    /// Whether it may crash workers: it was in flight more than once when its worker died.
    pub(crate) fn is_suspect(&self) -> bool {
        is_suspect(self.starts)
    }

    /// Returns the outcome after a failure.
    pub(crate) fn failed(&self, settings: &Retry, failure: Failure) -> Outcome {
        let policy = self.spider.spider.retry.apply(settings).with_max(self.message.work.retries());
        retry::decide(&policy, failure, self.attempts + 1, UnixMs::now(), rand::random())
    }

    /// Returns the outcome after a failure that is to be retried according to the spider's file.
    pub(crate) fn failed_for_now(&self, settings: &Retry, failure: Failure) -> Outcome {
        self.again(self.spider.spider.retry.apply(settings), failure)
    }

    /// Returns the outcome after a failure of the spider's program.
    pub(crate) fn program_failed(&self, settings: &Retry, failure: Failure) -> Outcome {
        self.again(self.spider.spider.program_retry(settings), failure)
    }

    fn again(&self, policy: Retry, failure: Failure) -> Outcome {
        let policy = policy.with_max(self.message.work.retries());
        retry::again(&policy, failure, self.attempts + 1, UnixMs::now(), rand::random())
    }

    /// Returns the request for its URL, if that is not a plain GET. The response to a request is neither
    /// cached nor compared, and does not count as another page.
    pub(crate) fn request(&self) -> Option<&Request> {
        self.message.work.request().map(|request| &**request)
    }

    /// Returns its request, if the response is another than that to a GET of its URL. A request may have data only
    /// because its spider tracks how pages are reached.
    pub(crate) fn own_request(&self) -> Option<&Request> {
        self.request().filter(|request| {
            let new = &request.new;
            let is_plain =
                || *new == NewRequest { data: new.data.clone(), ..NewRequest::get(new.url.as_str()) };
            !(self.spider.extractor.tracks() && is_plain())
        })
    }

    /// Returns its request and what that carries, if a `[[download]]` of its spider keeps the response as a file.
    pub(crate) fn download(&self) -> Option<(Arc<Request>, Carried)> {
        if self.spider.spider.downloads.is_empty() {
            return None;
        }
        let request = self.message.work.request()?;
        let carried = Carried::from_data(request.new.data.as_ref()?);
        self.spider.download(carried.download.as_deref()?)?;
        Some((Arc::clone(request), carried))
    }

    /// Returns the URL to fetch next: its own, or the target of the last redirect.
    pub(crate) fn target(&self) -> &CanonicalUrl {
        self.message.hop.as_ref().map_or(&self.url, |hop| &hop.url)
    }

    /// Returns the domain that led to its URL.
    pub(crate) fn led_by(&self) -> HostKey {
        led_by(&self.message).unwrap_or_else(|| HostKey::domain(&self.url.host()))
    }

    /// Returns where redirects have led. Another spelling of the URL itself is the same page.
    pub(crate) fn redirected_to(&self) -> Option<CanonicalUrl> {
        let hop = self.message.hop.as_ref().map(|hop| hop.url.normalised());
        hop.filter(|hop| *hop != self.url)
    }

    /// Returns the program that reads its page, if there is one.
    pub(crate) fn reader(&self) -> Option<&Stream> {
        self.spider.program.as_ref().and_then(Running::reader)
    }

    /// Returns the claim of its record.
    pub(crate) fn claim(&self) -> Claim {
        Claim::new(&self.message)
    }
}
