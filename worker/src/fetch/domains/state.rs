//! What the pages hold that are under way, of each domain, and which URLs were put off.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use trawl_common::web::host::HostKey;

use super::KNOWN;

/// A URL that is put off comes back after this time at the earliest.
pub(super) const AWAY: Duration = Duration::from_secs(1);

/// URLs that wait for a slow permit come back with this time between them, those of different domains alternately: of
/// thousands only some twenty a second ask again.
pub(super) const APART: Duration = Duration::from_millis(50);

/// The same for URLs of one domain that wait for a fetch permit: its first page soon shows how fast it is.
pub(super) const CLOSE: Duration = Duration::from_millis(5);

/// None comes back later than this.
pub(super) const LONGEST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct State {
    /// How many pages are under way without a fetch permit, of each domain that has some.
    pub(super) slow: Pages,
    /// How many fetch permits are taken by pages that may prove slow.
    pub(super) unproven: Pages,
    /// How many fetch permits are kept by slow pages.
    pub(super) stuck: Pages,
    /// First tries that are slow, in the order in which they proved so.
    pub(super) trials: BTreeMap<u64, Trial>,
    /// How many there were.
    trial_count: u64,
    /// When a domain may have kept threads busy last.
    pub(super) kept_busy: Option<Instant>,
    /// When the last of the URLs of a domain comes back that were put off.
    put_off: HashMap<HostKey, Instant>,
}

/// A slow page of a domain of which nothing was known.
pub(super) struct Trial {
    pub(super) domain: HostKey,
    pub(super) since: Instant,
    /// Dropped when the page is to give way.
    _stays: oneshot::Sender<()>,
}

/// What a page takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// A fetch permit, for a domain that is quick.
    Permit,
    /// A fetch permit, for another.
    Unproven,
    /// A fetch permit, for a page that proved slow when there was no slow permit.
    Stuck,
    /// A slow permit.
    Slow,
}

/// How many pages of each domain.
#[derive(Default)]
pub(super) struct Pages(HashMap<HostKey, usize>);

impl Pages {
    pub(super) fn all(&self) -> usize {
        self.0.values().sum()
    }

    pub(super) fn of(&self, domain: &HostKey) -> usize {
        self.0.get(domain).copied().unwrap_or_default()
    }

    pub(super) fn has_other_than(&self, domain: &HostKey) -> bool {
        self.0.keys().any(|other| other != domain)
    }

    pub(super) fn add(&mut self, domain: &HostKey) {
        *self.0.entry(domain.clone()).or_default() += 1;
    }

    pub(super) fn remove(&mut self, domain: &HostKey) {
        match self.0.get_mut(domain) {
            Some(pages) if *pages > 1 => *pages -= 1,
            _ => drop(self.0.remove(domain)),
        }
    }
}

impl State {
    pub(super) fn take(&mut self, held: Held, domain: &HostKey) {
        match held {
            Held::Permit => {}
            Held::Unproven => self.unproven.add(domain),
            Held::Stuck => self.stuck.add(domain),
            Held::Slow => self.slow.add(domain),
        }
    }

    pub(super) fn leave(&mut self, held: Held, domain: &HostKey) {
        match held {
            Held::Permit => {}
            Held::Unproven => self.unproven.remove(domain),
            Held::Stuck => self.stuck.remove(domain),
            Held::Slow => self.slow.remove(domain),
        }
    }

    /// Takes note of a first try. Returns its number, and what ends when it is to give way.
    pub(super) fn begin_trial(&mut self, domain: &HostKey) -> (u64, oneshot::Receiver<()>) {
        let (stays, given_up) = oneshot::channel();
        self.trial_count += 1;
        let trial = Trial { domain: domain.clone(), since: Instant::now(), _stays: stays };
        self.trials.insert(self.trial_count, trial);
        (self.trial_count, given_up)
    }

    /// Frees the slow permit of a first try, unless it had to give it up before.
    pub(super) fn leave_trial(&mut self, number: u64) {
        if let Some(trial) = self.trials.remove(&number) {
            self.leave(Held::Slow, &trial.domain);
        }
    }

    /// How long a URL of `domain` is to stay away that finds none of these free: fetch permits come free within a
    /// second, slow permits may take long.
    pub(super) fn put_off(&mut self, domain: &HostKey, held: Held) -> Duration {
        let now = Instant::now();
        self.put_off.retain(|_, last| *last > now);
        let others = self.put_off.len().clamp(1, KNOWN as usize) as u32;
        let apart = if held == Held::Slow { APART * others } else { CLOSE };
        let last = self.put_off.entry(domain.clone()).or_insert(now);
        *last = (*last + apart).clamp(now + AWAY, now + LONGEST);
        *last - now
    }
}
