//! One URL in this worker's hands.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use trawl_common::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::outcome::{Failure, Outcome};
use trawl_common::ports::{Claim, MAX_STARTS, Receipt};
use trawl_common::retry;
use trawl_common::settings::Retry;
use trawl_common::ticket::Ticket;
use trawl_common::time::UnixMs;
use trawl_common::url::{CanonicalUrl, Fingerprint};

use crate::spiders::Loaded;

/// A URL to handle, how often it failed before, and how often it began and never ended.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) message: Message,
    pub(crate) attempts: u32,
    pub(crate) starts: u32,
    /// How often its slot had passed when it could start.
    pub(crate) misses: u32,
    /// The spider that it is for.
    pub(crate) spider: Arc<Loaded>,
}

impl Job {
    /// Whether it may start once more and no more: it was in flight each time when its worker died.
    pub(crate) fn is_suspect(&self) -> bool {
        self.starts + 1 == MAX_STARTS
    }

    /// What becomes of it after a failure.
    pub(crate) fn failed(&self, policy: &Retry, failure: Failure) -> Outcome {
        retry::decide(policy, failure, self.attempts + 1, UnixMs::now(), rand::random())
    }

    /// The same for a failure that its spider's file has tried again.
    pub(crate) fn failed_for_now(&self, policy: &Retry, failure: Failure) -> Outcome {
        retry::again(policy, failure, self.attempts + 1, UnixMs::now(), rand::random())
    }

    /// The record that this job works on.
    pub(crate) fn claim(&self) -> Claim {
        claim(&self.message)
    }
}

/// A job whose turn it is.
pub(crate) struct Ready {
    pub(crate) job: Job,
    pub(crate) ticket: Ticket,
}

/// The record of a message's URL.
pub(crate) fn claim(message: &Message) -> Claim {
    Claim { crawl: message.crawl.clone(), url: message.url.clone() }
}

/// The URLs between receipt and settlement, each with the receipts of its messages.
///
/// After a reconnect the broker delivers again what this worker still works on: the second message joins
/// the first here, and one settlement serves both.
#[derive(Default)]
pub(crate) struct Hands(Mutex<HashMap<Fingerprint, Held>>);

struct Held {
    message: Message,
    receipts: Vec<Receipt>,
    since: Instant,
}

impl Hands {
    /// Takes a message, without a receipt if it is acknowledged already; `false` means that its URL was in hand already.
    pub(crate) fn take(&self, message: &Message, receipt: Option<Receipt>) -> bool {
        let mut held = self.held();
        let entry = held.entry(key(&message.crawl, &message.url));
        let is_new = matches!(entry, std::collections::hash_map::Entry::Vacant(_));
        let new = || Held { message: message.clone(), receipts: Vec::new(), since: Instant::now() };
        entry.or_insert_with(new).receipts.extend(receipt);
        is_new
    }

    /// The receipts of a URL that stays in hand: to acknowledge it early.
    pub(crate) fn receipts(&self, claim: &Claim) -> Vec<Receipt> {
        self.held()
            .get_mut(&key(&claim.crawl, &claim.url))
            .map(|held| std::mem::take(&mut held.receipts))
            .unwrap_or_default()
    }

    /// Lets go of a URL; returns its receipts.
    pub(crate) fn let_go(&self, claim: &Claim) -> Vec<Receipt> {
        self.held().remove(&key(&claim.crawl, &claim.url)).map(|held| held.receipts).unwrap_or_default()
    }

    /// Whether a URL has been in hand for at least `age`, or is not in hand at all.
    pub(crate) fn is_older(&self, message: &Message, age: Duration) -> bool {
        self.held().get(&key(&message.crawl, &message.url)).is_none_or(|held| held.since.elapsed() >= age)
    }

    /// The messages that have been in hand for at least `age`.
    pub(crate) fn older_than(&self, age: Duration) -> Vec<Message> {
        let now = Instant::now();
        let held = self.held();
        let old = held.values().filter(|held| now.duration_since(held.since) >= age);
        old.map(|held| held.message.clone()).collect()
    }

    /// How many URLs are in hand.
    pub(crate) fn len(&self) -> usize {
        self.held().len()
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Fingerprint, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stands for a URL of a crawl in this worker's memory.
pub(crate) fn key(crawl: &CrawlRef, url: &CanonicalUrl) -> Fingerprint {
    Fingerprint::of(&format!("{} {} {url}", crawl.spider, crawl.id))
}

#[cfg(test)]
mod tests {
    use trawl_common::lane::Lane;
    use trawl_common::names::CrawlRef;

    use super::*;

    #[test]
    fn a_url_delivered_twice_is_worked_on_once_and_both_messages_are_settled() {
        let hands = Hands::default();
        let message = Message::seed("https://example.com/".parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk);
        let receipt = |session| Receipt { session, tag: 1 };
        let take = |session| hands.take(&message, Some(receipt(session)));
        assert!(take(1));
        assert!(!take(2));
        assert_eq!(hands.let_go(&claim(&message)), [receipt(1), receipt(2)]);
        assert_eq!(hands.len(), 0);
        assert!(take(3), "what was let go can be taken again");
    }
}
