//! The records.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;
use trawl_common::events::{CrawlEvent, HostEvent};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::judging::Judging;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{ClaimReply, Key, StartReply, Taken};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{BeatReply, Claim, Finish, Heartbeat, NewWork, Result, SourcesRead, Terms};
use trawl_common::spider::SpiderText;
use trawl_common::web::url::CanonicalUrl;

use super::{Fault, Servers};
use crate::records::{
    Admission, Claims, DeadLetters, Heartbeats, Lease, Linked, Linking, Outbox, Parking, Past, Probe,
    ProbeTimes, Recovery, Run, Settlements, Sweep, TaskStart, Urgent,
};

#[async_trait]
impl Admission for Servers {
    async fn open(&self, _: &CrawlRef, _: Terms, _: &str, _: Duration, _: Past) -> Result<Lease> {
        unreachable!("a worker opens no crawl")
    }

    async fn keep_judging(&self, _: &CrawlRef, _: &Judging) -> Result<()> {
        unreachable!("a worker opens no crawl")
    }

    async fn renew(&self, _: &Lease, _: Duration) -> Result<()> {
        unreachable!("a worker has no lease of a crawl")
    }

    async fn admit(&self, _: &Lease, _: &[NewWork]) -> Result<Vec<bool>> {
        unreachable!("a worker admits links")
    }

    async fn run(&self, _: &CrawlRef) -> Result<Run> {
        unreachable!("a worker admits links")
    }

    async fn close(&self, _: Lease, _: Option<SourcesRead>) -> Result<()> {
        unreachable!("a worker has no lease of a crawl")
    }

    async fn keep_spider_text(&self, _: &CrawlRef, _: &SpiderText) -> Result<()> {
        unreachable!("no crawl is opened with one")
    }
}

#[async_trait]
impl Claims for Servers {
    async fn claim(&self, _: &WorkerId, messages: &[Message]) -> Result<Vec<ClaimReply>> {
        let take = ClaimReply::Take { attempts: 0, starts: 0, deadline: None };
        let urls: Vec<_> = messages.iter().map(Message::key).collect();
        self.answers("claim", &urls, |state, url| state.replies.get(url).copied().unwrap_or(take))
    }

    async fn extend(&self, _: &WorkerId, messages: &[Message]) -> Result<Vec<bool>> {
        let fault = self.state().fault;
        if fault == Fault::SlowLeases {
            sleep(Duration::from_secs(1)).await;
        }
        let urls: Vec<_> = messages.iter().map(Message::key).collect();
        self.answers("extend", &urls, |state, _| state.fault != Fault::NotHeld)
    }

    async fn start(&self, _: &WorkerId, claims: &[Claim]) -> Result<Vec<StartReply>> {
        let urls: Vec<_> = claims.iter().map(|claim| claim.key.clone()).collect();
        self.answers("start", &urls, |_, _| StartReply::Go)
    }

    async fn start_task(&self, _: &WorkerId, task: &Message) -> Result<TaskStart> {
        self.check("start")?;
        self.called("start", &task.work);
        let urgent = self.state().urgent.take();
        Ok(match urgent {
            Some(message) => TaskStart::Behind(Box::new(Urgent { message, attempts: 0, starts: 0 })),
            None => TaskStart::This(StartReply::Go),
        })
    }

    async fn has_seen(&self, _: &CrawlRef, _: &CanonicalUrl) -> Result<bool> {
        Ok(false)
    }
}

#[async_trait]
impl Settlements for Servers {
    async fn admit_links(&self, _: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>> {
        self.check("admit links of")?;
        pages.iter().for_each(|linking| self.called("admit links of", &linking.page.key));
        let is_full = self.state().fault == Fault::StoreFullForLinks;
        let taken = |linking: &Linking| match is_full {
            false => Linked::Taken(vec![Taken::New; linking.links.len()]),
            true => Linked::StoreFull,
        };
        Ok(pages.iter().map(taken).collect())
    }

    async fn take_in(&self, crawl: &CrawlRef, urls: &[NewWork]) -> Result<Vec<bool>> {
        self.check("take in for")?;
        self.called("take in for", &crawl.id);
        Ok(vec![true; urls.len()])
    }

    async fn park(&self, _: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>> {
        let urls: Vec<_> = parkings.iter().map(|parking| parking.claim.key.clone()).collect();
        self.answers("park record of", &urls, |state, _| state.fault != Fault::NotHeld)
    }

    async fn release(&self, _: &WorkerId, claims: &[Claim]) -> Result<()> {
        self.check("release record of")?;
        claims.iter().for_each(|claim| self.called("release record of", &claim.key));
        Ok(())
    }

    async fn finish(&self, _: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>> {
        let urls: Vec<_> = finishes.iter().map(|finish| finish.claim.key.clone()).collect();
        self.answers("finish", &urls, |state, _| state.fault != Fault::NotHeld)
    }
}

#[async_trait]
impl Outbox for Servers {
    async fn confirm(&self, messages: &[Message]) -> Result<()> {
        self.check("confirm")?;
        messages.iter().for_each(|message| self.called("confirm", message.key()));
        Ok(())
    }

    async fn list_urgent(&self, tasks: &[&Message]) -> Result<()> {
        self.check("list")?;
        tasks.iter().for_each(|task| self.called("list", &task.work));
        Ok(())
    }
}

#[async_trait]
impl Recovery for Servers {
    async fn sweep(&self, _: &WorkerId) -> Result<Sweep> {
        let lost = std::mem::take(&mut self.state().lost);
        Ok(Sweep { lost, rest: Duration::from_secs(30), ..Sweep::default() })
    }

    async fn probe_sent(&self, _: ProbeTimes) -> Result<()> {
        unreachable!("no sweep asks for a probe")
    }

    async fn probes_returned(&self, _: &[Probe]) -> Result<()> {
        unreachable!("no probe is sent")
    }

    async fn await_parked(&self, _: &CrawlRef, _: Duration) -> Result<()> {
        unreachable!("no crawl waits for what is parked")
    }

    async fn dead_letters_published(&self, _: &[DeadLetter]) -> Result<()> {
        unreachable!("all can be read")
    }

    async fn announced(&self, _: &CrawlEvent) -> Result<()> {
        unreachable!("no crawl ends")
    }

    async fn hosts_announced(&self, _: &HostEvent) -> Result<()> {
        unreachable!("no host refuses")
    }
}

#[async_trait]
impl Heartbeats for Servers {
    async fn beat(&self, _: &Heartbeat, _: Duration) -> Result<BeatReply> {
        Ok(BeatReply::GoOn)
    }

    async fn leave(&self, _: &WorkerId) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl DeadLetters for Servers {
    async fn note_invalid(&self, _: &[DeadLetter]) -> Result<()> {
        unreachable!("all is a URL")
    }

    async fn replay(&self, _: &CrawlRef, _: &CrawlRef, _: &[Key]) -> Result<Vec<Message>> {
        unreachable!("nothing has failed")
    }
}
