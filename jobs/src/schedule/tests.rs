//! On the embedded engine, at instants that the tests choose.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use trawl_backends::embedded::Embedded;
use trawl_backends::sinks::Sinks;
use trawl_common::health::Health;
use trawl_common::jobs::{Job, JobOutcome, NewJob};
use trawl_common::ports::JobCounts;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;

use super::*;

/// A full minute.
const NOON: UnixMs = UnixMs(1_795_435_200_000);

const START: &str = "[start]\nurls = ['http://a.example/']\n";

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// A store, and a folder of spiders that all its workers have.
struct Fleet {
    store: Embedded,
    folder: TempDir,
}

impl Fleet {
    fn new() -> Self {
        Self { store: Embedded::in_memory().unwrap(), folder: tempfile::tempdir().unwrap() }
    }

    fn write(&self, spider: &str, schedule: &str) {
        let file = self.folder.path().join(format!("{spider}.toml"));
        fs::write(file, format!("{schedule}\n{START}")).unwrap();
    }

    fn worker(&self) -> Arc<Runner> {
        let settings = Settings { spiders_dir: self.folder.path().to_owned(), ..Settings::default() };
        let id: trawl_common::names::WorkerId = "one".parse().unwrap();
        let ports = self.store.ports(Arc::new(Sinks::new(id.clone(), Vec::new())));
        let folder = Folder::of(&settings);
        Arc::new(Runner { ports, settings: Arc::new(settings), folder, id, health: Health::default() })
    }

    /// What a worker that has just begun does at `now`.
    async fn look(&self, now: UnixMs) {
        let worker = self.worker();
        let timetable = Timetable::default().read_again(&worker).await;
        look(&worker, &timetable, now).await.unwrap();
    }

    async fn done(&self, spider: &str, until: UnixMs) {
        self.store.schedules().note(&spider.parse().unwrap(), until).await.unwrap();
    }

    async fn jobs(&self) -> Vec<Job> {
        let all = JobPage { before: None, max: 100 };
        self.store.jobs().list(&JobFilter::default(), all).await.unwrap()
    }

    /// The instants for which jobs were asked, the latest first.
    async fn asked(&self) -> Vec<String> {
        let ids = self.jobs().await;
        ids.iter().map(|job| job.new.id.as_str()[..15].to_owned()).collect()
    }
}

fn minute(instant: UnixMs) -> String {
    schedule::job(&"any".parse().unwrap(), instant).id.as_str()[..15].to_owned()
}

#[tokio::test]
async fn a_schedule_begins_when_it_is_first_seen_and_then_runs_at_each_of_its_instants() {
    let fleet = Fleet::new();
    fleet.write("shop", "schedule = '*/5 * * * *'");
    fleet.look(NOON).await;
    assert_eq!(fleet.asked().await, [""; 0]);
    for after in [4, 5, 5, 9, 10] {
        fleet.look(NOON.plus(minutes(after))).await;
        for job in fleet.jobs().await {
            fleet.store.jobs().end(&job.new.id, &JobOutcome::Cancelled).await.unwrap();
        }
    }
    assert_eq!(fleet.asked().await, [10, 5].map(|after| minute(NOON.plus(minutes(after)))));
}

#[tokio::test]
async fn workers_that_look_at_once_ask_for_one_crawl() {
    let fleet = Fleet::new();
    fleet.write("shop", "schedule = '* * * * *'");
    fleet.done("shop", UnixMs(NOON.0 - 1)).await;
    let workers: Vec<_> = (0..8).map(|_| fleet.worker()).collect();
    let mut looking = tokio::task::JoinSet::new();
    for (number, worker) in workers.into_iter().enumerate() {
        // Their clocks differ a little.
        let now = NOON.plus(Duration::from_millis(10 * number as u64));
        looking.spawn(async move {
            let timetable = Timetable::default().read_again(&worker).await;
            look(&worker, &timetable, now).await.unwrap();
        });
    }
    looking.join_all().await;
    assert_eq!(fleet.asked().await, [minute(NOON)]);
}

#[tokio::test]
async fn what_a_worker_asked_for_that_died_before_it_noted_that_is_not_asked_for_again() {
    for overlap in ["skip", "queue"] {
        let fleet = Fleet::new();
        fleet.write("shop", &format!("schedule = {{ cron = '* * * * *', overlap = '{overlap}' }}"));
        fleet.done("shop", UnixMs(NOON.0 - 1)).await;
        let job = schedule::job(&"shop".parse().unwrap(), NOON);
        fleet.store.jobs().submit(&job).await.unwrap();
        fleet.look(NOON).await;
        assert_eq!(fleet.asked().await.len(), 1);
        let states = fleet.store.schedules().list().await.unwrap();
        assert_eq!(states.values().next(), Some(&ScheduleState::Done(NOON)));
    }
}

#[tokio::test]
async fn while_the_last_crawl_is_not_over_the_next_is_left_out_or_waits_in_the_line() {
    for (overlap, pending) in [("skip", 1), ("queue", 2)] {
        let fleet = Fleet::new();
        fleet.write("shop", &format!("schedule = {{ cron = '* * * * *', overlap = '{overlap}' }}"));
        fleet.done("shop", UnixMs(NOON.0 - 1)).await;
        let by_hand = NewJob::new("by-hand".parse().unwrap(), "shop".parse().unwrap());
        fleet.store.jobs().submit(&by_hand).await.unwrap();
        fleet.look(NOON).await;
        let counts = fleet.store.jobs().counts().await.unwrap();
        assert_eq!(counts, JobCounts { pending, running: 0, ended: 0 }, "{overlap}");
    }
}

#[tokio::test]
async fn what_passed_while_the_fleet_was_away_is_left_out_or_made_up_for_once() {
    for (missed, expected) in [("skip", vec![]), ("run", vec![minute(NOON)])] {
        let fleet = Fleet::new();
        fleet.write("shop", &format!("schedule = {{ cron = '0 * * * *', missed = '{missed}' }}"));
        fleet.done("shop", UnixMs(NOON.0 - 7 * 24 * 3_600_000)).await;
        for after in [30, 31] {
            fleet.look(NOON.plus(minutes(after))).await;
        }
        assert_eq!(fleet.asked().await, expected, "{missed}");
    }
}

#[tokio::test]
async fn a_schedule_that_is_held_asks_for_nothing_and_makes_up_for_nothing() {
    let fleet = Fleet::new();
    fleet.write("shop", "schedule = { cron = '0 * * * *', missed = 'run' }");
    let (shop, schedules) = ("shop".parse().unwrap(), fleet.store.schedules());
    fleet.done("shop", UnixMs(NOON.0 - 1)).await;
    schedules.pause(&shop).await.unwrap();
    fleet.look(NOON).await;
    schedules.resume(&shop, NOON.plus(minutes(1))).await.unwrap();
    fleet.look(NOON.plus(minutes(2))).await;
    assert_eq!(fleet.asked().await, [""; 0]);
    fleet.look(NOON.plus(minutes(60))).await;
    assert_eq!(fleet.asked().await, [minute(NOON.plus(minutes(60)))]);
}

#[tokio::test]
async fn a_file_is_read_again_when_it_changes_and_one_that_is_wrong_holds_up_no_other() {
    let fleet = Fleet::new();
    let worker = fleet.worker();
    let scheduled = |timetable: &Timetable| {
        timetable
            .schedules()
            .map(|(spider, schedule)| format!("{spider} {}", schedule.cron))
            .collect::<Vec<_>>()
    };
    fleet.write("shop", "schedule = '1 * * * *'");
    fleet.write("wrong", "schedule = '99 * * * *'");
    fleet.write("idle", "");
    let timetable = Timetable::default().read_again(&worker).await;
    assert_eq!(scheduled(&timetable), ["shop 1 * * * *"]);
    fleet.write("shop", "schedule = '2 * * * *'");
    fleet.write("wrong", "schedule = '9 * * * *'");
    let timetable = timetable.read_again(&worker).await;
    assert_eq!(scheduled(&timetable), ["shop 2 * * * *", "wrong 9 * * * *"]);
    fs::remove_file(fleet.folder.path().join("shop.toml")).unwrap();
    assert_eq!(scheduled(&timetable.read_again(&worker).await), ["wrong 9 * * * *"]);
}
