//! The URLs that a worker holds, each with the receipts of its messages.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::frontier::fingerprint;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::ports::Claim;
use trawl_common::web::url::Fingerprint;

use crate::broker::Receipt;

/// The URLs between receipt and settlement.
///
/// After a reconnect the broker redelivers messages whose URLs this worker still handles: the second message
/// joins the first here, and one settlement serves both.
#[derive(Default)]
pub(crate) struct HeldUrls(Mutex<State>);

#[derive(Default)]
struct State {
    held: HashMap<Fingerprint, Held>,
    /// The next number of [`HeldUrls::turn`].
    next: u64,
}

struct Held {
    message: Message,
    receipts: Vec<Receipt>,
    since: Instant,
    turn: Option<u64>,
}

impl HeldUrls {
    /// Adds a message, without a receipt if it is acknowledged already. Returns `false` if its URL was held
    /// already.
    pub(crate) fn take(&self, message: &Message, receipt: Option<Receipt>) -> bool {
        let key = fingerprint(&message.crawl, message.work.as_str());
        let mut state = self.0.lock();
        let entry = state.held.entry(key);
        let is_new = matches!(entry, Entry::Vacant(_));
        let new =
            || Held { message: message.clone(), receipts: Vec::new(), since: Instant::now(), turn: None };
        entry.or_insert_with(new).receipts.extend(receipt);
        is_new
    }

    /// Returns the number of a URL in the order in which those held were first handed out. It keeps its number
    /// while it is held.
    pub(crate) fn turn(&self, message: &Message) -> u64 {
        let key = fingerprint(&message.crawl, message.work.as_str());
        let State { held, next } = &mut *self.0.lock();
        let mut take_next = || std::mem::replace(next, *next + 1);
        match held.get_mut(&key) {
            Some(held) => *held.turn.get_or_insert_with(take_next),
            None => take_next(),
        }
    }

    /// Takes the receipts of a URL that stays held, if its lane satisfies `is_lane`; otherwise leaves them
    /// and returns none.
    pub(crate) fn receipts_if(&self, claim: &Claim, is_lane: impl Fn(Lane) -> bool) -> Vec<Receipt> {
        let mut state = self.0.lock();
        let held = state.held.get_mut(&fingerprint(&claim.crawl, claim.key.as_str()));
        let held = held.filter(|held| is_lane(held.message.lane));
        held.map(|held| std::mem::take(&mut held.receipts)).unwrap_or_default()
    }

    /// Removes a URL and returns its receipts.
    pub(crate) fn forget(&self, claim: &Claim) -> Vec<Receipt> {
        self.0
            .lock()
            .held
            .remove(&fingerprint(&claim.crawl, claim.key.as_str()))
            .map(|held| held.receipts)
            .unwrap_or_default()
    }

    /// Whether a URL has been held for at least `age`, or is not held at all.
    pub(crate) fn is_older(&self, message: &Message, age: Duration) -> bool {
        self.0
            .lock()
            .held
            .get(&fingerprint(&message.crawl, message.work.as_str()))
            .is_none_or(|held| held.since.elapsed() >= age)
    }

    /// The messages that have been held for at least `age`.
    pub(crate) fn older_than(&self, age: Duration) -> Vec<Message> {
        let now = Instant::now();
        let state = self.0.lock();
        let old = state.held.values().filter(|held| now.duration_since(held.since) >= age);
        old.map(|held| held.message.clone()).collect()
    }

    /// The number of URLs held.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().held.len()
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::names::CrawlRef;
    use trawl_common::web::url::CanonicalUrl;

    use super::*;

    #[test]
    fn a_url_delivered_twice_is_worked_on_once_and_both_messages_are_settled() {
        let held = HeldUrls::default();
        let message = Message::seed(
            CanonicalUrl::parse("https://example.com/").unwrap(),
            CrawlRef::adhoc(),
            Lane::Bulk,
        );
        let receipt = |session| Receipt { session, tag: 1 };
        let take = |session| held.take(&message, Some(receipt(session)));
        assert!(take(1));
        assert!(!take(2));
        assert_eq!(held.forget(&Claim::new(&message)), [receipt(1), receipt(2)]);
        assert_eq!(held.len(), 0);
        assert!(take(3), "what was forgotten can be taken again");
    }

    #[test]
    fn a_url_keeps_its_turn_while_it_is_held() {
        let held = HeldUrls::default();
        let message = |path: &str| {
            let url = CanonicalUrl::parse(&format!("https://example.com/{path}")).unwrap();
            Message::seed(url, CrawlRef::adhoc(), Lane::Bulk)
        };
        let (a, b) = (message("a"), message("b"));
        assert!(held.take(&a, None) && held.take(&b, None));
        let (first, second) = (held.turn(&a), held.turn(&b));
        assert!(first < second);
        assert_eq!((held.turn(&b), held.turn(&a)), (second, first));
        held.forget(&Claim::new(&a));
        assert!(held.take(&a, None) && held.turn(&a) > second);
    }
}
