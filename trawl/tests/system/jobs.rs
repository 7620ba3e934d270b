//! Jobs in a fleet of real processes: each is run once, in the order of the queue, and none is lost.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Child;
use tokio::time::{sleep, timeout};
use trawl_backends::redis::RedisSpiderStore;
use trawl_backends::{fleet, redis};
use trawl_common::jobs::{Job, JobStatus, NewJob};
use trawl_common::ports::{JobFilter, JobPage, Jobs, SpiderStore, Submitted};
use trawl_common::request::NewRequest;
use trawl_common::settings::{Redis, Settings};
use trawl_common::spider::SpiderFiles;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well, run};

const ALL: JobPage = JobPage { before: None, max: 10_000 };

/// The jobs of a fleet, as an API would submit them.
async fn jobs_of(fleet: &Fleet) -> Arc<dyn Jobs> {
    let mut settings =
        Settings { redis: Redis { url: fleet.redis.clone(), ..Redis::default() }, ..Settings::default() };
    settings.rabbitmq.url = fleet.vhost.url.clone();
    let store = redis::connect(&settings.redis).await.unwrap();
    fleet::asked_of(&settings, store).unwrap().jobs
}

/// A job that fetches one page of the site, for a spider with a file.
fn job(fleet: &Fleet, id: &str, spider: &str, page: String, priority: f64) -> NewJob {
    fs::write(fleet.folder.path().join(format!("spiders/{spider}.toml")), "").unwrap();
    let new = NewJob::new(id.parse().unwrap(), spider.parse().unwrap());
    NewJob { urls: vec![NewRequest::get(page).into()], priority: priority.try_into().unwrap(), ..new }
}

/// Returns all jobs, once this many of them are over.
async fn ended(jobs: &Arc<dyn Jobs>, count: usize, limit: Duration) -> Vec<Job> {
    let ended = async {
        loop {
            let all = jobs.list(&JobFilter::default(), ALL).await.unwrap();
            if all.iter().filter(|job| job.status().is_over()).count() >= count {
                return all;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(limit, ended).await.expect("the jobs end")
}

async fn kill(mut worker: Child) {
    worker.kill().await.unwrap();
}

#[tokio::test]
async fn no_job_is_lost_and_none_is_run_twice_when_a_worker_is_killed() {
    const SPIDERS: usize = 12;
    const JOBS: usize = 10;
    let fleet = Fleet::new().await;
    let site = Site::serve(SPIDERS * JOBS).await;
    let jobs = jobs_of(&fleet).await;
    for number in 0..SPIDERS * JOBS {
        let spider = format!("s{}", number % SPIDERS);
        let new = job(&fleet, &format!("j{number}"), &spider, site.page(number), (number % 3) as f64);
        assert_eq!(jobs.submit(&new).await.unwrap(), Submitted::New);
    }
    let dying = fleet.worker(&[]);
    let living = fleet.worker(&[]);
    site.asked_for(SPIDERS * JOBS / 4).await;
    kill(dying).await;
    let all = ended(&jobs, SPIDERS * JOBS, 3 * LIMIT).await;
    assert_eq!(all.len(), SPIDERS * JOBS);
    assert!(all.iter().all(|job| job.status() == JobStatus::Finished), "{all:?}");
    let asked: Vec<(String, usize)> =
        site.log().into_iter().filter(|(path, _)| path.starts_with("/page/")).collect();
    assert_eq!(asked.len(), SPIDERS * JOBS, "each page is fetched");
    // The pages that the killed worker had started and not settled are fetched again, once.
    let again: usize = asked.iter().map(|(_, times)| times - 1).sum();
    assert!(again <= 4, "{asked:?}");
    ends_well(living).await;
}

#[tokio::test]
async fn of_what_is_pending_the_highest_priority_is_begun_first() {
    let fleet = Fleet::new().await;
    let site = Site::serve(10).await;
    let jobs = jobs_of(&fleet).await;
    for (number, priority) in [0.0, 5.0, -1.0, 2.5, 100.0, 2.5].into_iter().enumerate() {
        let new = job(&fleet, &format!("j{number}"), &format!("s{number}"), site.page(number), priority);
        jobs.submit(&new).await.unwrap();
    }
    let worker = fleet.worker(&[("TRAWL__JOBS__PER_WORKER", "1")]);
    let mut all = ended(&jobs, 6, LIMIT).await;
    all.sort_by_key(|job| job.run().map(|run| run.started));
    let begun: Vec<&str> = all.iter().map(|job| job.new.id.as_str()).collect();
    assert_eq!(begun, ["j4", "j1", "j3", "j5", "j0", "j2"]);
    ends_well(worker).await;
}

#[tokio::test]
async fn a_job_is_asked_for_waited_for_and_cancelled_by_command() {
    let fleet = Fleet::new().await;
    let site = Site::serve(3).await;
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let (cancelled, _) = run(fleet.command(&["jobs", "submit", "default", &sitemap]), 0).await;
    let (status, _) = run(fleet.command(&["status", &cancelled, "--json"]), 0).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["status"], "pending");
    run(fleet.command(&["jobs", "cancel", &cancelled]), 0).await;
    run(fleet.command(&["wait", &cancelled]), 4).await;

    let key = ["jobs", "submit", "default", &sitemap, "--priority", "-1.5", "--idempotency-key", "k"];
    let (first, _) = run(fleet.command(&key), 0).await;
    let (again, _) = run(fleet.command(&key), 0).await;
    assert_eq!(first, again);
    let (unknown, warned) = run(fleet.command(&["jobs", "submit", "no-such-spider"]), 0).await;
    assert!(warned.contains("warning: no spider no-such-spider is deployed"), "{warned}");
    let worker = fleet.worker(&[]);
    run(fleet.command(&["wait", &first]), 0).await;
    let (_, error) = run(fleet.command(&["wait", &unknown]), 1).await;
    assert!(error.contains("no-such-spider.toml"), "{error}");
    let jobs = jobs_of(&fleet).await;
    ended(&jobs, 3, LIMIT).await;
    let (listed, _) = run(fleet.command(&["jobs", "list", "--json"]), 0).await;
    let statuses: Vec<String> = listed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(statuses, ["failed", "finished", "cancelled"]);
    ends_well(worker).await;
}

#[tokio::test]
async fn a_deployed_spider_runs_with_its_arguments_on_workers_that_have_no_file_of_it() {
    const SPIDER: &str = "[start]\nurls = ['ORIGIN/page/{arg.page}']\n[arguments]\npage = {}\n\
                          [fields]\nnumber_{version} = { css = 'no-such', default = '{arg.page}' }\n";
    let fleet = Fleet::new().await;
    let site = Site::serve(9).await;
    fs::create_dir(fleet.folder.path().join("elsewhere")).unwrap();
    for version in ["r1", "r2"] {
        let text = SPIDER.replace("ORIGIN", &site.origin).replace("{version}", version);
        fs::write(fleet.folder.path().join("elsewhere/books.toml"), text).unwrap();
        let push = ["spider", "push", "elsewhere/books.toml", "--project", "shop", "--version", version];
        assert_eq!(run(fleet.command(&push), 0).await.0, version);
    }
    let workers = [fleet.worker(&[]), fleet.worker(&[])];
    let submit = async |words: &[&str]| {
        let words = [&["jobs", "submit", "books", "--project", "shop"], words].concat();
        run(fleet.command(&words), 0).await.0
    };
    let jobs = [
        submit(&["-a", "page=3"]).await,
        submit(&["-a", "page=4", "--version", "r1"]).await,
        submit(&["-a", "page=5", "--version", "r3"]).await,
        submit(&["-a", "size=5"]).await,
    ];
    for (job, code) in jobs.iter().zip([0, 0, 1, 1]) {
        run(fleet.command(&["wait", job]), code).await;
    }
    let mut items: Vec<(Value, Value)> =
        fleet.items().await.into_iter().map(|item| (item["url"].clone(), item["fields"].clone())).collect();
    items.sort_by_key(|(url, _)| url.to_string());
    assert_eq!(
        items,
        [
            (site.page(3).into(), serde_json::json!({ "number_r2": "3" })),
            (site.page(4).into(), serde_json::json!({ "number_r1": "4" })),
        ]
    );
    let problem = async |job: &str| {
        let (shown, _) = run(fleet.command(&["jobs", "show", job, "--json"]), 0).await;
        serde_json::from_str::<Value>(&shown).unwrap()["problem"].to_string()
    };
    assert!(problem(&jobs[2]).await.contains("has no version r3 with spider books"));
    assert!(problem(&jobs[3]).await.contains("there is no argument `size`"));
    for worker in workers {
        ends_well(worker).await;
    }
}

/// Deploys a spider without any check, as anyone with write access to Redis could.
async fn write_to_redis(fleet: &Fleet, spider: &str, text: String) {
    let settings = Redis { url: fleet.redis.clone(), ..Redis::default() };
    let store = RedisSpiderStore::new(redis::connect(&settings).await.unwrap());
    let files = SpiderFiles::new([(spider.parse().unwrap(), text)].into()).unwrap();
    store.add(&"default".parse().unwrap(), &"r1".parse().unwrap(), &files).await.unwrap();
}

#[tokio::test]
async fn a_deployed_spider_has_nothing_of_its_worker_also_where_nobody_looked_at_it_before() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let (jobs, worker) = (jobs_of(&fleet).await, fleet.worker(&[("SECRET", "s3cret")]));
    let start = format!("[start]\nurls = ['{}']\n", site.page(0));
    let program = fleet.folder.path().join("spiders/other/run.sh");
    let sink = |path: &str| format!("{start}[[sinks]]\nkind = 'jsonl'\npath = '{path}'\n");
    let attacks = [
        (sink(program.to_str().unwrap()), "spiders.sinks_dir"),
        (sink("spiders/other/run.sh"), "spiders.sinks_dir"),
        (sink("items/../spiders/other/run.sh"), "spiders.sinks_dir"),
        ("[start]\nsitemaps = ['/proc/self/environ']\n".to_owned(), "starts from URLs alone"),
        (format!("{start}[request]\nheaders = {{ X = {{ env = 'SECRET' }} }}\n"), "spiders.variables"),
    ];
    for (number, (text, why)) in attacks.iter().enumerate() {
        let file = fleet.folder.path().join("evil.toml");
        fs::write(&file, text).unwrap();
        let (_, refused) = run(fleet.command(&["spider", "push", file.to_str().unwrap()]), 2).await;
        assert!(refused.contains(why), "{text}: {refused}");
        write_to_redis(&fleet, "evil", text.clone()).await;
        jobs.submit(&NewJob::new(format!("j{number}").parse().unwrap(), "evil".parse().unwrap()))
            .await
            .unwrap();
        let all = ended(&jobs, number + 1, LIMIT).await;
        let job = all.iter().find(|job| job.new.id.as_str() == format!("j{number}")).unwrap();
        assert_eq!(job.status(), JobStatus::Failed, "{text}");
        let shown = format!("{job:?}");
        assert!(shown.contains(why) && !shown.contains("s3cret"), "{text}: {shown}");
    }
    assert!(!program.exists() && site.log().is_empty());
    let (letters, _) = run(fleet.command(&["dlq", "list", "--json"]), 0).await;
    assert_eq!(letters, "");
    // A permitted path works.
    write_to_redis(&fleet, "good", sink("items/{spider}/a.jsonl")).await;
    jobs.submit(&NewJob::new("good".parse().unwrap(), "good".parse().unwrap())).await.unwrap();
    run(fleet.command(&["wait", "good"]), 0).await;
    let items = fs::read_to_string(fleet.folder.path().join("items/good/a.jsonl")).unwrap();
    assert_eq!(items.lines().count(), 1, "{items}");
    // Symbolic links in that folder are not followed.
    std::os::unix::fs::symlink(fleet.folder.path().join("spiders"), fleet.folder.path().join("items/link"))
        .unwrap();
    write_to_redis(&fleet, "link", sink("items/link/run.sh")).await;
    jobs.submit(&NewJob::new("link".parse().unwrap(), "link".parse().unwrap())).await.unwrap();
    let said = async {
        while !run(fleet.command(&["logs", "--json"]), 0).await.0.contains("symbolic link") {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(LIMIT, said).await.expect("the log says so");
    assert!(!fleet.folder.path().join("spiders/run.sh").exists());
    ends_well(worker).await;
}
