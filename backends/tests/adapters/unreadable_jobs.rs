//! A job that cannot be read is left alone, and all others continue: in a real Redis and in a state file.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use trawl_backends::embedded::Embedded;
use trawl_backends::redis::{Link, RedisJobs};
use trawl_common::jobs::{Hold, Job, JobOutcome, NewJob};
use trawl_common::ports::{ErrorKind, JobFilter, JobPage, Jobs};

use crate::support::own_link;

/// Longer than any step of a test.
const LONG: Duration = Duration::from_secs(60);

fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.new.id.as_str()).collect()
}

async fn submit(jobs: &Arc<dyn Jobs>, id: &str, priority: f64) {
    let new = NewJob::new(id.parse().unwrap(), id.parse().unwrap());
    jobs.submit(&NewJob { priority: priority.try_into().unwrap(), ..new }).await.unwrap();
}

async fn take(jobs: &Arc<dyn Jobs>) -> Option<String> {
    let taken = jobs.take(&"one".parse().unwrap(), LONG).await.unwrap();
    taken.map(|job| job.new.id.to_string())
}

async fn feed(jobs: &Arc<dyn Jobs>, id: &str) {
    submit(jobs, id, 0.0).await;
    assert_eq!(take(jobs).await.as_deref(), Some(id));
    assert_eq!(jobs.fed(&"one".parse().unwrap(), &id.parse().unwrap(), None).await.unwrap(), Hold::Kept);
}

/// `spoil` makes jobs unreadable: one that is being fed, the first in the queue, and one that is over.
async fn the_others_go_on(jobs: Arc<dyn Jobs>, spoil: impl AsyncFn(&str)) {
    for id in ["fed", "good"] {
        feed(&jobs, id).await;
    }
    spoil("fed").await;
    assert_eq!(ids(&jobs.look_after(10, Duration::ZERO).await.unwrap()), ["good"]);

    for (id, priority) in [("first", 9.0), ("second", 1.0)] {
        submit(&jobs, id, priority).await;
    }
    spoil("first").await;
    assert_eq!(ids(&jobs.queued(10).await.unwrap()), ["second"]);
    assert_eq!(take(&jobs).await.as_deref(), Some("second"));
    assert_eq!(take(&jobs).await, None);

    let all = || async { jobs.list(&JobFilter::default(), JobPage { before: None, max: 10 }).await.unwrap() };
    assert_eq!(ids(&all().await), ["second", "good"]);

    submit(&jobs, "over", 0.0).await;
    for id in ["over", "good"] {
        jobs.end(&id.parse().unwrap(), &JobOutcome::Cancelled).await.unwrap();
    }
    spoil("over").await;
    assert_eq!(jobs.forget(0, Duration::ZERO).await.unwrap(), 2);
    assert_eq!(ids(&all().await), ["second"]);
}

async fn on_redis() -> (Link, Arc<dyn Jobs>) {
    let link = own_link().await;
    (link.clone(), Arc::new(RedisJobs::new(link, NonZeroU32::MIN)))
}

/// Runs these commands, in which `JOB` stands for the key of a job.
async fn run(link: &Link, id: &str, commands: &[&[&[u8]]]) {
    for words in commands {
        let mut command = ::redis::Cmd::new();
        for word in *words {
            match *word {
                b"JOB" => command.arg(format!("job:{id}")),
                word => command.arg(word),
            };
        }
        let () = command.query_async(&mut link.clone()).await.unwrap();
    }
}

async fn the_others_go_on_in_redis(commands: &[&[&[u8]]]) {
    let (link, jobs) = on_redis().await;
    the_others_go_on(jobs, async |id: &str| run(&link, id, commands).await).await;
}

#[tokio::test]
async fn a_job_with_a_field_that_trawl_does_not_write_holds_up_no_other() {
    the_others_go_on_in_redis(&[&[b"HSET", b"JOB", b"asked", b"yesterday"]]).await;
}

#[tokio::test]
async fn a_job_without_a_number_in_its_turn_holds_up_no_other() {
    the_others_go_on_in_redis(&[&[b"HSET", b"JOB", b"number", b"x", b"priority", b"high"]]).await;
}

#[tokio::test]
async fn a_job_with_bytes_that_are_no_text_holds_up_no_other() {
    the_others_go_on_in_redis(&[&[b"HSET", b"JOB", b"project", b"\xff\xfe"]]).await;
}

#[tokio::test]
async fn a_job_whose_key_holds_something_else_holds_up_no_other() {
    the_others_go_on_in_redis(&[&[b"DEL", b"JOB"], &[b"SET", b"JOB", b"x"]]).await;
}

#[tokio::test]
async fn a_job_whose_key_is_gone_holds_up_no_other() {
    the_others_go_on_in_redis(&[&[b"DEL", b"JOB"]]).await;
}

#[tokio::test]
async fn whoever_asks_for_a_job_that_cannot_be_read_is_told_where_it_is() {
    let (link, jobs) = on_redis().await;
    submit(&jobs, "a", 0.0).await;
    run(&link, "a", &[&[b"HSET", b"JOB", b"asked", b"yesterday"]]).await;
    let error = jobs.job(&"a".parse().unwrap()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Corrupt);
    assert!(error.to_string().contains("job:a") && error.to_string().contains("yesterday"), "{error}");
}

#[tokio::test]
async fn a_job_that_cannot_be_read_in_the_state_file_holds_up_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crawl.db");
    let engine = Embedded::open(&path).unwrap();
    the_others_go_on(engine.jobs(), async |id: &str| {
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute("UPDATE jobs SET new = '{' WHERE id = ?1", [id]).unwrap();
    })
    .await;
}
