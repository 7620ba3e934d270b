//! The lanes of a fleet: the number of waiting messages, from the broker, and their age, from the probes of the
//! sweep.

use std::collections::HashMap;
use std::time::Duration;

use trawl_common::ports::{LaneName, LaneState, Result};
use trawl_common::time::UnixMs;

use crate::rabbitmq::Depth;
use crate::redis::RedisRecords;
use crate::redis::keys;

impl RedisRecords {
    pub(crate) async fn read_lanes(&self) -> Result<Vec<LaneState>> {
        let Some(queues) = &self.queues else { return Ok(Vec::new()) };
        let depths = queues.read().await?;
        let known: HashMap<String, String> =
            self.redis.query(redis::cmd("HGETALL").arg(keys::WATERMARKS)).await?;
        let probes = Probes { known: &known, now: self.now().await?, lost_after: self.lost_after };
        Ok(depths.into_iter().map(|(lane, depth)| probes.lane(lane, depth)).collect())
    }
}

/// The results of the sweep's probes.
///
/// A queue is first in, first out. A message that waits in it was sent after the last probe that came back through
/// it; otherwise it would have been delivered as well. A probe is sent every half `recovery.lost_after`, which is
/// the precision of the age; no message has to be read for it.
struct Probes<'a> {
    known: &'a HashMap<String, String>,
    now: UnixMs,
    lost_after: Duration,
}

impl Probes<'_> {
    fn lane(&self, lane: LaneName, Depth { messages, consumers }: Depth) -> LaneState {
        // Nobody consumes the other queues, and no program of trawl consumes that of dead letters.
        let is_consumed = lane.source_queue().is_some() || lane == LaneName::Jobs;
        let oldest = if messages > 0 { self.age(lane) } else { None };
        LaneState { lane, messages, consumers: is_consumed.then_some(consumers), oldest }
    }

    /// Returns the age; `None` also if no probe was sent for a while, as when no worker is alive: then nobody
    /// knows when the queue was last empty.
    fn age(&self, lane: LaneName) -> Option<Duration> {
        let instant = |field: &str| Some(UnixMs(self.known.get(field)?.parse().ok()?));
        let delivered = instant(lane.source_queue()?.as_str())?;
        let is_looked_after = instant("sent")?.plus(2 * self.lost_after) > self.now;
        is_looked_after.then(|| self.now.since(delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = UnixMs(1_700_000_000_000);

    fn lane(lane: LaneName, messages: u64, known: &[(&str, u64)]) -> LaneState {
        let known =
            known.iter().map(|(field, ago)| ((*field).to_owned(), (NOW.0 - ago).to_string())).collect();
        let probes = Probes { known: &known, now: NOW, lost_after: Duration::from_secs(60) };
        probes.lane(lane, Depth { messages, consumers: 3 })
    }

    #[test]
    fn what_waits_in_a_queue_is_no_older_than_the_last_probe_that_came_back_through_it() {
        let probes = [("bulk", 400_000), ("due", 30_000), ("sent", 20_000)];
        let bulk = lane(LaneName::Bulk, 7, &probes);
        assert_eq!((bulk.messages, bulk.consumers), (7, Some(3)));
        assert_eq!(bulk.oldest, Some(Duration::from_secs(400)));
        assert_eq!(lane(LaneName::Due, 1, &probes).oldest, Some(Duration::from_secs(30)));
    }

    #[test]
    fn the_age_is_unknown_where_nothing_waits_where_no_probe_goes_and_when_nobody_sends_probes() {
        let probes = [("bulk", 400_000), ("sent", 20_000)];
        assert_eq!(lane(LaneName::Bulk, 0, &probes).oldest, None);
        assert_eq!(lane(LaneName::Priority, 1, &probes).oldest, None);
        let waiting = lane(LaneName::Wait, 1, &probes);
        assert_eq!((waiting.oldest, waiting.consumers), (None, None));
        assert_eq!(lane(LaneName::Bulk, 1, &[("bulk", 400_000), ("sent", 300_000)]).oldest, None);
    }
}
