//! Hosts' schedules in memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use trawl_common::gcra::{self, Schedule, Slot};
use trawl_common::ports::{Ask, Hosts, Result};
use trawl_common::url::Host;

/// Fewer schedules than this are never searched for old ones.
const FEW: usize = 1024;

/// The schedules of this process: one process knows all that happens, so nothing is shared.
pub(super) struct MemoryHosts(Mutex<Schedules>);

struct Schedules {
    by_host: HashMap<Host, Schedule>,
    /// At how many to look for old ones: twice as many as the last search left.
    full: usize,
}

impl Default for MemoryHosts {
    fn default() -> Self {
        Self(Mutex::new(Schedules { by_host: HashMap::new(), full: FEW }))
    }
}

impl Schedules {
    fn reserve(&mut self, ask: &Ask, now: u64) -> Slot {
        if self.by_host.len() >= self.full {
            // A schedule that lies in the past means the same as none.
            self.by_host.retain(|_, schedule| schedule.next > now || schedule.line > now);
            self.full = FEW.max(2 * self.by_host.len());
        }
        let schedule = self.by_host.entry(ask.host.clone()).or_default();
        gcra::reserve(schedule, ask.pace, now, ask.held)
    }
}

#[async_trait]
impl Hosts for MemoryHosts {
    async fn reserve(&self, asks: &[Ask]) -> Result<Vec<Slot>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as u64;
        // A panic elsewhere leaves at worst one slot unused.
        let mut schedules = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(asks.iter().map(|ask| schedules.reserve(ask, now)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use trawl_common::gcra::Pace;
    use trawl_common::url::CanonicalUrl;

    use super::*;

    #[test]
    fn schedules_of_the_past_are_forgotten_and_others_kept() {
        let mut schedules = Schedules { by_host: HashMap::new(), full: FEW };
        let ask = |name: u64| Ask {
            host: CanonicalUrl::parse(&format!("http://h{name}.example/")).unwrap().host(),
            pace: Pace { interval: Duration::from_secs(1), burst: 1 },
            held: None,
        };
        for name in 0..10 * FEW as u64 {
            schedules.reserve(&ask(name), 1_000_000 * name);
        }
        assert!(schedules.by_host.len() <= FEW);
        let last = 10 * FEW as u64 - 1;
        let Slot::Granted { wait, .. } = schedules.reserve(&ask(last), 1_000_000 * last) else { panic!() };
        assert_eq!(wait, Duration::from_secs(1));
    }
}
