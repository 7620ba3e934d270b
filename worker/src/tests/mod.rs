//! A worker on ports in memory, in the tests' own time: what it does in which order.

pub(crate) mod log;
pub(crate) mod ports;
mod programs;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::{MAX_STARTS, SUSPECT_STARTS, StartReply};
use trawl_common::names::WorkerId;
use trawl_common::ports::ErrorKind;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;

use self::ports::{Memory, Schedules};
use crate::RunError;
use crate::schedule::polite::PoliteClient;
use crate::tasks::TaskRunner;

/// Maximum time that a test waits, on its own clock.
const LIMIT: Duration = Duration::from_secs(600);

const QUICK: Option<Duration> = Some(Duration::ZERO);

/// A worker that runs.
struct Worker {
    memory: Memory,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
    /// The client through which programs ask hosts.
    asker: PoliteClient,
    _folder: tempfile::TempDir,
}

impl Worker {
    /// A worker with these settings, on what was queued before.
    fn start(memory: &Memory, set: impl FnOnce(&mut Settings)) -> Self {
        Self::start_with(memory, set, None)
    }

    /// Starts a worker with this task runner and this number of tasks at once.
    fn start_with(
        memory: &Memory,
        set: impl FnOnce(&mut Settings),
        tasks: Option<(Arc<dyn TaskRunner>, u16)>,
    ) -> Self {
        // Every test of the process installs it; the first succeeds.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.politeness.robots = false;
        // Its store has a thread of its own, for which no paused time waits.
        settings.log.keep = 0;
        settings.spiders_dir = folder.path().to_owned();
        set(&mut settings);
        let (stop, spiders) = (CancellationToken::new(), Folder::new(&settings));
        let (id, health) = (WorkerId::of_this_machine(), Arc::default());
        let worker =
            crate::worker::Worker::build(memory.ports(), settings, spiders, id, health, stop.clone(), tasks)
                .unwrap();
        let asker = worker.scheduling.asker.clone();
        Self { memory: memory.clone(), stop, running: tokio::spawn(worker.run()), asker, _folder: folder }
    }

    /// Stops it when so many URLs have ended. Returns its calls.
    async fn until_ended(self, count: usize) -> Vec<String> {
        timeout(LIMIT, self.memory.until("settle", count)).await.unwrap();
        self.stop().await.unwrap()
    }

    async fn stop(self) -> Result<Vec<String>, RunError> {
        self.stop.cancel();
        self.ended().await
    }

    async fn ended(self) -> Result<Vec<String>, RunError> {
        timeout(LIMIT, self.running).await.unwrap().unwrap()?;
        Ok(self.memory.calls())
    }
}

/// At which place a call was made.
fn at(calls: &[String], call: &str) -> usize {
    calls.iter().position(|made| made == call).unwrap_or_else(|| panic!("no `{call}` in {calls:#?}"))
}

fn count(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| call.starts_with(name)).count()
}

/// A page of host `number`.
fn url(number: u32) -> String {
    format!("http://192.0.2.{number}/")
}

#[tokio::test(start_paused = true)]
async fn a_page_is_scheduled_started_fetched_and_stored_before_it_is_settled() {
    let memory = Memory::default();
    memory.page(&url(1), QUICK);
    let calls = Worker::start(&memory, |_| {}).until_ended(1).await;
    let url = url(1);
    let expected = [
        "reserve 192.0.2.1".to_owned(),
        format!("start {url}"),
        format!("ask for {url}"),
        format!("fetched {url}"),
        format!("store {url}"),
        format!("settle {url} done"),
    ];
    assert_eq!(calls, expected);
}

#[tokio::test(start_paused = true)]
async fn what_a_page_with_many_links_takes_keeps_no_other_from_its_end() {
    let memory = Memory::default();
    memory.has_links_without_end(&url(1));
    memory.page(&url(1), QUICK);
    memory.page(&url(2), Some(Duration::from_secs(5)));
    let worker = Worker::start(&memory, |settings| {
        std::fs::write(settings.spiders_dir.join("default.toml"), "[follow]\n").unwrap();
        settings.fetch.allow_private = true;
        settings.worker.shutdown_timeout = Duration::from_secs(1);
    });
    let calls = worker.until_ended(1).await;
    assert!(at(&calls, "take in 1") < at(&calls, &format!("settle {} done", url(2))), "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_has_to_wait_for_long_is_put_aside_and_not_fetched() {
    let memory = Memory::default();
    let later = format!("{}later", url(1));
    memory.page(&url(1), QUICK);
    memory.page(&later, QUICK);
    let hourly = |settings: &mut Settings| settings.politeness.rate = "1/h".parse().unwrap();
    let worker = Worker::start(&memory, hourly);
    timeout(LIMIT, memory.until("put aside", 1)).await.unwrap();
    let calls = worker.until_ended(1).await;
    at(&calls, &format!("put aside {later}"));
    assert_eq!(count(&calls, &format!("ask for {later}")), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reserved_slot_that_is_near_is_waited_for_in_the_worker() {
    let memory = Memory::default();
    for number in 0..4 {
        memory.page(&format!("{}{number}", url(1)), QUICK);
    }
    let begun = Instant::now();
    let calls = Worker::start(&memory, |_| {}).until_ended(4).await;
    assert_eq!((count(&calls, "put aside"), count(&calls, "settle")), (0, 4), "{calls:#?}");
    assert!((3_000..3_100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

/// A second apart: it comes after the one that is due next, and the pace stays as it was.
#[tokio::test(start_paused = true)]
async fn an_urgent_request_takes_the_slot_of_a_url_of_its_host() {
    let (memory, begun) = (Memory::default(), Instant::now());
    (0..35).for_each(|number| memory.page(&format!("{}{number}", url(1)), QUICK));
    let worker = Worker::start(&memory, |_| {});
    timeout(LIMIT, memory.until("fetched", 5)).await.unwrap();
    let (queued, urgent) = (Instant::now(), memory.request(&format!("{}urgent", url(1)), 1.0));
    timeout(LIMIT, memory.until(&format!("start {urgent}"), 1)).await.unwrap();
    assert!(queued.elapsed() < Duration::from_millis(2_100), "{:?}", queued.elapsed());
    let calls = worker.until_ended(36).await;
    assert_eq!(count(&calls, "start"), 36, "{calls:#?}");
    let took = begun.elapsed().as_secs_f64();
    assert!((34.5..45.0).contains(&took), "36 requests, one a second: {took}");
}

#[tokio::test(start_paused = true)]
async fn no_slot_is_asked_for_without_a_fetch_permit_so_none_passes_unused() {
    let memory = Memory::default();
    for number in 1..=3 {
        memory.page(&url(number), Some(Duration::from_millis(900)));
    }
    let one = |settings: &mut Settings| settings.worker.concurrency = 1;
    let calls = Worker::start(&memory, one).until_ended(3).await;
    for number in 1..3 {
        let fetched = at(&calls, &format!("fetched {}", url(number)));
        assert!(fetched < at(&calls, &format!("reserve 192.0.2.{}", number + 1)), "{calls:#?}");
    }
    assert_eq!(count(&calls, "reserve"), 3);
}

#[tokio::test(start_paused = true)]
async fn pages_that_never_come_keep_no_fetch_permit_from_other_hosts() {
    let memory = Memory::default();
    for number in 1..=4 {
        memory.page(&url(number), None);
    }
    for number in 5..=8 {
        memory.page(&url(number), QUICK);
    }
    let few = |settings: &mut Settings| {
        settings.worker.concurrency = 2;
        settings.worker.shutdown_timeout = Duration::from_secs(1);
    };
    let worker = Worker::start(&memory, few);
    timeout(LIMIT, memory.until("settle", 4)).await.unwrap();
    let calls = worker.stop().await.unwrap();
    for number in 5..=8 {
        at(&calls, &format!("settle {} done", url(number)));
    }
}

/// Each takes as long as a file may that others are waited for.
#[tokio::test(start_paused = true)]
async fn thousands_of_names_that_a_page_links_to_keep_no_other_host_waiting() {
    let memory = Memory::default();
    memory.robots_of_names_take(Duration::from_millis(240));
    let (hosts, pages) = (1..=4, 40);
    for page in 0..pages {
        hosts.clone().for_each(|host| memory.page(&format!("{}{page}", url(host)), QUICK));
    }
    for name in 0..5_000 {
        // Each is of another domain.
        memory.link(&url(9), &format!("http://n{name}.example/"));
    }
    memory.page(&url(5), QUICK);
    let begun = Instant::now();
    let worker = Worker::start(&memory, |settings| {
        settings.politeness.robots = true;
        settings.politeness.rate = "5/s".parse().unwrap();
        settings.worker.prefetch = 32;
        settings.worker.concurrency = 8;
    });
    timeout(LIMIT, memory.until(&format!("fetched {}", url(5)), 1)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "a host that comes last: {:?}", begun.elapsed());
    timeout(LIMIT, memory.until("fetched", 4 * pages + 1)).await.unwrap();
    let took = begun.elapsed().as_secs_f64();
    assert!(took < 1.1 * f64::from(pages as u32) / 5.0, "{took} s for {pages} pages of each host");
    worker.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_ends_what_has_begun_and_gives_back_the_rest() {
    let memory = Memory::default();
    memory.page(&url(1), Some(Duration::from_millis(500)));
    memory.page(&format!("{}waits", url(1)), QUICK);
    let worker = Worker::start(&memory, |_| {});
    timeout(LIMIT, memory.until("ask for", 1)).await.unwrap();
    let calls = worker.stop().await.unwrap();
    at(&calls, &format!("release {}waits", url(1)));
    at(&calls, &format!("settle {} done", url(1)));
    assert_eq!((count(&calls, "settle"), count(&calls, "ask for")), (1, 1), "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_in_time_is_given_back() {
    let memory = Memory::default();
    memory.page(&url(1), None);
    let worker = Worker::start(&memory, |settings| {
        settings.worker.shutdown_timeout = Duration::from_secs(7);
    });
    timeout(LIMIT, memory.until("ask for", 1)).await.unwrap();
    let begun = Instant::now();
    let calls = worker.stop().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 7);
    at(&calls, &format!("release {}", url(1)));
    assert_eq!(count(&calls, "settle"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_url_that_kills_its_workers_becomes_a_dead_letter_and_is_not_fetched() {
    let memory = Memory::default();
    memory.page(&url(1), QUICK);
    memory.set_start(&url(1), StartReply::Poison);
    let calls = Worker::start(&memory, |_| {}).until_ended(1).await;
    at(&calls, &format!("settle {} failed poison", url(1)));
    assert_eq!(count(&calls, "ask for"), 0);
}

#[tokio::test(start_paused = true)]
async fn urls_that_may_kill_workers_begin_one_at_a_time_beside_the_others() {
    let memory = Memory::default();
    for number in 1..=2 {
        memory.has_begun(&url(number), SUSPECT_STARTS);
        memory.page(&url(number), Some(Duration::from_secs(3)));
    }
    memory.page(&url(3), QUICK);
    let calls = Worker::start(&memory, |_| {}).until_ended(3).await;
    let ended = [1, 2, 3].map(|number| at(&calls, &format!("settle {} done", url(number))));
    assert!(ended[0] < at(&calls, "reserve 192.0.2.2"), "{calls:#?}");
    assert!(ended[2] < ended[0], "{calls:#?}");
}

/// Whichever of them was killed last time: it takes another death as the only one to make it poison.
#[tokio::test(start_paused = true)]
async fn of_urls_that_may_kill_workers_the_one_with_the_fewest_starts_begins_first() {
    let memory = Memory::default();
    for (number, starts) in (1..).zip([MAX_STARTS - 1, SUSPECT_STARTS, SUSPECT_STARTS]) {
        memory.has_begun(&url(number), starts);
        memory.page(&url(number), Some(Duration::from_secs(3)));
    }
    let calls = Worker::start(&memory, |_| {}).until_ended(3).await;
    let [last, first, second] = [1, 2, 3].map(|number| at(&calls, &format!("start {}", url(number))));
    assert!(first < second && second < last, "{calls:#?}");
    assert!(at(&calls, &format!("settle {} done", url(3))) < last, "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_slot_stops_the_worker_and_no_request_is_sent() {
    let memory = Memory::default();
    for number in 1..=3 {
        memory.page(&url(number), QUICK);
    }
    memory.schedules(Schedules::Short);
    let ended = Worker::start(&memory, |_| {}).ended().await;
    assert!(matches!(ended, Err(RunError::Port(error)) if error.kind == ErrorKind::Corrupt));
    let calls = memory.calls();
    assert_eq!((count(&calls, "start"), count(&calls, "ask for")), (0, 0), "{calls:#?}");
    assert_eq!(count(&calls, "release"), 3, "others take them over at once");
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_stops_the_worker_and_an_outage_is_waited_for() {
    let memory = Memory::default();
    memory.page(&url(1), QUICK);
    memory.schedules(Schedules::Away(5));
    let worker = Worker::start(&memory, |_| {});
    timeout(LIMIT, memory.until("settle", 1)).await.unwrap();
    memory.schedules(Schedules::Refuse);
    memory.page(&url(2), QUICK);
    let ended = worker.ended().await;
    assert!(matches!(ended, Err(RunError::Port(error)) if error.kind == ErrorKind::Refused));
    assert_eq!(count(&memory.calls(), "ask for"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_server_is_away_at_its_first_heartbeat_begins_when_it_is_back() {
    let memory = Memory::default();
    memory.page(&url(1), QUICK);
    memory.miss_beats(3);
    let worker = Worker::start(&memory, |_| {});
    timeout(LIMIT, memory.until("settle", 1)).await.unwrap();
    worker.stop.cancel();
    worker.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_server_is_away_at_its_first_heartbeat_can_be_stopped() {
    let memory = Memory::default();
    memory.miss_beats(u32::MAX);
    let worker = Worker::start(&memory, |_| {});
    sleep(Duration::from_secs(5)).await;
    worker.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_settled_for_good_ends_the_worker_and_is_given_back() {
    let memory = Memory::default();
    memory.page(&url(1), QUICK);
    memory.page(&url(2), None);
    memory.refuse_settlement();
    let ended = Worker::start(&memory, |_| {}).ended().await;
    let Err(RunError::Port(error)) = ended else { panic!("{ended:?}") };
    assert_eq!(error.to_string(), "finishing: no permission");
    let calls = memory.calls();
    assert_eq!((count(&calls, "settle"), count(&calls, "release")), (0, 2), "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_refuses_keeps_its_pages_from_their_end_until_it_is_set_right() {
    let memory = Memory::default();
    memory.page(&url(1), QUICK);
    memory.sink_refuses(7);
    let calls = Worker::start(&memory, |_| {}).until_ended(1).await;
    let (refused, stored) = (count(&calls, "refuse"), at(&calls, &format!("store {}", url(1))));
    assert_eq!((refused, stored + 1), (7, at(&calls, &format!("settle {} done", url(1)))), "{calls:#?}");
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_hosts_are_asked_at_their_rate() {
    let memory = Memory::default();
    for number in 0..3 {
        memory.page(&format!("{}{number}", url(1)), QUICK);
    }
    memory.schedules(Schedules::Away(6));
    let worker = Worker::start(&memory, |_| {});
    timeout(LIMIT, memory.until("ask for", 1)).await.unwrap();
    let begun = Instant::now();
    timeout(LIMIT, memory.until("ask for", 3)).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(1_950), "{:?}", begun.elapsed());
    sleep(Duration::from_millis(10)).await;
    worker.stop().await.unwrap();
}
