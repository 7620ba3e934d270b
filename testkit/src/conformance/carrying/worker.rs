//! The worker of the tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{
    Claim, Claimed, Completion, Disposition, ErrorKind, Fatal, Finish, Frontier, NewWork, Result, Settled,
    Settlement,
};
use trawl_common::time::UnixMs;

use crate::conformance::engine::{GLANCE, LIMIT};
use crate::conformance::fixture::Case;

/// A worker that has joined.
pub(super) struct Worker {
    pub(super) frontier: Arc<dyn Frontier>,
    pub(super) stop: CancellationToken,
    pub(super) maintenance: JoinSet<Fatal>,
}

impl Worker {
    /// Claims URLs until there are `count`.
    pub(super) async fn claim(&self, count: usize) -> Vec<Claimed> {
        let claiming = async {
            let mut all = Vec::new();
            while all.len() < count {
                all.extend(self.frontier.claim(count - all.len()).await.expect("no server fails"));
            }
            all
        };
        timeout(LIMIT, claiming).await.unwrap_or_else(|_| panic!("no {count} URLs within {LIMIT:?}"))
    }

    pub(super) async fn claim_one(&self) -> Claimed {
        self.claim(1).await.remove(0)
    }

    pub(super) async fn claims_nothing(&self) {
        if let Ok(claimed) = timeout(GLANCE, self.frontier.claim(9)).await {
            panic!("{claimed:?}");
        }
    }

    /// Starts a claimed URL, and settles it with this disposition.
    pub(super) async fn settle(&self, claimed: Claimed, disposition: Disposition) -> Settled {
        let claim = Claim::new(&claimed.message);
        assert_eq!(self.frontier.start(&[claim]).await.expect("it starts"), [StartReply::Go]);
        self.frontier
            .settle(vec![Settlement { message: claimed.message, disposition }])
            .await
            .expect("no server fails")
    }

    pub(super) async fn finish(&self, claimed: Claimed) -> Settled {
        let disposition = done(&claimed.message, Vec::new());
        self.settle(claimed, disposition).await
    }

    /// Claims `count` pages. Returns them by their numbers.
    pub(super) async fn claim_pages(&self, count: usize) -> BTreeMap<usize, Claimed> {
        let pages = self.claim(count).await.into_iter().map(|claimed| (number(&claimed), claimed));
        let pages: BTreeMap<_, _> = pages.collect();
        assert_eq!(pages.len(), count, "each is claimed once");
        pages
    }

    pub(super) async fn start(&self, claimed: &Claimed) -> StartReply {
        self.frontier.start(&[Claim::new(&claimed.message)]).await.expect("it can be asked")[0]
    }

    pub(super) async fn extends(&self, claimed: &Claimed) -> bool {
        self.frontier.extend(&[&claimed.message]).await.expect("no server fails")[0]
    }

    /// Settles a URL without starting it. Returns whether it has ended.
    pub(super) async fn settle_unstarted(&self, claimed: &Claimed, disposition: Disposition) -> bool {
        let message = claimed.message.clone();
        !self
            .frontier
            .settle(vec![Settlement { message, disposition }])
            .await
            .expect("no server fails")
            .ended
            .is_empty()
    }

    /// Ends a URL without starting it, with a dead letter if it failed.
    pub(super) async fn end_unstarted(&self, case: &Case, claimed: &Claimed, terminal: Terminal) {
        let note = (terminal == Terminal::Failed).then(|| case.note(1, terminal));
        let finish = Finish { note, ..Finish::new(Claim::new(&claimed.message), terminal) };
        assert!(self.settle_unstarted(claimed, Disposition::Finish(Box::new(Completion::new(finish)))).await);
    }

    pub(super) async fn park(&self, claimed: &Claimed, until: UnixMs, failed: bool) {
        assert!(!self.settle_unstarted(claimed, delay(until, failed)).await);
    }

    pub(super) async fn release(&self, claimed: &Claimed) {
        assert!(!self.settle_unstarted(claimed, Disposition::Release).await);
    }

    /// Ends a URL with this state, without starting it. Returns whether it has ended.
    pub(super) async fn end(&self, case: &Case, claimed: &Claimed, terminal: Terminal) -> bool {
        self.settle_unstarted(claimed, ends(case.ending(number(claimed), terminal))).await
    }

    /// Claims `count` pages, and ends them as done.
    pub(super) async fn work_off(&self, count: usize) {
        for claimed in self.claim(count).await {
            self.finish(claimed).await;
        }
    }
}

/// Returns the number of a page.
pub(super) fn number(claimed: &Claimed) -> usize {
    let path = claimed.message.work.page().and_then(|url| url.as_str().rsplit('/').next());
    path.and_then(|path| path.parse().ok()).expect("it is a page of the site")
}

/// Returns the disposition for an end without links.
pub(super) fn ends(finish: Finish) -> Disposition {
    Disposition::Finish(Box::new(Completion::new(finish)))
}

pub(super) fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

pub(super) fn done(message: &Message, links: Vec<NewWork>) -> Disposition {
    let finish = Finish::new(Claim::new(message), Terminal::Done);
    Disposition::Finish(Box::new(Completion { links, ..Completion::new(finish) }))
}

/// Returns the disposition of a URL that comes back at `until`, after a failure or without one.
pub(super) fn delay(until: UnixMs, failed: bool) -> Disposition {
    match failed {
        true => Disposition::Retry { until },
        false => Disposition::Snooze { until },
    }
}
