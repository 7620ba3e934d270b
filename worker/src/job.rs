//! One URL in this worker's hands.

use std::borrow::Cow;
use std::sync::Arc;

use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Failure, Outcome};
use trawl_common::frontier::retry;
use trawl_common::frontier::{Request, is_suspect};
use trawl_common::ports::{Claim, OpenCrawl};
use trawl_common::settings::Retry;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_handlers::Stream;

use crate::handlers::Running;
use crate::spiders::Loaded;

/// A URL to handle, how often it failed before, and how often it began and never ended.
#[derive(Clone)]
pub(crate) struct Job {
    /// The URL that its message is for, or the request.
    pub(crate) url: CanonicalUrl,
    pub(crate) message: Message,
    pub(crate) attempts: u32,
    pub(crate) starts: u32,
    /// Whether it has waited at its host's addresses, and waits for a slot of its host only.
    pub(crate) waits_for_host_only: bool,
    /// Its crawl.
    pub(crate) crawl: OpenCrawl,
    /// The spider that it is for.
    pub(crate) spider: Arc<Loaded>,
}

impl Job {
    /// Whether it may be what kills workers: it was in flight more than once when its worker died.
    pub(crate) fn is_suspect(&self) -> bool {
        is_suspect(self.starts)
    }

    /// What becomes of it after a failure.
    pub(crate) fn failed(&self, policy: &Retry, failure: Failure) -> Outcome {
        retry::decide(&self.own(policy), failure, self.attempts + 1, UnixMs::now(), rand::random())
    }

    /// The same for a failure that its spider's file has tried again.
    pub(crate) fn failed_for_now(&self, policy: &Retry, failure: Failure) -> Outcome {
        retry::again(&self.own(policy), failure, self.attempts + 1, UnixMs::now(), rand::random())
    }

    /// The policy, with as many retries as a request asks for.
    fn own<'a>(&self, policy: &'a Retry) -> Cow<'a, Retry> {
        match self.message.work.retries() {
            Some(max) => Cow::Owned(Retry { max, ..policy.clone() }),
            None => Cow::Borrowed(policy),
        }
    }

    /// How its URL is asked for, if not by a plain GET. Such a response stands for nothing else: it is neither kept nor compared, and what it
    /// came from is no other page.
    pub(crate) fn request(&self) -> Option<&Request> {
        self.message.work.request().map(|request| &**request)
    }

    /// The URL to ask next: its own, or where the last redirect led.
    pub(crate) fn target(&self) -> &CanonicalUrl {
        self.message.hop.as_ref().map_or(&self.url, |hop| &hop.url)
    }

    /// Where redirects have led: another spelling of its own URL is no other page.
    pub(crate) fn redirected_to(&self) -> Option<CanonicalUrl> {
        let hop = self.message.hop.as_ref().map(|hop| hop.url.normalised());
        hop.filter(|hop| *hop != self.url)
    }

    /// The program that reads its page, if one does.
    pub(crate) fn reader(&self) -> Option<&Stream> {
        self.spider.program.as_ref().and_then(Running::reader)
    }

    /// The record that this job works on.
    pub(crate) fn claim(&self) -> Claim {
        Claim::of(&self.message)
    }
}
