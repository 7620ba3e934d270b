//! The frontier on Redis: records in `T:pending:<crawl>`, stats in `T:crawl:<id>`.

use std::time::Duration;

use async_trait::async_trait;
use redis::ScriptInvocation;
use trawl_common::events::{CrawlEvent, HostEvent};
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, Key, MAX_STARTS, Start, Taken};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{
    BeatReply, Claim, Error, ErrorKind, Finish, Heartbeat, MAX_INVALID, NewWork, Result, SourcesRead, Terms,
    one_each,
};
use trawl_common::spider::SpiderText;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Lease, Linked, Linking, Parking, Probe, ProbeTimes, Records, Sweep, TaskStart};

use crate::redis::claim::Purpose;
use crate::redis::crawls::control;
use crate::redis::keys::{self, CrawlKeys};
use crate::redis::recovery::second_home::Past;
use crate::redis::script_calls::{BATCH, batches, by_crawl, corrupt, optional};
use crate::redis::seen::{entry, seen_keys};
use crate::redis::{RedisRecords, failed};

/// How long `failures:<url>` outlives the last failure.
const FAILURES_TTL: Duration = Duration::from_secs(24 * 3600);

impl RedisRecords {
    /// Admits the links of one page, unless the worker no longer holds it.
    async fn follow(&self, worker: &WorkerId, page: &Claim, links: &[NewWork]) -> Result<Linked> {
        if self.check_eviction().is_err() {
            return Ok(Linked::StoreFull);
        }
        let keys = CrawlKeys::new(&page.crawl);
        let mut taken = Vec::with_capacity(links.len());
        for batch in batches(links, payload_bytes) {
            let mut call = self.scripts.follow.prepare_invoke();
            admission_keys(&mut call, &keys);
            call.arg(worker.as_str()).arg(page.crawl.id.as_str()).arg(page.key.as_str());
            admission_args(&mut call, batch);
            let answer: Vec<u8> = match self.redis.run(&call).await {
                Err(error) if error.kind == ErrorKind::Full => return Ok(Linked::StoreFull),
                answer => answer?,
            };
            if answer.len() != batch.len() {
                return Ok(Linked::NotHeld);
            }
            for reply in answer {
                taken.push(match reply {
                    0 => Taken::Seen,
                    1 => Taken::New,
                    2 => Taken::LeftOut,
                    _ => return Err(corrupt("follow")),
                });
            }
        }
        Ok(Linked::Taken(taken))
    }

    /// Informational only, so it is skipped if the server is full.
    async fn mirror_failures(&self, attempts: &[(&Key, i64)]) -> Result<()> {
        if attempts.is_empty() {
            return Ok(());
        }
        let mut pipeline = redis::pipe();
        for (key, count) in attempts {
            let seconds = FAILURES_TTL.as_secs();
            pipeline.cmd("SET").arg(keys::failures(key)).arg(count).arg("EX").arg(seconds).ignore();
        }
        match pipeline.query_async(&mut self.redis.clone()).await.map_err(failed) {
            Err(error) if error.kind == ErrorKind::Full => Ok(()),
            written => written,
        }
    }
}

/// Returns a page's additions to the stats, for the script.
fn more_of(finish: &Finish) -> String {
    let total = Some(finish.left_out.total()).filter(|&links| links > 0);
    let total = total.map(|links| ("left_out".to_owned(), links));
    finish.reasons().chain(total).map(|(name, number)| format!("{number} {name}\n")).collect()
}

#[async_trait]
impl Records for RedisRecords {
    async fn begin(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease> {
        self.take_lease(crawl, terms, holder, ttl, Past::None).await
    }

    async fn open(&self, crawl: &CrawlRef, terms: Terms, holder: &str, ttl: Duration) -> Result<Lease> {
        self.take_lease(crawl, terms, holder, ttl, Past::Possible).await
    }

    async fn reopen(&self, lost: &Lease, holder: &str, ttl: Duration) -> Result<Lease> {
        self.take_lease(&lost.crawl, lost.terms, holder, ttl, Past::Certain).await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<()> {
        let keys = CrawlKeys::new(&lease.crawl);
        let mut call = self.scripts.renew.prepare_invoke();
        call.key(&keys.leases).arg(lease.token).arg(ttl.as_millis() as u64);
        self.follow_clock().await?;
        if self.redis.run(&call).await? { Ok(()) } else { Err(stale(lease)) }
    }

    async fn admit(&self, lease: &Lease, urls: &[NewWork]) -> Result<Vec<bool>> {
        self.check_eviction()?;
        let keys = CrawlKeys::new(&lease.crawl);
        let mut new = Vec::with_capacity(urls.len());
        for batch in batches(urls, payload_bytes) {
            let mut call = self.scripts.admit.prepare_invoke();
            call.key(&keys.leases);
            admission_keys(&mut call, &keys);
            call.arg(lease.token).arg(lease.crawl.id.as_str());
            admission_args(&mut call, batch);
            let answer: Vec<bool> = self.redis.run(&call).await?;
            if answer.len() != batch.len() {
                return Err(stale(lease));
            }
            new.extend(answer);
        }
        Ok(new)
    }

    async fn admit_links(&self, worker: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>> {
        let mut all = Vec::with_capacity(pages.len());
        for Linking { page, links } in pages {
            // If one did not fit, the links after it need not be sent.
            if all.last() == Some(&Linked::StoreFull) {
                all.push(Linked::StoreFull);
                continue;
            }
            let taken = self.follow(worker, page, links).await;
            all.push(self.unless_foreign(&page.crawl, taken).await?.unwrap_or(Linked::NotHeld));
        }
        Ok(all)
    }

    async fn take_in(&self, crawl: &CrawlRef, urls: &[NewWork]) -> Result<Vec<bool>> {
        self.check_eviction()?;
        let keys = CrawlKeys::new(crawl);
        let mut new = Vec::with_capacity(urls.len());
        for batch in batches(urls, payload_bytes) {
            let mut call = self.scripts.take_in.prepare_invoke();
            admission_keys(&mut call, &keys);
            call.arg(crawl.id.as_str());
            admission_args(&mut call, batch);
            let mut answer: Vec<bool> = self.redis.run(&call).await?;
            if answer.is_empty() {
                self.restore(crawl).await?;
                answer = self.redis.run(&call).await?;
            }
            new.extend(one_each(answer, batch.len(), "URLs")?);
        }
        Ok(new)
    }

    async fn confirm(&self, crawl: &CrawlRef, confirmed: &[Key]) -> Result<()> {
        let keys = CrawlKeys::new(crawl);
        for batch in confirmed.chunks(BATCH) {
            let mut call = self.scripts.confirm.prepare_invoke();
            call.key(&keys.pending).key(&keys.outbox).arg(crawl.id.as_str());
            for key in batch {
                call.arg(key.as_str());
            }
            self.unless_foreign::<()>(crawl, self.redis.run(&call).await).await?;
        }
        Ok(())
    }

    async fn close_read(&self, lease: Lease, read: Option<SourcesRead>) -> Result<()> {
        let keys = CrawlKeys::new(&lease.crawl);
        let mut call = self.scripts.close.prepare_invoke();
        call.key(&keys.leases).key(&keys.crawl).key(&keys.pending).arg(lease.token);
        call.arg(match read {
            None => "-",
            Some(SourcesRead { incomplete: true, .. }) => "unread",
            Some(SourcesRead { is_once: true, .. }) => "once",
            Some(_) => "read",
        });
        for (reason, number) in read.iter().flat_map(SourcesRead::reasons) {
            call.arg(reason).arg(number);
        }
        match self.redis.run::<u8>(&call).await? {
            0 => Err(stale(&lease)),
            2 => {
                self.log_discovery(&lease.crawl).await?;
                self.write_end_down(&lease.crawl, CrawlState::Finished).await;
                Ok(())
            }
            3 => self.log_discovery(&lease.crawl).await,
            _ => Ok(()),
        }
    }

    async fn claim(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<ClaimReply>> {
        self.claim_all(worker, messages, Purpose::Claim).await
    }

    async fn extend(&self, worker: &WorkerId, messages: &[Message]) -> Result<Vec<bool>> {
        let reply = self.claim_all(worker, messages, Purpose::Extend).await?;
        Ok(reply.into_iter().map(|reply| matches!(reply, ClaimReply::Take { .. })).collect())
    }

    async fn start(&self, worker: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>> {
        let mut starts = vec![Start::Lost; claims.len()];
        for (crawl, places) in by_crawl(claims, |claim| &claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.start.prepare_invoke();
                call.key(&keys.pending).key(&keys.crawl).key(&keys.begun);
                call.arg(worker.as_str()).arg(MAX_STARTS);
                for &at in places {
                    call.arg(claims[at].key.as_str());
                }
                let answer: Option<Vec<u8>> = self.unless_foreign(crawl, self.redis.run(&call).await).await?;
                let Some(answer) = answer else { continue };
                if answer.is_empty() {
                    self.obey(crawl).await?;
                    // They are requeued: their hosts may be blocked, and the check must not be bypassed.
                    let claims: Vec<Claim> = places.iter().map(|&at| claims[at].clone()).collect();
                    self.release(worker, &claims).await?;
                    continue;
                }
                for (&at, reply) in places.iter().zip(one_each(answer, places.len(), "starts")?) {
                    starts[at] = start_of(reply).ok_or_else(|| corrupt("start"))?;
                }
            }
        }
        Ok(starts)
    }

    async fn start_task(&self, worker: &WorkerId, task: &Message) -> Result<TaskStart> {
        self.start_one(worker, task).await
    }

    async fn list_urgent(&self, tasks: &[&Message]) -> Result<()> {
        self.list_all_urgent(tasks).await
    }

    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>> {
        let mut held = vec![false; parkings.len()];
        for (crawl, places) in by_crawl(parkings, |parking| &parking.claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.park.prepare_invoke();
                call.key(&keys.pending)
                    .key(&keys.outbox)
                    .key(&keys.begun)
                    .arg(worker.as_str())
                    .arg(crawl.id.as_str());
                for &at in places {
                    let parking = &parkings[at];
                    call.arg(parking.claim.key.as_str()).arg(parking.until.0).arg(u8::from(parking.failed));
                }
                let answer: Option<Vec<i64>> =
                    self.unless_foreign(crawl, self.redis.run(&call).await).await?;
                let Some(answer) = answer else { continue };
                let mut failures = Vec::new();
                for (&at, attempts) in places.iter().zip(one_each(answer, places.len(), "parkings")?) {
                    held[at] = attempts >= 0;
                    if held[at] && parkings[at].failed {
                        failures.push((&parkings[at].claim.key, attempts));
                    }
                }
                self.mirror_failures(&failures).await?;
            }
        }
        Ok(held)
    }

    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()> {
        for (crawl, places) in by_crawl(claims, |claim| &claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.release.prepare_invoke();
                call.key(&keys.pending).key(&keys.begun).arg(worker.as_str());
                for &at in places {
                    call.arg(claims[at].key.as_str());
                }
                self.unless_foreign::<()>(crawl, self.redis.run(&call).await).await?;
            }
        }
        Ok(())
    }

    async fn finish(&self, worker: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>> {
        let mut ended = vec![false; finishes.len()];
        for (crawl, places) in by_crawl(finishes, |finish| &finish.claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.finish.prepare_invoke();
                call.key(&keys.crawl).key(&keys.pending).key(&keys.failed).key(&keys.outbox).key(&keys.gone);
                seen_keys(&mut call, &keys);
                call.key(&keys.begun).key(&keys.hosts).arg(worker.as_str()).arg(crawl.id.as_str());
                for &at in places {
                    let finish = &finishes[at];
                    entry(&mut call, finish.claim.key.as_str());
                    call.arg(finish.terminal.as_str()).arg(finish.why.unwrap_or_default()).arg(finish.bytes);
                    call.arg(finish.note.as_ref().map(control::encode).unwrap_or_default());
                    match &finish.landed {
                        Some(url) => entry(&mut call, url.as_str()),
                        None => drop(call.arg("").arg("")),
                    }
                    call.arg(more_of(finish));
                }
                let answer: Option<Vec<bool>> =
                    self.unless_foreign(crawl, self.redis.run(&call).await).await?;
                let Some(mut answer) = answer else { continue };
                if answer.pop() == Some(true) {
                    self.write_end_down(crawl, CrawlState::Finished).await;
                }
                let mut failures = Vec::new();
                for (&at, reply) in places.iter().zip(one_each(answer, places.len(), "ends")?) {
                    ended[at] = reply;
                    let Finish { claim, terminal, note, .. } = &finishes[at];
                    let failed = note.as_ref().filter(|_| reply && *terminal == Terminal::Failed);
                    failures.extend(failed.map(|note| (&claim.key, i64::from(note.cause.attempts))));
                }
                self.mirror_failures(&failures).await?;
            }
        }
        Ok(ended)
    }

    async fn note_invalid(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        for (crawl, places) in by_crawl(dead_letters, |dead_letter| &dead_letter.crawl) {
            let keys = CrawlKeys::new(crawl);
            for places in places.chunks(BATCH) {
                let mut call = self.scripts.invalid.prepare_invoke();
                call.key(&keys.crawl).key(&keys.invalid).arg(MAX_INVALID);
                for &at in places {
                    call.arg(&dead_letters[at].url).arg(control::encode(&dead_letters[at].note()));
                }
                let is_known = self.unless_foreign(crawl, self.redis.run(&call).await).await?;
                if is_known == Some(false) && crawl.is_adhoc() {
                    self.restore(crawl).await?;
                    let _: bool = self.redis.run(&call).await?;
                }
            }
        }
        Ok(())
    }

    async fn keep_spider_text(&self, crawl: &CrawlRef, text: &SpiderText) -> Result<()> {
        let keep = redis::cmd("SET").arg(CrawlKeys::new(crawl).text).arg(text.as_str()).arg("NX").to_owned();
        self.redis.query::<Option<String>>(&keep).await.map(drop)
    }

    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool> {
        self.knows(crawl, url).await
    }

    async fn sweep(&self, worker: &WorkerId) -> Result<Sweep> {
        self.sweep_step(worker).await
    }

    async fn probe_sent(&self, times: ProbeTimes) -> Result<()> {
        self.write(redis::cmd("HSET").arg(keys::WATERMARKS).arg("sent").arg(times.sent.0)).await
    }

    async fn probes_returned(&self, probes: &[Probe]) -> Result<()> {
        let mut call = self.scripts.watermark.key(keys::WATERMARKS);
        for probe in probes {
            call.arg(probe.line.as_str()).arg(probe.times.sent.0).arg(probe.times.previous.0);
        }
        self.redis.run(&call).await
    }

    async fn await_parked(&self, crawl: &CrawlRef, longest: Duration) -> Result<()> {
        let mut call = self.scripts.wait.key(CrawlKeys::new(crawl).crawl);
        // A message that has left a rung and is not yet in `due_queue` is in neither.
        call.arg((longest + self.lost_after).as_millis() as u64);
        self.redis.run(&call).await
    }

    async fn dead_letters_published(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        for (crawl, places) in by_crawl(dead_letters, |dead_letter| &dead_letter.crawl) {
            self.is_reported(crawl, places.into_iter().map(|at| dead_letters[at].url.as_str())).await?;
        }
        Ok(())
    }

    async fn announced(&self, event: &CrawlEvent) -> Result<()> {
        if !event.kind.is_end() {
            return self.keep_announced(event).await;
        }
        let crawl = &event.stats.crawl_ref();
        self.write(redis::cmd("HSET").arg(CrawlKeys::new(crawl).crawl).arg("announced").arg(1)).await
    }

    async fn hosts_announced(&self, event: &HostEvent) -> Result<()> {
        match &self.second_home {
            Some(home) => home.hosts.news_announced(event).await,
            None => Ok(()),
        }
    }

    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<Vec<Message>> {
        self.replay_all(from, into, keys).await
    }

    async fn beat(&self, beat: &Heartbeat, ttl: Duration) -> Result<BeatReply> {
        self.write_beat(beat, ttl).await
    }

    async fn leave(&self, worker: &WorkerId) -> Result<()> {
        self.end_beats(worker).await
    }
}

/// Decodes the reply of scripts to a start; `None` for an unknown one.
pub(crate) fn start_of(reply: u8) -> Option<Start> {
    Some(match reply {
        0 => Start::Lost,
        1 => Start::Go,
        2 => Start::Poison,
        3 => Start::Full,
        4 => Start::Awaited,
        _ => return None,
    })
}

fn admission_keys(call: &mut ScriptInvocation<'_>, keys: &CrawlKeys) {
    call.key(&keys.crawl);
    seen_keys(call, keys);
    call.key(&keys.pending).key(&keys.outbox).key(&keys.hosts);
}

fn admission_args(call: &mut ScriptInvocation<'_>, urls: &[NewWork]) {
    for url in urls {
        entry(call, url.work.as_str());
        call.arg(url.lane.as_str());
        call.arg(optional(url.deadline.map(|deadline| deadline.0))).arg(url.depth);
        if let Some(payload) = url.work.payload() {
            call.arg(payload);
        }
    }
}

/// Approximate size of its payload in bytes, beside its record.
fn payload_bytes(url: &NewWork) -> usize {
    url.work.payload_bytes()
}

fn stale(lease: &Lease) -> Error {
    let crawl = &lease.crawl.id;
    Error::new(ErrorKind::Stale, format!("crawl {crawl} is over, or its lease has lapsed"))
}
