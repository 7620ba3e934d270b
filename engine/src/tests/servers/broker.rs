//! The broker.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use trawl_common::events::Event;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::ladder::Wake;
use trawl_common::frontier::message::Message;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

use super::Servers;
use crate::broker::{Broker, Consumer, Delivery, Newer, Parked, Receipt};
use crate::records::{Probe, ProbeTimes};

/// A stream of the queued messages, two at a time.
struct Stream(Servers);

#[async_trait]
impl Consumer for Stream {
    async fn next(&mut self, _max: usize) -> Result<Vec<Delivery>> {
        loop {
            let deliveries: Vec<Delivery> = {
                let queue = &mut self.0.state().queue;
                let count = queue.len().min(2);
                queue.drain(..count).collect()
            };
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            self.0.some_queued.notified().await;
        }
    }
}

#[async_trait]
impl Broker for Servers {
    fn for_worker(&self) -> Arc<dyn Broker> {
        Arc::new(self.clone())
    }

    async fn publish(&self, messages: &[Message]) -> Result<()> {
        self.check("publish")?;
        messages.iter().for_each(|message| self.called("publish", &message.work));
        Ok(())
    }

    async fn park(&self, parked: &[Parked]) -> Result<()> {
        self.check("park message of")?;
        parked.iter().for_each(|parked| self.called("park message of", &parked.message.work));
        Ok(())
    }

    async fn pass_on(&self, newer: &[Newer], wake: Wake) -> Result<()> {
        self.check("pass on")?;
        let seconds = wake.wait.as_secs();
        assert!((3..16).contains(&seconds), "in {seconds} s another worker may take it");
        newer.iter().for_each(|newer| self.called("pass on", String::from_utf8_lossy(&newer.message)));
        Ok(())
    }

    fn wake(&self, until: UnixMs) -> Wake {
        let now = UnixMs::now();
        Wake::after(now, until.wait_from(now))
    }

    async fn dead_letter(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        self.check("dead letter")?;
        dead_letters.iter().for_each(|dead_letter| self.called("dead letter", &dead_letter.url));
        Ok(())
    }

    async fn probe(&self, _: ProbeTimes) -> Result<Vec<Probe>> {
        unreachable!("no sweep asks for a probe")
    }

    async fn longest_parked(&self) -> Result<Duration> {
        unreachable!("no crawl waits for what is parked")
    }

    async fn announce(&self, _: &Event) -> Result<()> {
        unreachable!("no crawl ends")
    }

    async fn consume(&self, _: u16, _: u16) -> Result<Box<dyn Consumer>> {
        Ok(Box::new(Stream(self.clone())))
    }

    async fn ack(&self, receipts: &[Receipt]) -> Result<()> {
        receipts.iter().for_each(|receipt| self.called("ack", receipt.tag));
        Ok(())
    }

    async fn release(&self, receipts: &[Receipt]) -> Result<()> {
        receipts.iter().for_each(|receipt| self.called("release", receipt.tag));
        Ok(())
    }

    async fn close(&self) -> Result<()> {
        Ok(())
    }
}
