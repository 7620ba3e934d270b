//! A rate for each address, in addition to the one for each host: names cost nothing, and any number of them may
//! lead to one server.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::politeness::gcra::Pace;
use crate::politeness::rate::Rate;
use crate::politeness::waiting::NEAR;
use crate::web::host::{HostKey, network};

/// Maximum number of hosts that may well be one server without being one site.
const MAX_PLAUSIBLE_HOSTS: usize = 50;

/// Length of a period. Hosts asked in this period or in the one before count.
const PERIOD: Duration = Duration::from_secs(60);

/// The addresses that many hosts share, as far as this process has asked them, and the rate at which to ask them.
///
/// The schedule of such an address is kept with those of the hosts, for all workers together. A request waits for
/// its host's slot first, and then for its address's.
#[derive(Debug)]
pub struct AddressRate {
    pace: Pace,
    asked: Mutex<Asked>,
}

#[derive(Debug)]
struct Asked {
    addresses: HashMap<IpAddr, Address>,
    /// The last time that addresses no longer asked were forgotten.
    cleared: Instant,
}

/// One address.
#[derive(Debug)]
struct Address {
    /// The hosts asked in this period, and in the one before: at most one more than [`MAX_PLAUSIBLE_HOSTS`] in each.
    hosts: [HashSet<HostKey>; 2],
    /// The start of this period.
    since: Instant,
    /// The time at which the last request that found too many before it comes back.
    line: Instant,
}

impl AddressRate {
    /// Creates an empty set. `rate` is for one address that many hosts share.
    pub fn new(rate: Rate) -> Self {
        let pace = Pace { interval: rate.interval().unwrap_or_default(), ..Pace::UNLIMITED };
        let asked = Asked { addresses: HashMap::new(), cleared: Instant::now() };
        Self { pace, asked: Mutex::new(asked) }
    }

    /// Returns the pace for one address.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns those `addresses` of `host`, which is about to be asked, that more hosts share than is plausible.
    pub fn shared(&self, host: &HostKey, addresses: &[IpAddr]) -> Vec<IpAddr> {
        if self.pace.interval.is_zero() {
            return Vec::new();
        }
        let now = Instant::now();
        let mut asked = self.asked.lock();
        asked.clear(now);
        let mut shared: Vec<IpAddr> = addresses.iter().map(|&address| network(address)).collect();
        shared.sort();
        shared.dedup();
        shared.retain(|&address| {
            let address = asked.address(address, now);
            address.count(host);
            address.is_crowded()
        });
        shared
    }

    /// Returns the time after which a request that found too many before it at this address comes back: as far
    /// apart as requests are sent.
    pub fn come_back(&self, address: IpAddr) -> Duration {
        let now = Instant::now();
        let mut asked = self.asked.lock();
        let address = asked.address(address, now);
        address.line = address.line.max(now + NEAR) + self.pace.interval;
        address.line - now
    }
}

impl Asked {
    fn address(&mut self, address: IpAddr, now: Instant) -> &mut Address {
        let new = || Address { hosts: Default::default(), since: now, line: now };
        let address = self.addresses.entry(network(address)).or_insert_with(new);
        address.turn_over(now);
        address
    }

    /// Forgets from time to time the addresses that were not asked lately.
    fn clear(&mut self, now: Instant) {
        if now - self.cleared >= PERIOD {
            self.cleared = now;
            self.addresses.retain(|_, address| address.line > now || now - address.since < 2 * PERIOD);
        }
    }
}

impl Address {
    fn turn_over(&mut self, now: Instant) {
        let age = now - self.since;
        if age >= PERIOD {
            let [last, before] = &mut self.hosts;
            *before = std::mem::take(last);
            if age >= 2 * PERIOD {
                before.clear();
            }
            self.since = now;
        }
    }

    fn count(&mut self, host: &HostKey) {
        let hosts = &mut self.hosts[0];
        if hosts.len() <= MAX_PLAUSIBLE_HOSTS && !hosts.contains(host) {
            hosts.insert(host.clone());
        }
    }

    fn is_crowded(&self) -> bool {
        self.hosts.iter().any(|hosts| hosts.len() > MAX_PLAUSIBLE_HOSTS)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::politeness::rate::Unit;

    const ADDRESS: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))];

    fn fifty_a_second() -> AddressRate {
        AddressRate::new(Rate::Limited { count: 50, per: Unit::Second })
    }

    fn host(number: usize) -> HostKey {
        HostKey::from_text(&format!("h{number}.example"))
    }

    /// Whether the address is crowded for each of these hosts, which are asked one after another.
    fn asks(rate: &AddressRate, hosts: std::ops::Range<usize>) -> Vec<bool> {
        hosts.map(|number| !rate.shared(&host(number), &ADDRESS).is_empty()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_a_rate_once_more_hosts_share_it_than_is_plausible() {
        let rate = fifty_a_second();
        assert!(asks(&rate, 0..MAX_PLAUSIBLE_HOSTS).iter().all(|crowded| !crowded));
        assert!(asks(&rate, MAX_PLAUSIBLE_HOSTS..3 * MAX_PLAUSIBLE_HOSTS).iter().all(|crowded| *crowded));
        assert_eq!(rate.shared(&host(0), &ADDRESS), ADDRESS);
        let other = "198.51.100.1".parse().unwrap();
        assert!(rate.shared(&host(0), &[other]).is_empty());
        assert_eq!(rate.shared(&host(1), &[other, ADDRESS[0], ADDRESS[0]]), ADDRESS);
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_that_were_not_asked_lately_do_not_count() {
        let rate = fifty_a_second();
        assert_eq!(asks(&rate, 0..MAX_PLAUSIBLE_HOSTS + 1).last(), Some(&true));
        advance(PERIOD).await;
        assert_eq!(asks(&rate, 0..1), [true]);
        advance(PERIOD).await;
        assert_eq!(asks(&rate, 0..1), [false]);
        advance(2 * PERIOD).await;
        let other = "198.51.100.1".parse().unwrap();
        assert!(rate.shared(&host(0), &[other]).is_empty());
        assert_eq!(rate.asked.lock().addresses.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_find_too_many_before_them_come_back_one_after_another() {
        let rate = fifty_a_second();
        let interval = rate.pace().interval;
        assert_eq!([(); 3].map(|()| rate.come_back(ADDRESS[0])), [1, 2, 3].map(|n| NEAR + n * interval));
        advance(Duration::from_secs(3_600)).await;
        assert_eq!(rate.come_back(ADDRESS[0]), NEAR + interval);
    }

    #[test]
    fn without_a_rate_no_address_is_shared_by_too_many() {
        let rate = AddressRate::new(Rate::Unlimited);
        assert!(asks(&rate, 0..3 * MAX_PLAUSIBLE_HOSTS).iter().all(|crowded| !crowded));
    }
}
