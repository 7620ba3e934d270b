//! The choice among several proxies.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::spider::ProxyPer;
use trawl_common::web::url::Host;

/// The rest of a proxy that has failed; twice as long each time until it works again.
const FIRST_REST: Duration = Duration::from_secs(10);

/// The longest rest.
const MAX_REST: Duration = Duration::from_secs(600);

/// The number of hosts in a row for which requests through a proxy may fail, none succeeding, before it is to blame.
const HOSTS_TO_BLAME: usize = 3;

/// A value for each of several proxies, with their health.
#[derive(Debug)]
pub(super) struct Exits<T> {
    all: Arc<[T]>,
    health: Arc<Health>,
}

/// The health of the proxies of a spider, and the way in which one is chosen.
#[derive(Debug)]
struct Health {
    per: ProxyPer,
    /// The name of the spider.
    spider: String,
    /// The names of the proxies, without passwords.
    names: Vec<String>,
    states: Mutex<Vec<State>>,
    turn: AtomicUsize,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// The hosts for which requests have failed since one succeeded.
    failed: HashSet<Host>,
    /// The number of rests since a request succeeded.
    rests: u32,
    until: Option<Instant>,
}

impl<T> Clone for Exits<T> {
    fn clone(&self) -> Self {
        Self { all: Arc::clone(&self.all), health: Arc::clone(&self.health) }
    }
}

impl<T> Exits<T> {
    /// Creates them for a spider. Each value comes with the name of its proxy, without a password.
    pub(super) fn new(spider: &str, per: ProxyPer, all: Vec<(String, T)>) -> Self {
        let (names, all): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let states = Mutex::new(vec![State::default(); names.len()]);
        let health = Health { per, spider: spider.to_owned(), names, states, turn: AtomicUsize::default() };
        Self { all: all.into(), health: Arc::new(health) }
    }

    /// Returns the results of `make` for each, with the same health.
    pub(super) fn each<U, E>(&self, make: impl FnMut(&T) -> Result<U, E>) -> Result<Exits<U>, E> {
        let all: Vec<U> = self.all.iter().map(make).collect::<Result<_, E>>()?;
        Ok(Exits { all: all.into(), health: Arc::clone(&self.health) })
    }

    /// Whether any of them meets this condition.
    pub(super) fn any(&self, condition: impl FnMut(&T) -> bool) -> bool {
        self.all.iter().any(condition)
    }

    /// Returns one of them for a check, which takes nobody's turn.
    pub(super) fn first(&self) -> Option<&T> {
        self.all.first()
    }

    /// Returns the names of the proxies.
    pub(super) fn names(&self) -> &[String] {
        &self.health.names
    }

    /// Returns those for a request to `host`, the one to take first, each with its number; those that rest come last.
    pub(super) fn for_host(&self, host: &Host) -> impl Iterator<Item = (usize, &T)> {
        self.health.order(host).into_iter().map(|number| (number, &self.all[number]))
    }

    /// Notes how a request to `host` through that of this number went: a response of the host, or this failure.
    pub(super) fn note(&self, number: usize, host: &Host, failure: Option<&Failure>) {
        match failure {
            Some(failure) if failure.class == Class::Proxy => self.health.rest(number, failure),
            Some(failure) if may_be_the_proxys(failure) => self.health.doubt(number, host, failure),
            _ => self.health.note_works(number),
        }
    }
}

/// Whether the proxy may be to blame in place of the host.
fn may_be_the_proxys(failure: &Failure) -> bool {
    matches!(failure.class, Class::Connect | Class::Tls | Class::Dns | Class::Timeout)
}

impl Health {
    fn order(&self, host: &Host) -> Vec<usize> {
        let number = self.names.len();
        let mut order: Vec<usize> = (0..number).collect();
        match self.per {
            ProxyPer::Request => order.rotate_left(self.turn.fetch_add(1, Ordering::Relaxed) % number.max(1)),
            // The same on each worker; if one is added or removed, only its share of the hosts moves (Thaler and
            // Ravishankar: "A Name-Based Mapping Scheme for Rendezvous").
            ProxyPer::Host => order.sort_by_cached_key(|&one| weight(host.as_str(), &self.names[one])),
            ProxyPer::Spider => order.sort_by_cached_key(|&one| weight(&self.spider, &self.names[one])),
        }
        let (states, now) = (self.states.lock(), Instant::now());
        order.sort_by_key(|&one| states[one].until.filter(|until| *until > now));
        order
    }

    fn note_works(&self, number: usize) {
        let state = std::mem::take(&mut self.states.lock()[number]);
        if state.rests > 0 {
            info!(spider = self.spider, proxy = self.names[number], "the proxy works again");
        }
    }

    fn doubt(&self, number: usize, host: &Host, failure: &Failure) {
        let failed = {
            let failed = &mut self.states.lock()[number].failed;
            failed.insert(host.clone());
            failed.len()
        };
        if failed >= HOSTS_TO_BLAME {
            self.rest(number, failure);
        }
    }

    fn rest(&self, number: usize, failure: &Failure) {
        let rest = {
            let state = &mut self.states.lock()[number];
            let now = Instant::now();
            // Requests that were under way fail together.
            if state.until.is_some_and(|until| until > now) {
                return;
            }
            let rest = FIRST_REST.saturating_mul(2_u32.saturating_pow(state.rests)).min(MAX_REST);
            state.rests = state.rests.saturating_add(1);
            state.until = Some(now + rest);
            state.failed.clear();
            rest
        };
        let proxy = &self.names[number];
        warn!(spider = self.spider, proxy, error = %failure, "no request goes through this proxy for {rest:?}");
    }
}

/// Returns the place of a proxy among all, for a key.
fn weight(key: &str, proxy: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, proxy).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(name: &str) -> Host {
        format!("http://{name}.example/").parse::<trawl_common::web::url::CanonicalUrl>().unwrap().host()
    }

    fn exits(per: ProxyPer, names: &[&str]) -> Exits<()> {
        Exits::new("shop", per, names.iter().map(|name| ((*name).to_owned(), ())).collect())
    }

    fn order(exits: &Exits<()>, name: &str) -> Vec<usize> {
        exits.for_host(&host(name)).map(|(number, ())| number).collect()
    }

    fn failure(class: Class) -> Failure {
        Failure::new(class, "away")
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_that_cannot_be_reached_comes_last_for_longer_each_time_until_it_works() {
        let exits = exits(ProxyPer::Host, &["a", "b", "c"]);
        let (site, usual) = (host("site"), order(&exits, "site"));
        let first = usual[0];
        for seconds in [10, 20, 40] {
            exits.note(first, &site, Some(&failure(Class::Proxy)));
            exits.note(first, &site, Some(&failure(Class::Proxy)));
            assert_eq!(order(&exits, "site"), [&usual[1..], &[first]].concat());
            tokio::time::advance(Duration::from_secs(seconds - 1)).await;
            assert_ne!(order(&exits, "site"), usual);
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(order(&exits, "site"), usual, "it is on trial");
        }
        exits.note(first, &site, None);
        exits.note(first, &site, Some(&failure(Class::Proxy)));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(order(&exits, "site"), usual, "as at first");
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_is_to_blame_if_requests_to_several_hosts_fail_and_not_for_one_that_is_down() {
        let exits = exits(ProxyPer::Spider, &["a", "b"]);
        let usual = order(&exits, "x");
        for _ in 0..10 {
            exits.note(usual[0], &host("down"), Some(&failure(Class::Timeout)));
        }
        exits.note(usual[0], &host("gone"), Some(&failure(Class::Connect)));
        assert_eq!(order(&exits, "x"), usual);
        exits.note(usual[0], &host("well"), Some(&failure(Class::Http)));
        exits.note(usual[0], &host("third"), Some(&failure(Class::Tls)));
        assert_eq!(order(&exits, "x"), usual, "a host has answered in between");
        exits.note(usual[0], &host("down"), Some(&failure(Class::Timeout)));
        exits.note(usual[0], &host("gone"), Some(&failure(Class::Timeout)));
        assert_eq!(order(&exits, "x"), [usual[1], usual[0]]);
    }

    #[test]
    fn requests_go_through_each_in_turn_or_all_of_a_spider_through_one() {
        let in_turn = exits(ProxyPer::Request, &["a", "b", "c"]);
        let first: Vec<usize> = (0..6).map(|_| order(&in_turn, "site")[0]).collect();
        assert_eq!(first, [0, 1, 2, 0, 1, 2]);
        let one = exits(ProxyPer::Spider, &["a", "b", "c"]);
        assert_eq!(order(&one, "x"), order(&one, "y"));
    }

    proptest! {
        #[test]
        fn a_host_keeps_its_proxy_when_another_is_taken_away_and_hosts_are_divided(gone in 0..4_usize) {
            let names = ["a", "b", "c", "d"];
            let all = exits(ProxyPer::Host, &names);
            let left: Vec<&str> = names.iter().copied().filter(|name| *name != names[gone]).collect();
            let fewer = exits(ProxyPer::Host, &left);
            let mut used = HashSet::new();
            for number in 0..100 {
                let name = format!("h{number}");
                let first = order(&all, &name)[0];
                used.insert(first);
                if first != gone {
                    prop_assert_eq!(left[order(&fewer, &name)[0]], names[first]);
                }
            }
            prop_assert_eq!(used.len(), 4);
        }
    }
}
