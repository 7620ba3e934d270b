//! When a job's turn with its host is: what robots.txt says, then the host's schedule.

use std::time::Duration;

use trawl_common::gcra::{Slot, Standing, Wish};
use trawl_common::outcome::{Outcome, Skip};
use trawl_common::ports::Ask;
use trawl_common::settings::Manners;
use trawl_common::ticket::Ticket;
use trawl_common::time::UnixMs;
use trawl_common::url::Origin;
use trawl_common::waiting::{in_line, not_before};

use crate::Shared;
use crate::job::Job;
use crate::robots::Verdict;
use crate::standstill::Why;

/// When a job's turn is.
pub(crate) enum Turn {
    /// Now.
    Now(Ticket),
    /// At a reserved instant.
    At { wait: Duration, slot: UnixMs },
    /// To be asked for again then. In line, it has a turn, and has looked so often whether the line is still there.
    Later { until: UnixMs, turn: Option<(UnixMs, u8)> },
    /// When the origin's robots.txt is known.
    Unknown(Origin),
    /// Never.
    Never(Outcome),
}

/// When the turn of each job is, asked for all of them at once. A job that was put aside until later keeps that.
pub(crate) async fn turns(shared: &Shared, jobs: &[Job]) -> Vec<Turn> {
    let now = UnixMs::now();
    let prepared: Vec<Result<Ask, Turn>> = jobs.iter().map(|job| prepare(shared, job, now)).collect();
    let asks: Vec<Ask> = prepared.iter().filter_map(|ask| ask.as_ref().ok().cloned()).collect();
    let mut slots = if asks.is_empty() {
        Vec::new()
    } else {
        let reserving = || shared.ports.hosts.reserve(&asks);
        shared.health.until_done("reserving slots", reserving).await
    }
    .into_iter();
    jobs.iter()
        .zip(prepared)
        .map(|(job, ask)| match ask {
            Ok(ask) => turn(shared, job, ask, slots.next().unwrap_or(Slot::Now), now),
            Err(turn) => turn,
        })
        .collect()
}

/// What to ask the schedule, or what is clear without it.
fn prepare(shared: &Shared, job: &Job, now: UnixMs) -> Result<Ask, Turn> {
    let message = &job.message;
    if let Some(until) = not_before(message.until, message.slot, message.turn, now) {
        return Err(match message.slot {
            Some(slot) => Turn::At { wait: until.wait_from(now), slot },
            None => Turn::Later { until, turn: message.turn },
        });
    }
    let url = message.target();
    let Manners { key, mut pace, robots } = job.spider.politeness.manners(&url.host());
    if robots {
        match shared.robots.verdict(url, &job.spider) {
            Verdict::Allowed(None) => {}
            Verdict::Allowed(Some(delay)) => {
                pace = pace.slowed(delay.min(shared.settings.politeness.max_crawl_delay));
            }
            Verdict::Forbidden => return Err(Turn::Never(Outcome::Skipped(Skip::Robots))),
            Verdict::Unreadable(failure) => {
                return Err(Turn::Never(job.failed(&shared.settings.retry, failure)));
            }
            Verdict::Unknown => return Err(Turn::Unknown(url.origin())),
        }
    }
    let wish = Wish {
        pace,
        held: message.slot,
        standing: Standing::of(message.turn.map(|(turn, _)| turn)),
        deadline: message.deadline,
        token: rand::random(),
        lapse: shared.turns.lapse,
    };
    Ok(Ask { key, wish })
}

fn turn(shared: &Shared, job: &Job, Ask { key, wish }: Ask, slot: Slot, now: UnixMs) -> Turn {
    if let Slot::Reserved { wait, .. } | Slot::Later { wait, .. } = slot
        && !wish.pace.interval.is_zero()
    {
        shared.standstill.waits(&key, now.plus(wait), Why::Pace(wish.pace.interval));
    }
    match slot {
        Slot::Now => Turn::Now(Ticket::new(&shared.turns.places, key, &wish, job.misses)),
        Slot::Reserved { wait, at } => Turn::At { wait, slot: at },
        Slot::Later { wait, turn } => {
            let (away, turn) = in_line(wait, turn, job.message.turn, rand::random());
            Turn::Later { until: now.plus(away), turn: Some(turn) }
        }
        Slot::TooLate => Turn::Never(Outcome::Expired),
        Slot::Blocked => Turn::Never(Outcome::Skipped(Skip::Blocked)),
    }
}
