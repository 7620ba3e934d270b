//! Schedules in a fleet of real processes: each due crawl is submitted once, whichever workers are alive.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};
use trawl_backends::redis::{self, RedisSchedules};
use trawl_common::ports::{ScheduleState, Schedules};
use trawl_common::settings::Redis;
use trawl_common::time::UnixMs;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

const DAY: u64 = 24 * 3_600_000;

async fn schedules_of(fleet: &Fleet) -> Arc<dyn Schedules> {
    let settings = Redis { url: fleet.redis.clone(), ..Redis::default() };
    Arc::new(RedisSchedules::new(redis::connect(&settings).await.unwrap()))
}

/// Due once a year, so that no test runs into that time by chance.
fn write(fleet: &Fleet, spider: &str, page: &str) {
    let file = fleet.folder.path().join(format!("spiders/{spider}.toml"));
    let schedule = "[schedule]\ncron = '0 0 1 jan *'\nmissed = 'run'\n";
    fs::write(file, format!("{schedule}[start]\nurls = ['{page}']\n")).unwrap();
}

/// Returns the output of a command that must end with `code`.
async fn run(fleet: &Fleet, words: &[&str], code: i32) -> (String, String) {
    let output = timeout(LIMIT, fleet.command(words).output()).await.unwrap().unwrap();
    let (out, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{out}{error}");
    (out.trim().to_owned(), error)
}

async fn jobs(fleet: &Fleet) -> Vec<Value> {
    let (listed, _) = run(fleet, &["jobs", "list", "--json"], 0).await;
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until workers have seen the schedule of a spider.
async fn seen(schedules: &Arc<dyn Schedules>, spider: &str) {
    let spider = spider.parse().unwrap();
    let seen = async {
        while !schedules.list().await.unwrap().contains_key(&spider) {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, seen).await.expect("a worker looks");
}

#[tokio::test]
async fn a_crawl_that_two_workers_find_due_is_run_once_and_not_again_when_one_is_killed() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let schedules = schedules_of(&fleet).await;
    write(&fleet, "shop", &site.page(0));
    schedules.note(&"shop".parse().unwrap(), UnixMs(UnixMs::now().0 - 700 * DAY)).await.unwrap();
    let (mut dying, living) = (fleet.worker(&[]), fleet.worker(&[]));
    timeout(LIMIT, site.asked_for_path("/page/0", 1)).await.unwrap();
    let all = jobs(&fleet).await;
    run(&fleet, &["wait", all[0]["job"].as_str().unwrap()], 0).await;
    dying.kill().await.unwrap();
    // It is checked after the other one.
    write(&fleet, "shop-too", &site.page(0));
    seen(&schedules, "shop-too").await;
    assert_eq!(jobs(&fleet).await.len(), 1);
    assert_eq!(site.log()["/page/0"], 1);
    ends_well(living).await;
}

#[tokio::test]
async fn a_deployed_spider_runs_once_by_its_schedule_on_workers_that_have_no_file_of_it() {
    let fleet = Fleet::new().await;
    let site = Site::serve(2).await;
    let schedules = schedules_of(&fleet).await;
    let folder = fleet.folder.path().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    let text = |page| {
        format!(
            "schedule = {{ cron = '0 0 1 jan *', missed = 'run' }}\n[start]\nurls = ['{}']\n",
            site.page(page)
        )
    };
    let push = async |page: usize| {
        fs::write(folder.join("shop.toml"), text(page)).unwrap();
        run(&fleet, &["spider", "push", "elsewhere/shop.toml", "--project", "books"], 0).await;
    };
    let workers = [fleet.worker(&[]), fleet.worker(&[])];
    push(0).await;
    seen(&schedules, "books/shop").await;
    let (listed, _) = run(&fleet, &["schedule", "list", "--json"], 0).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed["project"], &listed["spider"]), (&"books".into(), &"shop".into()));
    assert_eq!((jobs(&fleet).await.len(), &listed["last"]), (0, &Value::Null));

    // As if the fleet had been away for two years. The schedule that is paused again is up to date by then.
    run(&fleet, &["schedule", "pause", "books/shop"], 0).await;
    push(1).await;
    schedules.resume(&"books/shop".parse().unwrap(), UnixMs(UnixMs::now().0 - 700 * DAY)).await.unwrap();
    timeout(LIMIT, site.asked_for_path("/page/1", 1)).await.unwrap();
    let all = jobs(&fleet).await;
    assert_eq!((&all[0]["project"], all.len()), (&"books".into(), 1));
    run(&fleet, &["wait", all[0]["job"].as_str().unwrap()], 0).await;
    push(0).await;
    write(&fleet, "shop-too", &site.page(0));
    seen(&schedules, "shop-too").await;
    assert_eq!((jobs(&fleet).await.len(), site.log()["/page/1"]), (1, 1));
    for worker in workers {
        ends_well(worker).await;
    }
}

#[tokio::test]
async fn a_schedule_is_listed_held_resumed_and_run_by_command() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let schedules = schedules_of(&fleet).await;
    let list = || async {
        let (listed, _) = run(&fleet, &["schedule", "list", "--json"], 0).await;
        serde_json::from_str::<Value>(&listed).unwrap()
    };
    let (_, error) = run(&fleet, &["schedule", "pause", "shop"], 2).await;
    assert!(error.contains("no schedule of shop"), "{error}");
    write(&fleet, "shop", &site.page(0));
    run(&fleet, &["schedule", "pause", "shop"], 0).await;
    let held = list().await;
    assert_eq!(
        (&held["spider"], &held["paused"], &held["next"]),
        (&"shop".into(), &true.into(), &Value::Null)
    );

    let worker = fleet.worker(&[]);
    write(&fleet, "shop-too", &site.page(0));
    seen(&schedules, "shop-too").await;
    let state = schedules.list().await.unwrap()[&"shop".parse().unwrap()];
    assert_eq!(state, ScheduleState::Paused);
    fs::remove_file(fleet.folder.path().join("spiders/shop-too.toml")).unwrap();

    run(&fleet, &["schedule", "resume", "shop"], 0).await;
    let (job, _) = run(&fleet, &["schedule", "run", "shop"], 0).await;
    run(&fleet, &["wait", &job], 0).await;
    let listed = list().await;
    assert_eq!((&listed["last"]["job"], &listed["paused"]), (&job.as_str().into(), &false.into()));
    assert!(listed["next"].as_str().unwrap().ends_with("-01-01T00:00:00.000Z"), "{listed}");
    assert_eq!(jobs(&fleet).await.len(), 1);
    ends_well(worker).await;
}
