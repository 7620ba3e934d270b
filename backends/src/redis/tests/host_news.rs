//! An event of a host is announced once, and offered until somebody has announced it.

use trawl_common::events::{HostEvent, HostEventKind};
use trawl_common::politeness::gcra::BackoffTerms;
use trawl_common::ports::{BackoffRequest, HostControl};
use trawl_common::web::host::HostKey;

use super::*;
use crate::control_log::LoggedHost;

const MINUTE: Duration = Duration::from_secs(60);

/// Host schedules on a database of their own, whose back-offs are announced from a minute on.
struct Telling {
    fixture: Fixture,
    hosts: RedisHosts,
}

impl Telling {
    async fn new() -> Self {
        let fixture = Fixture::new().await;
        let hosts = RedisHosts::with_clock(fixture.link.clone(), 1_000_000, LATER).with_backoffs_from(MINUTE);
        Self { fixture, hosts }
    }

    /// The host answers 429, and asks to be left alone for the time `asked`.
    async fn refuses(&self, host: &str, asked: Duration) {
        let terms = BackoffTerms { asked: Some(asked), base: MINUTE, jitter: 0.0, most: HOUR };
        let crawl = Some(self.fixture.crawl.clone());
        let refusal = BackoffRequest { status: 429, terms, crawl };
        self.hosts.push_back(&HostKey::from_text(host), &refusal).await.unwrap();
    }

    /// The events that are offered; announces them.
    async fn tell(&self) -> Vec<HostEvent> {
        let events = self.hosts.news().await.unwrap();
        for event in &events {
            self.hosts.news_announced(event).await.unwrap();
        }
        events
    }
}

fn named(events: &[HostEvent]) -> Vec<(HostEventKind, Vec<&str>)> {
    let hosts = |event: &'_ HostEvent| event.news().len();
    assert!(events.iter().all(|event| hosts(event) > 0));
    let names = events.iter().map(|event| event.news().iter().map(|news| news.host.as_str()).collect());
    events.iter().map(|event| event.kind).zip(names).collect()
}

#[tokio::test]
async fn a_host_that_wants_to_be_left_alone_is_told_of_until_that_is_announced() {
    let telling = Telling::new().await;
    telling.refuses("a.example", 2 * MINUTE).await;
    let events = telling.hosts.news().await.unwrap();
    assert_eq!(named(&events), [(HostEventKind::Backoff, vec!["a.example"])]);
    assert_eq!(events[0].crawl, Some(telling.fixture.crawl.clone()));
    let refusal = events[0].news()[0].refusal.unwrap();
    assert_eq!((refusal.until.since(events[0].at()), refusal.status), (2 * MINUTE, 429));
    assert_eq!(telling.tell().await, events, "nobody has announced it");
    assert_eq!(telling.tell().await, []);
}

#[tokio::test]
async fn a_host_that_keeps_refusing_is_told_of_once_until_it_was_calm() {
    let telling = Telling::new().await;
    telling.refuses("a.example", Duration::from_secs(30)).await;
    assert_eq!(telling.tell().await, [], "that is not long");
    for minutes in [10, 12, 14, 16] {
        telling.fixture.set_clock(24 * HOUR + minutes * MINUTE).await;
        telling.refuses("a.example", MINUTE).await;
        telling.refuses("a.example", MINUTE).await;
        assert_eq!(telling.tell().await.len(), usize::from(minutes == 10), "after {minutes} minutes");
    }
    telling.fixture.set_clock(24 * HOUR + 30 * MINUTE).await;
    telling.refuses("a.example", MINUTE).await;
    assert_eq!(telling.tell().await.len(), 1, "it begins anew");
}

#[tokio::test]
async fn a_block_and_its_end_are_told_of_once_each_and_not_when_they_change_nothing() {
    let (telling, host) = (Telling::new().await, HostKey::from_text("a.example"));
    telling.hosts.block(&host).await.unwrap();
    telling.hosts.block(&host).await.unwrap();
    telling.hosts.unblock(&host).await.unwrap();
    telling.hosts.unblock(&host).await.unwrap();
    let events = telling.tell().await;
    let both = [HostEventKind::Blocked, HostEventKind::Unblocked].map(|kind| (kind, vec!["a.example"]));
    let mut sorted = named(&events);
    sorted.sort_unstable();
    assert_eq!(sorted, both);
    assert_eq!(events[0].crawl, None, "a person has ordered it");
    let last = LoggedHost { is_blocked: true, ordered: UnixMs(1 << 50) };
    telling.hosts.carry_out_logged(&host, last).await.unwrap();
    assert_eq!(telling.tell().await, [], "a block that a store learns again is none that is new");
}

#[tokio::test]
async fn many_hosts_that_refuse_at_once_share_a_few_events_and_each_is_named_once() {
    const HOSTS: usize = 2_300;
    let telling = Telling::new().await;
    for number in 0..HOSTS {
        telling.refuses(&format!("h{number}.example"), 2 * MINUTE).await;
    }
    let mut hosts = Vec::new();
    // The hosts that were announced make room for others when they were listed for a while.
    while hosts.len() < HOSTS {
        let events = telling.tell().await;
        assert!(events.len() <= 10, "{}", events.len());
        hosts.extend(events.iter().flat_map(HostEvent::news).map(|news| news.host.clone()));
        telling.grow_old().await;
    }
    hosts.sort_unstable();
    hosts.dedup();
    assert_eq!(hosts.len(), HOSTS);
    telling.tell().await;
    let left: u64 = telling.fixture.ask(redis::cmd("ZCARD").arg("hosts:news")).await;
    assert_eq!(left, 0);
}

impl Telling {
    /// All hosts were listed long ago.
    async fn grow_old(&self) {
        let mut union = redis::cmd("ZUNIONSTORE");
        union.arg("hosts:news").arg(1).arg("hosts:news").arg("WEIGHTS").arg(0);
        let () = self.fixture.ask(&union).await;
    }
}

#[tokio::test]
async fn what_was_written_over_is_named_and_keeps_no_other_host_from_being_told_of() {
    let telling = Telling::new().await;
    telling.refuses("a.example", 2 * MINUTE).await;
    telling.refuses("b.example", 2 * MINUTE).await;
    telling.refuses("c.example", 2 * MINUTE).await;
    let () = telling.fixture.ask(redis::cmd("SET").arg("ratelimit:a.example").arg("1")).await;
    let mut strange = redis::cmd("HSET");
    strange.arg("ratelimit:b.example").arg("news:nonsense:1").arg("x y z");
    let () = telling.fixture.ask(&strange).await;
    let events = telling.tell().await;
    assert_eq!(named(&events), [(HostEventKind::Backoff, vec!["b.example", "c.example"])]);
    assert_eq!(telling.tell().await, []);
}

#[tokio::test]
async fn a_host_of_which_only_news_is_kept_is_not_known() {
    let telling = Telling::new().await;
    let host = HostKey::from_text("a.example");
    telling.hosts.block(&host).await.unwrap();
    assert!(telling.hosts.host(&host).await.unwrap().is_some());
    telling.hosts.unblock(&host).await.unwrap();
    assert_eq!(telling.hosts.host(&host).await.unwrap(), None);
    assert_eq!(telling.hosts.hosts().await.unwrap(), []);
    assert_eq!(telling.tell().await.len(), 2, "and that it was blocked and unblocked is announced");
}
