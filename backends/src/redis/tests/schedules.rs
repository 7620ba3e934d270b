//! The scripts of hosts' schedules do what `trawl_common::politeness::gcra` says: the same calls at the same times give
//! the same answers and leave the same schedule. An address that many hosts share has a schedule as a host has.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use proptest::sample::select;
use trawl_common::politeness::gcra::{
    Backoff, BackoffTerms, Pace, Schedule, SentRequest, SlotRequest, Standing,
};
use trawl_common::ports::{BackoffRequest, Ended, HostControl, InFlightRequest, SentLate};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use super::*;
use crate::redis::keys;

/// In us.
const BEGINNING: u64 = 1_800_000_000_000_000;
const SECOND: u64 = 1_000_000;
/// Few, so that calls are about the same requests, and twice about one.
const TOKENS: u64 = 3;

/// A call about one of the two schedules.
#[derive(Clone, Debug)]
enum Step {
    Reserve(Vec<Ask>),
    Stay(Vec<u64>, Duration),
    Leave(Vec<(u64, bool)>),
    SentLate(Vec<u64>),
    PushBack(BackoffTerms),
    Block,
    Unblock,
    /// A number of microseconds passes.
    Pass(u64),
    /// Time passes until this many us after, or before, the last slot of a request.
    Await(u64, i64),
    /// The clock is set back by this many us.
    SetBack(u64),
}

/// A request for a slot.
#[derive(Clone, Debug)]
struct Ask {
    token: u64,
    pace: Pace,
    /// Whether it carries its last answer.
    comes_back: bool,
    is_aside: bool,
    /// The deadline, in ms from now.
    deadline: Option<u64>,
    lapse: Duration,
}

fn paces() -> impl Strategy<Value = Pace> {
    let every = |ms| Pace { interval: Duration::from_millis(ms), ..Pace::UNLIMITED };
    select(vec![
        Pace::UNLIMITED,
        Pace { concurrency: 1, ..Pace::UNLIMITED },
        Pace { concurrency: 2, ..Pace::UNLIMITED },
        every(1_000),
        Pace { burst: 3, ..every(1_000) },
        Pace { concurrency: 2, ..every(1_000) },
        // As a rate that no timer is fine enough for.
        Pace { burst: 2, ..every(7) },
        // As a robots.txt asks for.
        Pace { burst: 3, concurrency: 3, ..every(1_000) }.slowed(Duration::from_secs(13)),
    ])
}

fn time() -> impl Strategy<Value = u64> {
    let times =
        [0, 1, 2_000, 7_000, 50_000, 500_000, SECOND, 7_500_000, 15 * SECOND, 31 * SECOND, 400 * SECOND];
    prop_oneof![select(times.to_vec()), 0..40 * SECOND]
}

fn ask() -> impl Strategy<Value = Ask> {
    let deadline = prop::option::weighted(0.2, select(vec![0, 1_000, 30_000, 60_000]));
    let lapse = select(vec![Duration::from_secs(5), Duration::from_secs(60)]);
    (0..TOKENS, paces(), prop::bool::weighted(0.7), prop::bool::weighted(0.2), deadline, lapse).prop_map(
        |(token, pace, comes_back, is_aside, deadline, lapse)| Ask {
            token,
            pace,
            comes_back,
            is_aside,
            deadline,
            lapse,
        },
    )
}

fn terms() -> impl Strategy<Value = BackoffTerms> {
    let asked = select(vec![None, None, Some(0), Some(2), Some(60), Some(100_000)]);
    // Jitters by which a wait is a whole number of us.
    (asked, select(vec![0.0, 0.5, 1.0])).prop_map(|(asked, jitter)| BackoffTerms {
        asked: asked.map(Duration::from_secs),
        base: Duration::from_secs(30),
        jitter,
        most: HOUR,
    })
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let lapse = select(vec![Duration::ZERO, Duration::from_secs(5), Duration::from_secs(60)]);
    let tokens = prop::collection::vec(0..TOKENS, 1..4);
    let step = prop_oneof![
        30 => prop::collection::vec(ask(), 1..5).prop_map(Step::Reserve),
        4 => (tokens, lapse).prop_map(|(tokens, lapse)| Step::Stay(tokens, lapse)),
        12 => prop::collection::vec((0..TOKENS, any::<bool>()), 1..4).prop_map(Step::Leave),
        4 => prop::collection::vec(0..3_000_000_u64, 1..3).prop_map(Step::SentLate),
        5 => terms().prop_map(Step::PushBack),
        1 => Just(Step::Block),
        3 => Just(Step::Unblock),
        15 => time().prop_map(Step::Pass),
        15 => (0..TOKENS, select(vec![-2_001, -2_000, 0, 1, 50_000, 500_000, 500_001]))
            .prop_map(|(token, after)| Step::Await(token, after)),
        2 => time().prop_map(Step::SetBack),
    ];
    prop::collection::vec((0..2_usize, step), 1..60)
}

/// A schedule in Redis, and the expected one.
struct Pair {
    key: HostKey,
    expected: Schedule,
    /// The last answer to each request.
    answers: BTreeMap<u64, Slot>,
}

impl Pair {
    fn new(key: HostKey) -> Self {
        Self { key, expected: Schedule::default(), answers: BTreeMap::new() }
    }

    fn request(&self, ask: &Ask, now: u64) -> HostSlotRequest {
        let answer = self.answers.get(&ask.token).filter(|_| ask.comes_back);
        let standing = match answer {
            _ if ask.is_aside => Standing::Aside,
            Some(Slot::Later { turn, .. }) => Standing::Waitlisted(*turn),
            _ => Standing::New,
        };
        let held = match answer {
            Some(Slot::Reserved { at, .. }) => Some(*at),
            _ => None,
        };
        let deadline = ask.deadline.map(|ms| UnixMs(now / 1_000 + ms));
        let Ask { token, pace, lapse, .. } = *ask;
        let request = SlotRequest { pace, held, standing, deadline, token, lapse };
        HostSlotRequest { key: self.key.clone(), request }
    }

    async fn take(&mut self, fixture: &Schedules, step: &Step) {
        let now = fixture.now;
        match step {
            Step::Reserve(asks) => {
                let requests: Vec<HostSlotRequest> = asks.iter().map(|ask| self.request(ask, now)).collect();
                let reply = fixture.hosts.reserve(&requests).await.unwrap();
                let expected: Vec<Slot> =
                    requests.iter().map(|ask| self.expected.reserve(&ask.request, now)).collect();
                assert_eq!(reply, expected);
                self.answers.extend(asks.iter().map(|ask| ask.token).zip(reply));
            }
            Step::Stay(tokens, lapse) => {
                let visits: Vec<InFlightRequest> = tokens.iter().map(|&token| self.visit(token)).collect();
                fixture.hosts.stay(&visits, *lapse).await.unwrap();
                tokens.iter().for_each(|&token| self.expected.stay(token, *lapse, now));
            }
            Step::Leave(ended) => {
                let all =
                    ended.iter().map(|&(token, is_welcome)| Ended { visit: self.visit(token), is_welcome });
                fixture.hosts.leave(&all.collect::<Vec<_>>()).await.unwrap();
                ended.iter().for_each(|&(token, is_welcome)| self.expected.leave(token, is_welcome, now));
            }
            Step::SentLate(times) => {
                let late =
                    |&us: &u64| SentLate { key: self.key.clone(), next_after: Duration::from_micros(us) };
                fixture.hosts.sent_late(&times.iter().map(late).collect::<Vec<_>>()).await.unwrap();
                times.iter().for_each(|&us| self.expected.sent_late(Duration::from_micros(us), now));
            }
            Step::PushBack(terms) => {
                fixture
                    .hosts
                    .push_back(&self.key, &BackoffRequest { status: 503, terms: *terms, crawl: None })
                    .await
                    .unwrap();
                self.expected.push_back(terms, now);
            }
            Step::Block => {
                fixture.hosts.block(&self.key).await.unwrap();
                self.expected.block(now);
            }
            Step::Unblock => {
                let was = fixture.hosts.unblock(&self.key).await.unwrap();
                assert_eq!(was, self.expected.unblock(now));
            }
            Step::Pass(_) | Step::Await(..) | Step::SetBack(_) => {}
        }
    }

    fn visit(&self, token: u64) -> InFlightRequest {
        InFlightRequest { key: self.key.clone(), token }
    }

    /// Compares the stored schedule with the expected one.
    async fn agree(&self, fixture: &Schedules) {
        let fields: HashMap<String, String> =
            fixture.ask(redis::cmd("HGETALL").arg(keys::rate_limit(&self.key))).await;
        assert_eq!(stored(&fields), in_order(self.expected.clone()));
    }
}

/// Reads a schedule from its hash.
fn stored(fields: &HashMap<String, String>) -> Schedule {
    let number = |name: &str| fields.get(name).map_or(0, |text| text.parse().unwrap());
    let sent = |(name, times): (&String, &String)| {
        let token = u64::from_str_radix(name.strip_prefix("p:")?, 16).unwrap();
        let (since, until) = times.split_once(' ').unwrap();
        Some(SentRequest { token, since: since.parse().unwrap(), until: until.parse().unwrap() })
    };
    let strikes = u32::try_from(number("strikes")).unwrap();
    in_order(Schedule {
        next: number("next"),
        taken: number("taken"),
        line: number("line"),
        latency: number("latency"),
        in_flight: fields.iter().filter_map(sent).collect(),
        backoff: Backoff { since: number("since"), until: number("until"), strikes },
        is_blocked: fields.contains_key("blocked"),
        at: number("at"),
    })
}

fn in_order(mut schedule: Schedule) -> Schedule {
    schedule.in_flight.sort_by_key(|sent| sent.token);
    schedule
}

/// The schedules on a database of their own, and their clock.
struct Schedules {
    link: Link,
    hosts: RedisHosts,
    now: u64,
}

impl Schedules {
    async fn new() -> Self {
        let settings = Redis { url: servers::own_database().await, ..Redis::default() };
        let link = connect(&settings).await.unwrap();
        let hosts = RedisHosts::with_clock(link.clone(), 1_000_000, SET);
        let mut fixture = Self { link, hosts, now: 0 };
        fixture.set_clock(BEGINNING).await;
        fixture
    }

    async fn set_clock(&mut self, now: u64) {
        self.now = now;
        let () = self.ask(redis::cmd("SET").arg("now").arg(now)).await;
    }

    async fn ask<T: FromRedisValue>(&self, command: &redis::Cmd) -> T {
        command.query_async(&mut self.link.clone()).await.unwrap()
    }

    /// Returns the time after `step`.
    fn after(&self, step: &Step, answers: &BTreeMap<u64, Slot>) -> u64 {
        match step {
            Step::Pass(us) => self.now + us,
            Step::SetBack(us) => self.now - us,
            Step::Await(token, after) => match answers.get(token) {
                Some(Slot::Reserved { at: slot, .. } | Slot::Later { turn: slot, .. }) => {
                    (slot.0 * 1_000).saturating_add_signed(*after).max(self.now)
                }
                _ => self.now,
            },
            _ => self.now,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_script_leaves_the_schedule_that_the_arithmetic_says(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut fixture = Schedules::new().await;
            let address = HostKey::address("192.0.2.7".parse().unwrap());
            let mut pairs = [Pair::new(HostKey::from_text("site.example")), Pair::new(address)];
            for (which, step) in &steps {
                let pair = &mut pairs[*which];
                fixture.set_clock(fixture.after(step, &pair.answers)).await;
                pair.take(&fixture, step).await;
                pair.agree(&fixture).await;
            }
        });
    }
}
