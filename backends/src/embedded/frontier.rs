//! The frontier in SQLite.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{Heard, Start};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claim, Finish, Heartbeat, NewUrl, Result, Terms, WorkerState};
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Lease, Linked, Linking, Mark, Parking, Probe, Records, Sweep};

use super::crawls::LastRow;
use super::records::{Address, Addressed};
use super::store::Store;
use super::{books, commands, crawls, failures, transitions};

/// The records and books of one state file.
pub(super) struct EmbeddedRecords {
    pub(super) store: Arc<Store>,
    patience: Duration,
    /// What the worker of this process said last, and until when that holds.
    pub(super) worker: Mutex<Option<(WorkerState, Instant)>>,
}

impl EmbeddedRecords {
    /// The frontier in `store`, swept several times within `patience`.
    pub(super) fn new(store: Arc<Store>, patience: Duration) -> Self {
        Self { store, patience, worker: Mutex::default() }
    }
}

fn addressed(messages: &[Message]) -> Vec<Addressed<Message>> {
    let addressed = |message: &Message| (Address::new(&message.crawl, &message.url), message.clone());
    messages.iter().map(addressed).collect()
}

fn address_of(claim: &Claim) -> Address {
    Address::new(&claim.crawl, &claim.url)
}

fn addresses(claims: &[Claim]) -> Vec<Address> {
    claims.iter().map(address_of).collect()
}

#[async_trait]
impl Records for EmbeddedRecords {
    async fn open(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease> {
        let (crawl, holder) = (crawl.clone(), holder.to_owned());
        self.store.call(move |db, memory| transitions::open(db, memory, &crawl, &terms, holder, ttl)).await
    }

    /// The same as to open: a file forgets nothing.
    async fn begin(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease> {
        self.open(crawl, terms, holder, ttl).await
    }

    /// The same as to open: a file forgets nothing, so there is nothing under way to wait for.
    async fn reopen(&self, lost: &Lease, holder: &str, ttl: Duration) -> Result<Lease> {
        self.open(&lost.crawl, lost.terms, holder, ttl).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()> {
        let lease = lease.clone();
        self.store.call(move |_, memory| Ok(memory.leases.renew(&lease, ttl)?)).await
    }

    async fn admit(&self, lease: &Lease, urls: &[NewUrl]) -> Result<Vec<bool>> {
        let lease = lease.clone();
        let addressed = |new: &NewUrl| (Address::new(&lease.crawl, &new.url), new.message(&lease.crawl));
        let urls: Vec<_> = urls.iter().map(addressed).collect();
        self.store.call(move |db, memory| transitions::admit(db, memory, &lease, &urls)).await
    }

    async fn admit_links(&self, worker: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>> {
        let worker = worker.clone();
        let addressed = |Linking { page, links }: &Linking| {
            let link = |new: &NewUrl| (Address::new(&page.crawl, &new.url), new.message(&page.crawl));
            (address_of(page), links.iter().map(link).collect::<Vec<_>>())
        };
        let pages: Vec<_> = pages.iter().map(addressed).collect();
        self.store
            .call(move |db, memory| {
                let last = &mut LastRow::default();
                pages.iter().map(|page| transitions::admit_links(db, memory, last, &worker, page)).collect()
            })
            .await
    }

    /// Nothing to do: the record is the message, and [`Records::admit`] has stored it.
    async fn confirm(&self, _crawl: &CrawlRef, _urls: &[CanonicalUrl]) -> Result<()> {
        Ok(())
    }

    async fn close(&self, lease: Lease) -> Result<()> {
        self.store.call(move |db, memory| transitions::close(db, memory, &lease)).await
    }

    async fn hear(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<Heard>> {
        let (worker, heard) = (worker.clone(), addressed(messages));
        self.store
            .call(move |db, memory| {
                let last = &mut LastRow::default();
                heard.iter().map(|message| transitions::hear(db, memory, last, &worker, message)).collect()
            })
            .await
    }

    async fn keep(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<bool>> {
        let (worker, kept) = (worker.clone(), addressed(messages));
        self.store
            .call(move |db, memory| {
                kept.iter().map(|message| transitions::keep(db, memory, &worker, message)).collect()
            })
            .await
    }

    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>> {
        let (worker, claims) = (worker.clone(), addresses(claims));
        self.store
            .call(move |db, memory| {
                let last = &mut LastRow::default();
                claims.iter().map(|address| transitions::start(db, memory, last, &worker, address)).collect()
            })
            .await
    }

    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>> {
        let worker = worker.clone();
        let addressed = |parking: &Parking| (address_of(&parking.claim), parking.clone());
        let parkings: Vec<_> = parkings.iter().map(addressed).collect();
        self.store
            .call(move |db, memory| {
                let last = &mut LastRow::default();
                parkings.iter().map(|parking| transitions::park(db, memory, last, &worker, parking)).collect()
            })
            .await
    }

    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()> {
        let (worker, claims) = (worker.clone(), addresses(claims));
        self.store
            .call(move |db, memory| {
                let last = &mut LastRow::default();
                claims.iter().try_for_each(|address| transitions::release(db, memory, last, &worker, address))
            })
            .await
    }

    async fn finish(&self, worker: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>> {
        let worker = worker.clone();
        let addressed = |finish: &Finish| (address_of(&finish.claim), finish.clone());
        let finishes: Vec<_> = finishes.iter().map(addressed).collect();
        self.store.call(move |db, memory| transitions::finish(db, memory, &worker, &finishes)).await
    }

    async fn note_invalid(&self, letters: &[DeadLetter]) -> Result<()> {
        let letters = letters.to_vec();
        self.store
            .call(move |db, _| {
                for letter in &letters {
                    let crawl = match letter.crawl.is_adhoc() {
                        true => Some(crawls::ensure(db, &letter.crawl)?),
                        false => crawls::find(db, &letter.crawl)?,
                    };
                    let Some(crawl) = crawl else { continue };
                    failures::add_invalid(db, crawl.key, &letter.url, &letter.note())?;
                    books::invalid(db, crawl.key)?;
                }
                Ok(())
            })
            .await
    }

    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool> {
        let address = Address::new(crawl, url);
        self.store.call(move |db, memory| transitions::has_seen(db, memory, &address)).await
    }

    /// Does all there is to do itself, in one step: a record that is let go is available with that, so no
    /// message is ever to be published or probed for; and in one process nobody listens for the end of a crawl.
    async fn sweep(&self, _worker: &WorkerId) -> Result<Sweep> {
        self.store.call(transitions::sweep).await?;
        Ok(Sweep { rest: self.patience / 12, ..Sweep::default() })
    }

    /// Nothing to do: what cannot be read here is an error of its call.
    async fn buried(&self, _letters: &[DeadLetter]) -> Result<()> {
        Ok(())
    }

    /// Nothing to do: no probe is ever sent.
    async fn probed(&self, _mark: Mark) -> Result<()> {
        Ok(())
    }

    /// Nothing to do: no probe is ever sent.
    async fn passed(&self, _probes: &[Probe]) -> Result<()> {
        Ok(())
    }

    /// Nothing to do: a parked record is a record, which the end of its crawl waits for.
    async fn await_parked(&self, _crawl: &CrawlRef, _longest: Duration) -> Result<()> {
        Ok(())
    }

    /// Nothing to do: no sweep asks for it.
    async fn announced(&self, _crawl: &CrawlRef) -> Result<()> {
        Ok(())
    }

    /// There is one worker, and people see it; those who look into the file from outside see how long it has been at work.
    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<()> {
        let state = WorkerState {
            worker: beat.worker.clone(),
            version: beat.version.to_owned(),
            in_flight: beat.in_flight as u64,
            pages_per_second: beat.pages_per_second,
            health: beat.trouble.clone().unwrap_or_else(|| "ok".to_owned()),
        };
        *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = Some((state, Instant::now() + ttl));
        drop(self.store.submit(|db, _| crawls::touch(db)));
        Ok(())
    }

    /// The records are the messages: what this returns is available already.
    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, urls: &[CanonicalUrl]) -> Result<Vec<Message>> {
        let (from, into, urls) = (from.clone(), into.clone(), urls.to_vec());
        self.store.call(move |db, memory| commands::replay(db, memory, &from, &into, &urls)).await
    }
}
