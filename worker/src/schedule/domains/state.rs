//! The places of pages that are slow, or may prove so.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::oneshot;
use tokio::time::Instant;
use trawl_common::web::host::HostKey;

use super::put_off::PutOff;

#[derive(Default)]
pub(super) struct State {
    /// The pages that have a place, by number, in the order in which they started.
    places: BTreeMap<u64, Place>,
    /// Number of the place that was taken last.
    count: u64,
    /// Number of these pages by domain.
    of: Pages,
    /// Number of these pages that have a fetch permit as well.
    unproven: usize,
    pub(super) put_off: PutOff,
    /// The last instant at which a domain may have kept threads busy.
    pub(super) kept_busy: Option<Instant>,
}

/// The place of a page.
pub(super) struct Place {
    pub(super) domain: HostKey,
    pub(super) since: Instant,
    has_permit: bool,
    /// Dropped when the page has to give way.
    _stays: oneshot::Sender<()>,
}

/// Number of pages by domain.
#[derive(Default)]
pub(super) struct Pages(HashMap<HostKey, usize>);

impl Pages {
    pub(super) fn of(&self, domain: &HostKey) -> usize {
        self.0.get(domain).copied().unwrap_or_default()
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
    pub(super) fn all(&self) -> usize {
        self.places.len()
    }

    pub(super) fn of(&self, domain: &HostKey) -> usize {
        self.of.of(domain)
    }

    /// Number of pages with a fetch permit and a place.
    pub(super) fn unproven(&self) -> usize {
        self.unproven
    }

    /// Number of slow pages: those with a place alone.
    pub(super) fn slow(&self) -> usize {
        self.places.len() - self.unproven
    }

    pub(super) fn has_other_than(&self, domain: &HostKey) -> bool {
        self.of.0.keys().any(|other| other != domain)
    }

    /// Returns the slow pages, in the order in which they started.
    pub(super) fn slow_pages(&self) -> impl Iterator<Item = (u64, &Place)> {
        self.places.iter().filter(|(_, place)| !place.has_permit).map(|(number, place)| (*number, place))
    }

    /// Gives a page a place. Returns the number of the place, and a receiver that ends when the page has to give way.
    pub(super) fn enter(&mut self, domain: &HostKey, has_permit: bool) -> (u64, oneshot::Receiver<()>) {
        let (stays, given_up) = oneshot::channel();
        self.count += 1;
        self.unproven += usize::from(has_permit);
        self.of.add(domain);
        let place = Place { domain: domain.clone(), since: Instant::now(), has_permit, _stays: stays };
        self.places.insert(self.count, place);
        (self.count, given_up)
    }

    /// Records that a page with a place gives up its fetch permit.
    pub(super) fn give_permit_up(&mut self, number: u64) {
        if let Some(place) = self.places.get_mut(&number) {
            self.unproven -= usize::from(std::mem::take(&mut place.has_permit));
        }
    }

    /// Frees a place, unless the page has lost it before.
    pub(super) fn leave(&mut self, number: u64) {
        let Some(place) = self.places.remove(&number) else { return };
        self.unproven -= usize::from(place.has_permit);
        self.put_off.note_free(place.since.elapsed());
        self.of.remove(&place.domain);
    }
}
