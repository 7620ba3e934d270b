//! One session, as this worker knows it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Revision, StoredSession};
use trawl_common::session::{SessionId, SessionState};
use trawl_common::time::UnixMs;
use trawl_common::web::cookies::SetCookie;

use crate::spiders::LoadedSpider;

/// The time after which a session in use is looked up again: so late a worker learns what others changed.
const CACHE_TTL: Duration = Duration::from_secs(1);

/// Likewise, while URLs wait for a log-in.
const WAITING_CACHE_TTL: Duration = Duration::from_millis(200);

/// The time after a log-in for which pages that looked as if the session had lapsed let others go first.
const TRIAL: Duration = Duration::from_secs(1);

/// The time after which changes are written.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of changes that wait to be written: as many as a session has cookies.
const MAX_CHANGES: usize = 1000;

/// A session, as this worker knows it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) inner: Mutex<Inner>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// The session with the changes of this worker; `None` until it was read.
    pub(super) state: Option<SessionState>,
    /// The session as it is stored.
    stored: SessionState,
    revision: Revision,
    /// When it was read last.
    looked: Option<Instant>,
    /// When somebody has logged in since, as far as this worker has seen.
    renewed: Option<Instant>,
    /// When it was written last.
    flushed: Option<Instant>,
    /// Whether its URLs have asked for it since.
    is_used: bool,
    /// Changes that are not written.
    changes: Vec<Change>,
    /// The log-in with which a page has looked as if the session had lapsed.
    pub(super) lapsed: Option<u64>,
    /// The spider that wants a log-in.
    pub(super) wanted_by: Option<Arc<LoadedSpider>>,
    /// The crawls whose URLs wait for it.
    pub(super) waiting: HashSet<CrawlRef>,
    /// Whether this worker logs in.
    pub(super) is_busy: bool,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("state", &self.state)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

/// A change of a session by a page that was fetched with the log-in of this number.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Cookie(u64, SetCookie),
    /// The page shows that the log-in has succeeded.
    Proof(u64),
}

impl Change {
    /// Applies it. Returns whether it changed anything.
    fn apply(&self, state: &mut SessionState, now: UnixMs) -> bool {
        match self {
            Self::Cookie(logins, set) => state.set_cookie(*logins, set.clone(), now),
            Self::Proof(logins) => state.prove(*logins),
        }
    }
}

impl Entry {
    pub(super) fn new(id: SessionId) -> Self {
        Self { id, inner: Mutex::default() }
    }
}

impl Inner {
    /// Notes that a URL asks for it.
    pub(super) fn mark_used(&mut self) {
        self.is_used = true;
    }

    /// Makes the next look happen at once.
    pub(super) fn look_again(&mut self) {
        (self.looked, self.is_used) = (None, true);
    }

    /// Whether a log-in was made a moment ago, and no page has shown yet that it has succeeded.
    pub(super) fn is_on_trial(&self) -> bool {
        let is_new = self.renewed.is_some_and(|at| at.elapsed() < TRIAL);
        is_new && self.state.as_ref().is_some_and(|state| !state.is_proven())
    }

    /// Takes in a change by a page, which is written later.
    pub(super) fn change(&mut self, change: Change, now: UnixMs) {
        let Some(state) = &mut self.state else { return };
        if !change.apply(state, now) {
            return;
        }
        if let Change::Cookie(_, new) = &change {
            let is_replaced = |other: &Change| matches!(other, Change::Cookie(_, old) if new.replaces(old));
            self.changes.retain(|other| !is_replaced(other));
        }
        if self.changes.len() == MAX_CHANGES {
            self.changes.remove(0);
        }
        self.changes.push(change);
    }

    /// Whether it is to be looked up.
    pub(super) fn is_stale(&self) -> bool {
        let fresh = if self.waiting.is_empty() { CACHE_TTL } else { WAITING_CACHE_TTL };
        self.is_used && self.looked.is_none_or(|at| at.elapsed() >= fresh)
    }

    /// Whether its changes are to be written.
    pub(super) fn is_dirty(&self) -> bool {
        !self.changes.is_empty() && self.flushed.is_none_or(|at| at.elapsed() >= FLUSH_INTERVAL)
    }

    /// Returns the revision that is known, and the state to write in its place.
    pub(super) fn proposal(&mut self, now: UnixMs) -> (Revision, SessionState, Vec<Change>) {
        let changes = std::mem::take(&mut self.changes);
        let mut state = self.stored.clone();
        for change in &changes {
            change.apply(&mut state, now);
        }
        self.flushed = Some(Instant::now());
        (self.revision, state, changes)
    }

    /// Notes that a proposal was written.
    pub(super) fn written(&mut self, revision: Revision, state: SessionState, now: UnixMs) {
        // Another call may have written a later one meanwhile.
        if revision > self.revision {
            (self.revision, self.stored) = (revision, state);
            self.rebase(now);
        }
    }

    /// Takes back the changes of a proposal that was not written.
    pub(super) fn take_back(&mut self, mut changes: Vec<Change>) {
        changes.append(&mut self.changes);
        self.changes = changes;
    }

    /// Takes in what was read; `None` if nothing has changed.
    pub(super) fn read(&mut self, read: Option<StoredSession>, now: UnixMs) {
        (self.looked, self.is_used) = (Some(Instant::now()), false);
        if let Some(StoredSession { revision, state }) = read {
            (self.revision, self.stored) = (revision, state);
            self.rebase(now);
        } else if self.state.is_none() {
            self.rebase(now);
        }
    }

    /// Returns the revision that is known.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    fn rebase(&mut self, now: UnixMs) {
        let mut state = self.stored.clone();
        self.changes.retain(|change| change.apply(&mut state, now));
        if self.state.as_ref().is_some_and(|before| before.logins < state.logins) {
            self.renewed = Some(Instant::now());
        }
        if self.lapsed.is_some_and(|lapsed| lapsed < state.logins) {
            self.lapsed = None;
        }
        self.state = Some(state);
    }
}
