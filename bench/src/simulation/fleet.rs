//! The simulation of the fleet, event by event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use trawl_common::frontier::ladder::{RUNGS, rung_for};
use trawl_common::politeness::gcra::{Pace, Schedule, Slot, SlotRequest, Standing};
use trawl_common::politeness::waiting::{is_near, max_waiting, not_before, waitlisted};
use trawl_common::time::UnixMs;

use super::broker::{Broker, Message, QueueName};
use super::report::{Report, Totals};
use super::scenario::Scenario;
use super::seen::Seen;
use super::web;
use super::worker::{Decision, Worker};

/// Number of URLs that the producer admits at once.
const BUNDLE: u64 = 500;

/// An event at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The producer has read another bundle.
    Read,
    /// The first message on a rung has expired.
    Expires(usize),
    /// A worker's scheduler has decided on its batch.
    Handled(u32),
    /// The slot of a waiting message has come.
    Up(u32, Message),
    /// A response has arrived.
    Fetched(u32, Message),
}

/// A URL that was admitted and has not ended: the fields of its message, and its worker's state.
#[derive(Clone, Copy)]
struct Url {
    number: u32,
    host: u32,
    admitted: u64,
    queue: QueueName,
    until: Option<UnixMs>,
    slot: Option<UnixMs>,
    turn: Option<(UnixMs, u8)>,
    hops: u16,
}

struct Fleet<'a> {
    scenario: &'a Scenario,
    see: &'a mut dyn FnMut(Seen),
    pace: Pace,
    chance: StdRng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    /// The host of each URL, in the producer's order, and the number of URLs admitted.
    source: Vec<u32>,
    admitted: usize,
    schedules: Vec<Schedule>,
    /// Number of URLs of each host that have not ended, and number of hosts with such URLs.
    left: Vec<u32>,
    hosts_left: u64,
    /// Number of hosts that keep all fetch permits busy.
    hosts_needed: u64,
    urls: Vec<Url>,
    /// Indices in `urls` of URLs that have ended.
    free: Vec<Message>,
    broker: Broker,
    workers: Vec<Worker>,
    totals: Totals,
}

/// Runs a scenario to its end, and reports events to `see`.
pub fn run(scenario: &Scenario, see: &mut dyn FnMut(Seen)) -> Report {
    let mut fleet = Fleet::new(scenario, see);
    fleet.schedule(0, Event::Read);
    while let Some(Reverse((at, event))) = fleet.events.pop() {
        fleet.now = at;
        fleet.totals.advance_to(at);
        fleet.happen(event);
    }
    fleet.totals.tail(0);
    fleet.totals.close(scenario)
}

impl<'a> Fleet<'a> {
    fn new(scenario: &'a Scenario, see: &'a mut dyn FnMut(Seen)) -> Self {
        let source = web::urls(scenario);
        let mut left = vec![0; scenario.hosts as usize];
        for &host in &source {
            left[host as usize] += 1;
        }
        let pace = scenario.pace();
        let slots = u64::from(scenario.workers) * u64::from(scenario.concurrency);
        Self {
            pace,
            chance: StdRng::seed_from_u64(!scenario.seed),
            now: 0,
            events: BinaryHeap::new(),
            admitted: 0,
            schedules: vec![Schedule::default(); scenario.hosts as usize],
            left,
            hosts_left: u64::from(scenario.hosts),
            hosts_needed: (web::capacity(scenario) * pace.interval.as_secs_f64()) as u64,
            urls: Vec::new(),
            free: Vec::new(),
            broker: Broker::new(scenario.workers, scenario.prefetch),
            workers: (0..scenario.workers).map(|_| Worker::new(usize::from(scenario.concurrency))).collect(),
            totals: Totals::new(source.len() as u64, slots),
            source,
            scenario,
            see,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Read => {
                self.admit();
                if self.admitted < self.source.len() {
                    let pause = BUNDLE * 1_000_000 / u64::from(self.scenario.feed);
                    self.schedule(self.now + pause, Event::Read);
                }
                self.deliver(QueueName::Bulk);
            }
            Event::Expires(rung) => {
                let (moved, next) = self.broker.expire(rung, self.now);
                self.totals.parked -= moved;
                self.totals.messages(moved);
                if let Some(at) = next {
                    self.schedule(at, Event::Expires(rung));
                }
                self.deliver(QueueName::Due);
            }
            Event::Handled(worker) => {
                self.decide_batch(worker);
                self.hand_on(worker);
            }
            Event::Up(worker, message) => {
                self.workers[worker as usize].up.push_back(message);
                self.take(worker);
            }
            Event::Fetched(worker, message) => {
                let Url { number, host, .. } = self.urls[message as usize];
                self.schedules[host as usize].leave(number.into(), true, self.now);
                self.workers[worker as usize].free += 1;
                self.totals.idle += 1;
                self.totals.done(self.urls[message as usize].hops);
                self.end(worker, message);
                self.take(worker);
            }
        }
    }

    fn schedule(&mut self, at: u64, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    /// Admits a bundle, up to the limit of the backlog.
    fn admit(&mut self) {
        let allowance = self.scenario.backlog.saturating_sub(self.totals.open).min(BUNDLE) as usize;
        for _ in 0..allowance.min(self.source.len() - self.admitted) {
            let url = Url {
                number: self.admitted as u32,
                host: self.source[self.admitted],
                admitted: self.now,
                queue: QueueName::Bulk,
                until: None,
                slot: None,
                turn: None,
                hops: 0,
            };
            self.admitted += 1;
            self.totals.open += 1;
            let message = match self.free.pop() {
                Some(message) => {
                    self.urls[message as usize] = url;
                    message
                }
                None => {
                    self.urls.push(url);
                    (self.urls.len() - 1) as Message
                }
            };
            self.broker.publish(QueueName::Bulk, message);
            self.totals.messages(1);
        }
    }

    /// Delivers the messages of a queue that workers may get.
    fn deliver(&mut self, queue: QueueName) {
        while let Some((worker, message)) = self.broker.deliver(queue) {
            self.totals.delivered += 1;
            self.totals.messages(1);
            let url = &mut self.urls[message as usize];
            url.queue = queue;
            self.workers[worker as usize].inbox[queue as usize].push_back(message);
            self.take(worker);
        }
    }

    /// Lets a scheduler that is not busy take as many messages as it has permits for.
    fn take(&mut self, worker: u32) {
        let taken = self.workers[worker as usize].take();
        if taken > 0 {
            let busy = self.scenario.handling * taken as u32;
            self.schedule(self.now + micros(busy), Event::Handled(worker));
        }
    }

    /// Decides when each URL of a batch may be fetched.
    fn decide_batch(&mut self, worker: u32) {
        let batch = std::mem::take(&mut self.workers[worker as usize].batch);
        for &message in &batch {
            let decision = self.decide(message);
            self.workers[worker as usize].decided.push_back((message, decision));
        }
        let spent = &mut self.workers[worker as usize].batch;
        *spent = batch;
        spent.clear();
    }

    fn decide(&mut self, message: Message) -> Decision {
        let url = self.urls[message as usize];
        let now = UnixMs(self.now / 1_000);
        let deadline = self.scenario.ttl.map(|ttl| UnixMs(url.admitted / 1_000).plus(ttl));
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Decision::Expired;
        }
        if let Some(until) = not_before(url.until, url.slot, url.turn, now) {
            return match url.slot {
                Some(slot) => Decision::At { wait: micros(until.wait_from(now)), slot },
                None => Decision::Later { until, turn: url.turn },
            };
        }
        let request = SlotRequest {
            pace: self.pace,
            held: url.slot,
            standing: Standing::new(url.turn.map(|(turn, _)| turn)),
            deadline,
            token: url.number.into(),
            // Long enough: its worker extends it as needed.
            lapse: 2 * self.scenario.timeout,
        };
        let schedule = &mut self.schedules[url.host as usize];
        let before = schedule.next;
        let slot = schedule.reserve(&request, self.now);
        self.totals.asked += 1;
        self.totals.granted += u64::from(schedule.next != before);
        match slot {
            Slot::Now => Decision::Now,
            Slot::Reserved { wait, at } => Decision::At { wait: micros(wait), slot: at },
            Slot::Later { wait, turn } => {
                let (away, turn) = waitlisted(wait, turn, url.turn, self.chance.random());
                Decision::Later { until: now.plus(away), turn: Some(turn) }
            }
            Slot::TooLate | Slot::Blocked => Decision::Expired,
        }
    }

    /// Carries out the decisions; then takes more.
    fn hand_on(&mut self, worker: u32) {
        while let Some((message, decision)) = self.workers[worker as usize].decided.pop_front() {
            match decision {
                Decision::Now => self.start(worker, message),
                Decision::At { wait, slot } => {
                    let url = &mut self.urls[message as usize];
                    (url.slot, url.turn) = (Some(slot), None);
                    let memory = &mut self.workers[worker as usize];
                    let is_below_max = memory.aside < max_waiting(self.scenario.prefetch);
                    if is_near(Duration::from_micros(wait), is_below_max) {
                        memory.aside += 1;
                        // Timers have a resolution of a millisecond.
                        self.schedule(self.now + wait.next_multiple_of(1_000), Event::Up(worker, message));
                    } else {
                        self.park(
                            worker,
                            message,
                            UnixMs(self.now / 1_000).plus(Duration::from_micros(wait)),
                        );
                    }
                }
                Decision::Later { until, turn } => {
                    let url = &mut self.urls[message as usize];
                    (url.slot, url.turn) = (None, turn);
                    self.park(worker, message, until);
                }
                Decision::Expired => {
                    self.totals.expired(self.urls[message as usize].hops);
                    self.end(worker, message);
                }
            }
        }
        self.take(worker);
    }

    /// Starts a fetch. Its worker has a permit for it.
    fn start(&mut self, worker: u32, message: Message) {
        self.workers[worker as usize].free -= 1;
        self.totals.idle -= 1;
        self.totals.started += 1;
        (self.see)(Seen::Asked { host: self.urls[message as usize].host, at: self.now });
        let took = web::response(self.scenario, &mut self.chance);
        self.schedule(self.now + micros(took), Event::Fetched(worker, message));
    }

    /// Parks a URL on the ladder until `until`; it is parked again if it comes back earlier.
    fn park(&mut self, worker: u32, message: Message, until: UnixMs) {
        let url = &mut self.urls[message as usize];
        url.until = Some(until);
        url.hops = url.hops.saturating_add(1);
        let queue = url.queue;
        let wait = rung_for(until.wait_from(UnixMs(self.now / 1_000)));
        let rung = RUNGS.iter().position(|&rung| rung == wait).unwrap_or_default();
        if let Some(at) = self.broker.park(rung, message, self.now) {
            self.schedule(at, Event::Expires(rung));
        }
        self.totals.parked += 1;
        self.totals.messages(1);
        self.ack(queue, worker);
    }

    /// Ends a URL.
    fn end(&mut self, worker: u32, message: Message) {
        let Url { number, host, admitted, queue, hops, .. } = self.urls[message as usize];
        (self.see)(Seen::Ended { url: number, admitted, at: self.now, hops });
        let left = &mut self.left[host as usize];
        *left -= 1;
        self.hosts_left -= u64::from(*left == 0);
        if self.hosts_left < self.hosts_needed {
            self.totals.tail(self.hosts_left);
        }
        self.free.push(message);
        self.ack(queue, worker);
    }

    fn ack(&mut self, queue: QueueName, worker: u32) {
        self.broker.ack(queue, worker);
        self.deliver(queue);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
