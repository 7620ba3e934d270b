//! The report of a simulation.

use serde::Serialize;

use super::scenario::Scenario;

/// The result of a scenario. Instants in seconds from its beginning, shares from 0 to 1.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The scenario.
    pub scenario: Scenario,
    /// Number of URLs that were fetched.
    pub done: u64,
    /// Number of URLs whose deadline passed before they were fetched.
    pub expired: u64,
    /// When half of all URLs had ended.
    pub half: f64,
    /// When nine tenths of all URLs had ended.
    pub most: f64,
    /// When 99 of 100 URLs had ended.
    pub almost: f64,
    /// When all URLs had ended.
    pub end: f64,
    /// The beginning of the tail, when only the largest hosts were left.
    pub tail: Tail,
    /// Maximum number of URLs on the ladder at once.
    pub parked_peak: u64,
    /// Maximum share of the URLs without an end that were on the ladder, before the tail.
    pub parked_peak_share: f64,
    /// Average share of the URLs without an end that were on the ladder, over the whole crawl.
    pub parked_share: f64,
    /// Average number of times that a URL was on the ladder.
    pub hops: f64,
    /// 99th percentile of the times that a URL was on the ladder.
    pub hops_p99: u64,
    /// Maximum number of times that a URL was on the ladder.
    pub hops_max: u64,
    /// Average number of deliveries of a URL.
    pub deliveries: f64,
    /// Average number of slot requests to the host's schedule per URL.
    pub asks: f64,
    /// Average number of messages per second that the broker took in, moved from the ladder or delivered, until the
    /// tail.
    pub messages: f64,
    /// Maximum number of such messages in a second.
    pub messages_peak: u64,
    /// Share of the reserved slots that were not used.
    pub wasted: f64,
    /// Average share of the fetch permits that were idle, until the tail.
    pub idle: f64,
    /// Pages fetched in each minute.
    pub pages_by_minute: Vec<u32>,
}

/// The instant from which the hosts with URLs left, at their rate, can no longer keep all fetch permits busy.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Tail {
    /// When it began.
    pub from: f64,
    /// Number of hosts with URLs left.
    pub hosts: u64,
    /// Number of URLs left.
    pub urls: u64,
}

/// Counts kept during the simulation.
pub(super) struct Totals {
    all: u64,
    pub(super) done: u64,
    pub(super) expired: u64,
    /// URLs admitted and not ended.
    pub(super) open: u64,
    pub(super) parked: u64,
    pub(super) idle: u64,
    pub(super) granted: u64,
    pub(super) started: u64,
    pub(super) delivered: u64,
    pub(super) asked: u64,
    messages: u64,
    /// The current second, and its messages.
    second: (u64, u64),
    messages_peak: u64,
    /// Number of URLs by the times that they were on the ladder.
    hops: Vec<u64>,
    /// When half, nine tenths and 99 of 100 had ended, in microseconds.
    half: u64,
    most: u64,
    almost: u64,
    parked_peak: u64,
    parked_peak_share: f64,
    now: u64,
    /// Integrals over time, in microseconds.
    open_area: f64,
    parked_area: f64,
    idle_area: f64,
    /// The tail, and the idle area and messages when it began.
    tail: Option<(Tail, f64, u64)>,
    pages_by_minute: Vec<u32>,
}

impl Totals {
    /// Returns the counts for a crawl of `all` URLs with `slots` fetch permits.
    pub(super) fn new(all: u64, slots: u64) -> Self {
        Self {
            all,
            idle: slots,
            hops: vec![0; usize::from(u16::MAX) + 1],
            done: 0,
            expired: 0,
            open: 0,
            parked: 0,
            granted: 0,
            started: 0,
            delivered: 0,
            asked: 0,
            messages: 0,
            second: (0, 0),
            messages_peak: 0,
            half: 0,
            most: 0,
            almost: 0,
            parked_peak: 0,
            parked_peak_share: 0.0,
            now: 0,
            open_area: 0.0,
            parked_area: 0.0,
            idle_area: 0.0,
            tail: None,
            pages_by_minute: Vec::new(),
        }
    }

    /// Advances the clock to `now`.
    pub(super) fn advance_to(&mut self, now: u64) {
        let passed = (now - self.now) as f64;
        self.now = now;
        self.open_area += self.open as f64 * passed;
        self.parked_area += self.parked as f64 * passed;
        self.idle_area += self.idle as f64 * passed;
        self.parked_peak = self.parked_peak.max(self.parked);
        if self.tail.is_none() && self.open > 0 {
            self.parked_peak_share = self.parked_peak_share.max(self.parked as f64 / self.open as f64);
        }
    }

    /// Counts messages that pass through the broker.
    pub(super) fn messages(&mut self, count: u64) {
        self.messages += count;
        let second = self.now / 1_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        self.second.1 += count;
        self.messages_peak = self.messages_peak.max(self.second.1);
    }

    /// Counts a URL that was fetched.
    pub(super) fn done(&mut self, hops: u16) {
        self.done += 1;
        let minute = (self.now / 60_000_000) as usize;
        if self.pages_by_minute.len() <= minute {
            self.pages_by_minute.resize(minute + 1, 0);
        }
        self.pages_by_minute[minute] += 1;
        self.ended(hops);
    }

    /// Counts a URL whose deadline has passed.
    pub(super) fn expired(&mut self, hops: u16) {
        self.expired += 1;
        self.ended(hops);
    }

    fn ended(&mut self, hops: u16) {
        self.open -= 1;
        self.hops[usize::from(hops)] += 1;
        let ended = self.done + self.expired;
        for (share, at) in [(50, &mut self.half), (90, &mut self.most), (99, &mut self.almost)] {
            if *at == 0 && ended * 100 >= self.all * share {
                *at = self.now;
            }
        }
    }

    /// Records that the tail has begun, with `hosts` hosts left.
    pub(super) fn tail(&mut self, hosts: u64) {
        let tail = Tail { from: seconds(self.now), hosts, urls: self.all - self.done - self.expired };
        self.tail.get_or_insert((tail, self.idle_area, self.messages));
    }

    /// Computes the report.
    pub(super) fn close(self, scenario: &Scenario) -> Report {
        let slots = f64::from(scenario.workers) * f64::from(scenario.concurrency);
        let (tail, idle_area, messages) = self.tail.unwrap_or_default();
        let per_url = |count: u64| count as f64 / self.all as f64;
        let hops: u64 = (0..).zip(&self.hops).map(|(hops, count): (u64, &u64)| hops * count).sum();
        let within = |share: u64| {
            let mut urls = 0;
            let position = self.hops.iter().position(|count| {
                urls += count;
                urls * 100 >= self.all * share
            });
            position.unwrap_or_default() as u64
        };
        Report {
            scenario: scenario.clone(),
            done: self.done,
            expired: self.expired,
            half: seconds(self.half),
            most: seconds(self.most),
            almost: seconds(self.almost),
            end: seconds(self.now),
            tail,
            parked_peak: self.parked_peak,
            parked_peak_share: self.parked_peak_share,
            parked_share: self.parked_area / self.open_area,
            hops: per_url(hops),
            hops_p99: within(99),
            hops_max: within(100),
            deliveries: per_url(self.delivered),
            asks: per_url(self.asked),
            messages: messages as f64 / tail.from,
            messages_peak: self.messages_peak,
            wasted: self.granted.saturating_sub(self.started) as f64 / self.granted.max(1) as f64,
            idle: idle_area / 1e6 / tail.from / slots,
            pages_by_minute: self.pages_by_minute,
        }
    }
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
