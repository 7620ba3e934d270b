//! Requests that wait in hand for their turn: for robots.txt and for what a producer reads. Pages wait in the queue.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::info;

use crate::gcra::{Leave, Slot, Wish};
use crate::health::Health;
use crate::host::HostKey;
use crate::outcome::Failure;
use crate::ports::{Ask, Hosts, Refusal};
use crate::settings::{Manners, Politeness};
use crate::ticket::{Places, Ticket};
use crate::time::UnixMs;
use crate::waiting::in_line;

/// What a process needs to ask hosts in their turn.
#[derive(Clone)]
pub struct Turns {
    /// Who keeps the schedules.
    pub hosts: Arc<dyn Hosts>,
    /// What becomes known of servers that fail.
    pub health: Arc<Health>,
    /// The places of this process.
    pub places: Arc<Places>,
    /// After how long a place is free that nobody leaves or keeps.
    pub lapse: Duration,
}

/// A turn in the line of a host, and how often whoever has it came back for it.
pub type InLine = (UnixMs, u8);

/// Why a host is not to be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// Its slots are taken as far ahead as any are given: to be asked for again then, with this turn.
    Later(UnixMs, InLine),
    /// A person forbade to ask it.
    Blocked,
}

impl Turns {
    /// Waits for a turn with a host, unless that is further ahead than slots are given. `turn` is what an earlier
    /// [`NotNow::Later`] said.
    pub async fn wait(&self, manners: &Manners, turn: Option<InLine>) -> Result<Ticket, NotNow> {
        let mut held = None;
        loop {
            let wish = Wish {
                pace: manners.pace,
                held,
                turn: turn.map(|(turn, _)| turn),
                deadline: None,
                token: rand::random(),
                lapse: self.lapse,
            };
            let ask = [Ask { key: manners.key.clone(), wish }];
            let reserving = || self.hosts.reserve(&ask);
            match self.health.until_done("reserving slots", reserving).await.pop() {
                Some(Slot::Reserved { wait, at }) => {
                    held = Some(at);
                    sleep(wait).await;
                }
                Some(Slot::Later { wait, turn: new }) => {
                    let (away, turn) = in_line(wait, new, turn, rand::random());
                    return Err(NotNow::Later(UnixMs::now().plus(away), turn));
                }
                Some(Slot::Blocked) => return Err(NotNow::Blocked),
                Some(Slot::Now | Slot::TooLate) | None => {
                    return Ok(Ticket::new(&self.places, manners.key.clone(), &wish, 0));
                }
            }
        }
    }

    /// Does `work`, and meanwhile frees the places of requests that are over.
    pub async fn freeing<T>(&self, work: impl Future<Output = T>) -> T {
        let done = tokio::select! {
            done = work => done,
            never = self.places.freeing(&*self.hosts) => match never {},
        };
        self.places.free(&*self.hosts).await;
        done
    }

    /// Has everyone leave a host alone that answered with `failure`, for as long as it says, or else as `politeness` does.
    /// Returns until when.
    pub async fn push_back(&self, key: &HostKey, politeness: &Politeness, failure: &Failure) -> UnixMs {
        let leave = Leave {
            asked: failure.retry_after,
            base: politeness.backoff,
            jitter: rand::random(),
            most: politeness.max_backoff,
        };
        let refusal = Refusal { status: failure.status.unwrap_or_default(), leave };
        self.places.refused(key);
        let pushing = || self.hosts.push_back(key, &refusal);
        let until = self.health.until_done("pushing a host back", pushing).await;
        info!(host = %key, status = refusal.status, %until, "the host wants to be left alone");
        until
    }
}
