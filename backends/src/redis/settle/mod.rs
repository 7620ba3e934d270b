//! Settlements: links and requests are admitted, then a URL is parked, released or finished.

use std::time::Duration;

use async_trait::async_trait;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{Key, Taken};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claim, ErrorKind, Finish, NewWork, Result, one_each};
use trawl_engine::{Linked, Linking, Parking, Settlements};

use crate::redis::admission::{admission_args, payload_bytes};
use crate::redis::crawls::dead_letters;
use crate::redis::keys::{self, CrawlKeys};
use crate::redis::script_calls::{batches, by_crawl, corrupt};
use crate::redis::scripts::codes::{parked, taken};
use crate::redis::seen::entry;
use crate::redis::{RedisRecords, failed};

/// The time for which `failures:<url>` outlives the last failure.
const FAILURES_TTL: Duration = Duration::from_secs(24 * 3600);

#[async_trait]
impl Settlements for RedisRecords {
    async fn admit_links(&self, worker: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>> {
        let mut all = Vec::with_capacity(pages.len());
        for Linking { page, links } in pages {
            // If one did not fit, the links after it need not be sent.
            if all.last() == Some(&Linked::StoreFull) {
                all.push(Linked::StoreFull);
                continue;
            }
            let taken = self.follow(worker, page, links).await;
            all.push(self.unless_wrong_type(&page.crawl, taken).await?.unwrap_or(Linked::NotHeld));
        }
        Ok(all)
    }

    async fn take_in(&self, crawl: &CrawlRef, urls: &[NewWork]) -> Result<Vec<bool>> {
        self.check_eviction()?;
        let keys = CrawlKeys::new(crawl);
        let mut new = Vec::with_capacity(urls.len());
        for batch in batches(urls, payload_bytes) {
            let mut call = self.scripts.take_in.on(&keys);
            call.arg(crawl.id.as_str());
            admission_args(&mut call, batch);
            let mut answer: Vec<bool> = self.redis.run(&call).await?;
            if answer.is_empty() {
                self.restore_crawl(crawl).await?;
                answer = self.redis.run(&call).await?;
            }
            new.extend(one_each(answer, batch.len(), "URLs")?);
        }
        Ok(new)
    }

    async fn park(&self, worker: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>> {
        let mut held = vec![false; parkings.len()];
        for (crawl, places) in by_crawl(parkings, |parking| &parking.claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            let mut call = self.scripts.park.on(&keys);
            call.arg(worker.as_str()).arg(crawl.id.as_str());
            for &at in &places {
                let parking = &parkings[at];
                call.arg(parking.claim.key.as_str()).arg(parking.until.0).arg(u8::from(parking.failed));
            }
            let answer: Option<Vec<i64>> = self.unless_wrong_type(crawl, self.redis.run(&call).await).await?;
            let Some(answer) = answer else { continue };
            let mut failures = Vec::new();
            for (&at, attempts) in places.iter().zip(one_each(answer, places.len(), "parkings")?) {
                held[at] = attempts != parked::NOT_HELD;
                if held[at] && parkings[at].failed {
                    failures.push((&parkings[at].claim.key, attempts));
                }
            }
            self.mirror_failures(&failures).await?;
        }
        Ok(held)
    }

    async fn release(&self, worker: &WorkerId, claims: &[Claim]) -> Result<()> {
        for (crawl, places) in by_crawl(claims, |claim| &claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            let mut call = self.scripts.release.on(&keys);
            call.arg(worker.as_str());
            for &at in &places {
                call.arg(claims[at].key.as_str());
            }
            self.unless_wrong_type::<()>(crawl, self.redis.run(&call).await).await?;
        }
        Ok(())
    }

    async fn finish(&self, worker: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>> {
        let mut ended = vec![false; finishes.len()];
        for (crawl, places) in by_crawl(finishes, |finish| &finish.claim.crawl) {
            let keys = CrawlKeys::new(crawl);
            let mut call = self.scripts.finish.on(&keys);
            call.arg(worker.as_str()).arg(crawl.id.as_str());
            for &at in &places {
                let finish = &finishes[at];
                entry(&mut call, finish.claim.key.as_str());
                call.arg(finish.terminal.as_str()).arg(finish.why.unwrap_or_default()).arg(finish.bytes);
                call.arg(finish.note.as_ref().map(dead_letters::encode).unwrap_or_default());
                match &finish.landed {
                    Some(url) => entry(&mut call, url.as_str()),
                    None => drop(call.arg("").arg("")),
                }
                call.arg(more_of(finish));
            }
            let answer: Option<Vec<bool>> =
                self.unless_wrong_type(crawl, self.redis.run(&call).await).await?;
            let Some(mut answer) = answer else { continue };
            if answer.pop() == Some(true) {
                self.unless_wrong_type(crawl, self.look_at_quality(crawl).await).await?;
            }
            if answer.pop() == Some(true) {
                self.log_end(crawl, CrawlState::Finished).await;
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
        Ok(ended)
    }
}

impl RedisRecords {
    /// Admits the links of one page, unless the worker no longer holds it.
    async fn follow(&self, worker: &WorkerId, page: &Claim, links: &[NewWork]) -> Result<Linked> {
        if self.check_eviction().is_err() {
            return Ok(Linked::StoreFull);
        }
        let keys = CrawlKeys::new(&page.crawl);
        let mut all = Vec::with_capacity(links.len());
        for batch in batches(links, payload_bytes) {
            let mut call = self.scripts.follow.on(&keys);
            call.arg(worker.as_str()).arg(page.crawl.id.as_str()).arg(page.key.as_str());
            admission_args(&mut call, batch);
            let answer: Vec<i64> = match self.redis.run(&call).await {
                Err(error) if error.kind == ErrorKind::Full => return Ok(Linked::StoreFull),
                answer => answer?,
            };
            if answer.len() != batch.len() {
                return Ok(Linked::NotHeld);
            }
            for reply in answer {
                all.push(match reply {
                    taken::KNOWN => Taken::Seen,
                    taken::NEW => Taken::New,
                    taken::LEFT_OUT => Taken::LeftOut,
                    _ => return Err(corrupt("follow")),
                });
            }
        }
        Ok(Linked::Taken(all))
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
