//! The URLs and tasks of a worker, and what becomes of them.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::sleep;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    self, Activity, BeatReply, Claim, Claimed, Disposition, Error, ErrorKind, Fatal, Frontier, Heartbeat,
    Join, Joined, Joining, Settled, Settlement,
};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use super::{Memory, State};

impl Join for Memory {
    fn join(&self, _: Joining) -> Joined {
        Joined { frontier: Arc::new(self.clone()), maintenance: Box::pin(pending()) }
    }
}

impl Memory {
    /// Waits for what is in a queue, and holds it.
    async fn claim_from(
        &self,
        queue: fn(&mut State) -> &mut VecDeque<Claimed>,
        some: &Notify,
        max: usize,
    ) -> Result<Vec<Claimed>, Fatal> {
        loop {
            {
                let mut state = self.state();
                let queue = queue(&mut state);
                let count = queue.len().min(max);
                let claimed: Vec<Claimed> = queue.drain(..count).collect();
                if !claimed.is_empty() {
                    state.held.extend(claimed.iter().map(|claimed| claimed.message.key()));
                    return Ok(claimed);
                }
            }
            some.notified().await;
        }
    }
}

#[async_trait]
impl Frontier for Memory {
    async fn claim(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        self.claim_from(|state| &mut state.queue, &self.some_queued, max).await
    }

    async fn claim_tasks(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        self.claim_from(|state| &mut state.tasks, &self.some_tasks, max).await
    }

    async fn start(&self, urls: &[Claim]) -> Result<Vec<StartReply>, Fatal> {
        urls.iter().for_each(|claim| self.called("start", &claim.key));
        let state = self.state();
        let start = |claim: &Claim| state.starts.get(claim.key.as_str()).copied().unwrap_or(StartReply::Go);
        Ok(urls.iter().map(start).collect())
    }

    async fn start_task(&self, task: &Claimed) -> Result<Option<StartReply>, Fatal> {
        if std::mem::take(&mut self.state().comes_behind) {
            self.called("comes behind", &task.message.work);
            self.state().tasks.push_back(task.clone());
            self.some_tasks.notify_one();
            return Ok(None);
        }
        Ok(self.start(&[Claim::new(&task.message)]).await?.pop())
    }

    async fn extend(&self, urls: &[&Message]) -> Result<Vec<bool>, Fatal> {
        let state = self.state();
        Ok(urls.iter().map(|url| !state.lost.contains(&url.key())).collect())
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Settled, Fatal> {
        let refuses = self.state().refuses_settlement;
        if refuses {
            return Err(Fatal(Error::new(ErrorKind::Refused, "no permission").during("finishing")));
        }
        if batch.iter().any(
            |settlement| matches!(&settlement.disposition, Disposition::Finish(ending) if !ending.links.is_empty()),
        ) {
            let has_many = self.state().links_without_end.is_some();
            if has_many {
                self.called("take in", batch.len());
                return pending().await;
            }
        }
        let mut settled = Settled::default();
        for Settlement { message, disposition } in batch {
            self.state().held.remove(&message.key());
            let url = &message.work;
            match disposition {
                Disposition::Finish(ending) => {
                    let terminal = ending.finish.terminal.as_str();
                    match &ending.dead_letter {
                        Some(cause) => {
                            self.called("settle", format_args!("{url} {terminal} {}", cause.reason))
                        }
                        None => self.called("settle", format_args!("{url} {terminal}")),
                    }
                    self.state().links.extend(ending.links.iter().cloned());
                    settled.ended.push(*ending);
                }
                Disposition::Retry { until }
                | Disposition::Snooze { until }
                | Disposition::Requeue { until } => {
                    self.called("put aside", url);
                    let (memory, wait) = (self.clone(), until.wait_from(UnixMs::now()));
                    tokio::spawn(async move {
                        sleep(wait).await;
                        // The instant itself is on a clock that no test turns.
                        memory.queue(Message { until: None, ..message });
                    });
                }
                Disposition::Republish => {
                    self.called("goes round", url);
                    self.queue(message);
                }
                Disposition::Release => self.called("release", url),
            }
        }
        Ok(settled)
    }

    async fn release(&self) -> Result<(), Fatal> {
        let held = std::mem::take(&mut self.state().held);
        held.iter().for_each(|url| self.called("release", url));
        Ok(())
    }

    async fn has_seen(&self, _crawl: &CrawlRef, _url: &CanonicalUrl) -> Result<bool, Fatal> {
        Ok(false)
    }

    async fn beat(&self, _beat: &Heartbeat) -> ports::Result<BeatReply> {
        let mut state = self.state();
        if state.missed_beats > 0 {
            state.missed_beats -= 1;
            return Err(Error::new(ErrorKind::Unavailable, "away"));
        }
        Ok(BeatReply::GoOn)
    }

    fn activity(&self) -> Activity {
        Activity { in_flight: self.state().held.len(), unproven: 0 }
    }
}
