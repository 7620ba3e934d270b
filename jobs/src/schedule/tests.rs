//! Tests of schedules on the embedded engine, at chosen instants.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use trawl_backends::embedded::Embedded;
use trawl_backends::sinks::Sinks;
use trawl_common::health::Health;
use trawl_common::jobs::{Job, JobOutcome, NewJob};
use trawl_common::ports::JobCounts;
use trawl_common::settings::Settings;
use trawl_common::spider::SpiderFiles;
use trawl_common::spider::folder::Folder;

use super::*;

/// An instant at the start of a minute.
const NOON: UnixMs = UnixMs(1_795_435_200_000);

const START: &str = "[start]\nurls = ['http://a.example/']\n";

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// A store, and a folder of spiders that all workers share.
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
        let folder = Folder::new(&settings);
        Arc::new(Runner { ports, settings: Arc::new(settings), folder, id, health: Health::default() })
    }

    /// Does what a worker that has just started does at `now`.
    async fn look(&self, now: UnixMs) {
        let worker = self.worker();
        look(&worker, &read(&worker).await, now).await.unwrap();
    }

    async fn deploy(&self, project: &str, version: &str, files: &[(&str, &str)]) {
        let text = |schedule: &str| format!("{schedule}\n{START}");
        let files = files.iter().map(|(spider, schedule)| (spider.parse().unwrap(), text(schedule)));
        let files = SpiderFiles::new(files.collect()).unwrap();
        let (project, version) = (project.parse().unwrap(), version.parse().unwrap());
        self.store.spider_store().add(&project, &version, &files).await.unwrap();
    }

    async fn done(&self, spider: &str, until: UnixMs) {
        self.store.schedules().note(&spider.parse().unwrap(), until).await.unwrap();
    }

    async fn jobs(&self) -> Vec<Job> {
        let all = JobPage { before: None, max: 100 };
        self.store.jobs().list(&JobFilter::default(), all).await.unwrap()
    }

    /// The scheduled instants of the submitted jobs, the latest first.
    async fn asked(&self) -> Vec<String> {
        let ids = self.jobs().await;
        ids.iter().map(|job| job.new.id.as_str()[..15].to_owned()).collect()
    }
}

/// Returns the timetable of a worker that has just started.
async fn read(worker: &Runner) -> Timetable {
    let mut timetable = Timetable::default();
    read_again(&mut timetable, worker).await;
    timetable
}

async fn read_again(timetable: &mut Timetable, worker: &Runner) {
    timetable.read_again(&*worker.ports.spider_store, &worker.settings).await.unwrap();
}

fn scheduled(timetable: &Timetable) -> Vec<String> {
    let mut all: Vec<String> =
        timetable.schedules().map(|(spider, schedule)| format!("{spider} {}", schedule.cron)).collect();
    all.sort();
    all
}

fn minute(instant: UnixMs) -> String {
    NewJob::scheduled(&"any".parse().unwrap(), instant).id.as_str()[..15].to_owned()
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
            look(&worker, &read(&worker).await, now).await.unwrap();
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
        let job = NewJob::scheduled(&"shop".parse().unwrap(), NOON);
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
    fleet.write("shop", "schedule = '1 * * * *'");
    fleet.write("wrong", "schedule = '99 * * * *'");
    fleet.write("idle", "");
    let mut timetable = read(&worker).await;
    assert_eq!(scheduled(&timetable), ["shop 1 * * * *"]);
    fleet.write("shop", "schedule = '2 * * * *'");
    fleet.write("wrong", "schedule = '9 * * * *'");
    read_again(&mut timetable, &worker).await;
    assert_eq!(scheduled(&timetable), ["shop 2 * * * *", "wrong 9 * * * *"]);
    fs::remove_file(fleet.folder.path().join("shop.toml")).unwrap();
    read_again(&mut timetable, &worker).await;
    assert_eq!(scheduled(&timetable), ["wrong 9 * * * *"]);
}

#[tokio::test]
async fn a_schedule_is_that_of_the_latest_version_which_is_run_in_place_of_a_file_that_is_here() {
    let fleet = Fleet::new();
    let worker = fleet.worker();
    let mut timetable = Timetable::default();
    fleet.write("shop", "schedule = '1 * * * *'");
    fleet.write("news", "schedule = '1 * * * *'");
    fleet.deploy("default", "r1", &[("shop", "schedule = '2 * * * *'")]).await;
    fleet
        .deploy("books", "r1", &[("shop", "schedule = '3 * * * *'"), ("wrong", "schedule = '99 * * * *'")])
        .await;
    read_again(&mut timetable, &worker).await;
    assert_eq!(scheduled(&timetable), ["books/shop 3 * * * *", "news 1 * * * *", "shop 2 * * * *"]);
    fleet.deploy("books", "r2", &[("wrong", "schedule = '4 * * * *'")]).await;
    fleet.deploy("default", "r2", &[("shop", "")]).await;
    read_again(&mut timetable, &worker).await;
    assert_eq!(scheduled(&timetable), ["books/wrong 4 * * * *", "news 1 * * * *"]);
    let (store, books) = (fleet.store.spider_store(), "books".parse().unwrap());
    store.remove(&books, Some(&"r2".parse().unwrap())).await.unwrap();
    store.remove(&"default".parse().unwrap(), None).await.unwrap();
    read_again(&mut timetable, &worker).await;
    assert_eq!(scheduled(&timetable), ["books/shop 3 * * * *", "news 1 * * * *", "shop 1 * * * *"]);
}

#[tokio::test]
async fn a_deployed_spider_is_asked_for_once_by_workers_that_have_no_file_of_it_in_each_project_that_has_it()
{
    let fleet = Fleet::new();
    for project in ["books", "default"] {
        fleet
            .deploy(project, "r1", &[("shop", "schedule = { cron = '* * * * *', overlap = 'queue' }")])
            .await;
    }
    for spider in ["shop", "books/shop"] {
        fleet.done(spider, UnixMs(NOON.0 - 1)).await;
    }
    let mut looking = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let worker = fleet.worker();
        looking.spawn(async move { look(&worker, &read(&worker).await, NOON).await.unwrap() });
    }
    looking.join_all().await;
    let mut asked: Vec<_> =
        fleet.jobs().await.into_iter().map(|job| job.new.spider_ref().to_string()).collect();
    asked.sort();
    assert_eq!(asked, ["books/shop", "shop"]);
    let states = fleet.store.schedules().list().await.unwrap();
    assert!(states.values().all(|state| *state == ScheduleState::Done(NOON)), "{states:?}");
}
