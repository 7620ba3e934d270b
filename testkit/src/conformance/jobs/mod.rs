//! The promises of jobs: each is taken by one runner, in the order of the queue, and none is lost.

mod random;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use trawl_common::frontier::Recrawl;
use trawl_common::jobs::{Hold, Job, JobOutcome, JobState, JobStatus, NewJob, Problem};
use trawl_common::list::ListEntry;
use trawl_common::names::{CrawlId, WorkerId};
use trawl_common::ports::{ErrorKind, JobCounts, JobFilter, JobPage, Jobs, Result, Submitted};
use trawl_common::request::NewRequest;
use trawl_common::spider::arguments::Arguments;
use trawl_common::web::url::CanonicalUrl;

use super::eventually;

pub use random::{Step, obeys_the_model, steps};

const LONG: Duration = Duration::from_secs(3600);

/// Makes a test of each promise; the fixture returns a guard and an `Arc<dyn Jobs>` that no other test uses, with a
/// limit of one running job per spider.
#[macro_export]
macro_rules! jobs_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, jobs:
            the_highest_priority_is_taken_first_and_among_equals_the_first_asked_for
            what_is_asked_for_is_given_as_it_was
            asking_twice_asks_once
            what_no_job_may_ask_for_is_refused
            each_job_is_taken_by_one_runner
            a_busy_spider_leaves_its_next_job_pending_and_others_go_on
            a_lapsed_lease_gives_a_job_its_place_in_the_line_again
            a_job_that_is_put_back_waits_and_its_spider_with_it
            a_pending_job_is_cancelled_at_once_and_one_that_runs_is_marked
            a_cancelled_job_whose_feeder_is_gone_waits_for_whoever_ends_it
            fed_jobs_are_checked_in_round_robin
            an_end_is_for_good
            a_list_is_read_page_by_page_the_newest_first
            what_ended_longest_ago_is_forgotten_with_its_key
            a_job_that_has_ended_may_be_forgotten
        }
    };
}

fn id(text: &str) -> CrawlId {
    text.parse().expect("it is written as an id")
}

fn runner(text: &str) -> WorkerId {
    text.parse().expect("it is written as a name")
}

fn job(name: &str, spider: &str, priority: f64) -> NewJob {
    let new = NewJob::new(id(name), spider.parse().expect("it is written as a name"));
    NewJob { priority: priority.try_into().expect("it is finite"), ..new }
}

async fn submit(jobs: &Arc<dyn Jobs>, new: impl IntoIterator<Item = NewJob>) -> Result<()> {
    for job in new {
        assert_eq!(jobs.submit(&job).await?, Submitted::New);
    }
    Ok(())
}

async fn take(jobs: &Arc<dyn Jobs>, who: &str) -> Result<Option<String>> {
    Ok(jobs.take(&runner(who), LONG).await?.map(|job| job.new.id.to_string()))
}

async fn status(jobs: &Arc<dyn Jobs>, name: &str) -> Result<JobStatus> {
    Ok(jobs.job(&id(name)).await?.expect("it is there").status())
}

fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.new.id.as_str()).collect()
}

/// Jobs are taken by priority, which may be negative, tiny or huge, and in the order of submission among equals.
pub async fn the_highest_priority_is_taken_first_and_among_equals_the_first_asked_for(
    jobs: &Arc<dyn Jobs>,
) -> Result<()> {
    let priorities = [
        ("a", 0.0),
        ("b", -1.5),
        ("c", 10.0),
        ("d", 0.0),
        ("e", 1e-300),
        ("f", 10.0),
        ("g", 1e300),
        ("h", -0.0),
    ];
    submit(jobs, priorities.map(|(name, priority)| job(name, name, priority))).await?;
    let order = ["g", "c", "f", "e", "a", "d", "h", "b"];
    assert_eq!(ids(&jobs.queued(100).await?), order);
    assert_eq!(ids(&jobs.queued(2).await?), order[..2]);
    for next in order {
        assert_eq!(take(jobs, "one").await?.as_deref(), Some(next));
    }
    assert_eq!(take(jobs, "one").await?, None);
    Ok(())
}

/// A job keeps all parts that it was submitted with, and the absence of each.
pub async fn what_is_asked_for_is_given_as_it_was(jobs: &Arc<dyn Jobs>) -> Result<()> {
    let url = |text: &str| text.parse::<CanonicalUrl>().expect("it is written as a URL");
    let post = r#"{"url": "http://a.example/q", "method": "POST", "base64": "//8=", "data": {"n": 1.5}, "retries": 2}"#;
    let post = NewRequest::from_json(post).expect("it is written as a request");
    let tasks =
        [r#""http://a.example/""#, r#"{"recipe": "[1]", "unique": "1", "priority": 2.5, "retries": 0}"#];
    let [task, urgent] = tasks.map(|line| ListEntry::from_line(line).expect("it is written as a task"));
    let mut full = NewJob {
        project: "shop".parse().expect("it is written as a name"),
        urls: vec![
            url("http://a.example/1").into(),
            url("http://a.example/%C3%A4?x='\"").into(),
            post.into(),
            task,
            urgent,
        ],
        sources: vec![url("http://a.example/sitemap.xml")],
        arguments: Arguments::new(["category=a \"b\" {c} ä".parse().expect("it is written as an argument")])
            .expect("it is given once"),
        version: Some("r1.0+7".parse().expect("it is written as a version")),
        idempotency_key: Some("key-1".parse().expect("it is written as a key")),
        ..job("full", "shop", -2.5)
    };
    full.settings.recrawl = Some(Recrawl::Always);
    full.settings.limit = Some(7);
    full.ignored = vec!["DOWNLOAD_DELAY".to_owned()];
    let empty = job("empty", "default", 0.0);
    submit(jobs, [full.clone(), empty.clone()]).await?;
    for expected in [full, empty] {
        let found = jobs.job(&expected.id).await?.expect("it is there");
        assert_eq!(found.state, JobState::Pending { not_before: None });
        assert_eq!(found.new, expected);
    }
    assert_eq!(jobs.job(&id("none")).await?, None);
    Ok(())
}

/// A job that is submitted twice is kept once, by its id and by its key.
pub async fn asking_twice_asks_once(jobs: &Arc<dyn Jobs>) -> Result<()> {
    let key = Some("k".parse().expect("it is written as a key"));
    let first = NewJob { idempotency_key: key.clone(), ..job("first", "a", 0.0) };
    submit(jobs, [first.clone()]).await?;
    assert_eq!(jobs.submit(&first).await?, Submitted::Known(id("first")));
    let second = NewJob { idempotency_key: key, ..job("second", "b", 5.0) };
    assert_eq!(jobs.submit(&second).await?, Submitted::Known(id("first")));
    assert_eq!(jobs.counts().await?, JobCounts { pending: 1, running: 0, ended: 0 });
    jobs.end(&id("first"), &JobOutcome::Cancelled).await?;
    assert_eq!(jobs.submit(&first).await?, Submitted::Known(id("first")), "also when it is over");
    Ok(())
}

/// A job that may not be submitted is refused, and nothing of it is kept.
pub async fn what_no_job_may_ask_for_is_refused(jobs: &Arc<dyn Jobs>) -> Result<()> {
    let refused =
        jobs.submit(&job("adhoc", "default", 0.0)).await.expect_err("a crawl of that id never ends");
    assert_eq!(refused.kind, ErrorKind::Refused);
    assert_eq!(jobs.counts().await?, JobCounts::default());
    Ok(())
}

/// Each job is taken by one runner, however many there are at once.
pub async fn each_job_is_taken_by_one_runner(jobs: &Arc<dyn Jobs>) -> Result<()> {
    const COUNT: usize = 40;
    submit(jobs, (0..COUNT).map(|number| job(&format!("j{number}"), &format!("s{number}"), 0.0))).await?;
    let mut takers = JoinSet::new();
    for number in 0..COUNT + 10 {
        let jobs = Arc::clone(jobs);
        takers.spawn(async move { take(&jobs, &format!("runner-{number}")).await });
    }
    let mut taken = Vec::new();
    while let Some(one) = takers.join_next().await {
        taken.extend(one.expect("it does not panic")?);
    }
    let distinct: BTreeSet<&String> = taken.iter().collect();
    assert_eq!((taken.len(), distinct.len()), (COUNT, COUNT));
    Ok(())
}

/// While a job of a spider runs, its next one is pending and those of others go on. The spider is free when its job has
/// ended, not before.
pub async fn a_busy_spider_leaves_its_next_job_pending_and_others_go_on(jobs: &Arc<dyn Jobs>) -> Result<()> {
    submit(jobs, [job("a1", "a", 9.0), job("a2", "a", 8.0), job("b1", "b", 0.0)]).await?;
    assert_eq!(take(jobs, "one").await?.as_deref(), Some("a1"));
    assert_eq!(take(jobs, "two").await?.as_deref(), Some("b1"));
    assert_eq!(take(jobs, "two").await?, None);
    assert_eq!(jobs.fed(&runner("one"), &id("a1"), None).await?, Hold::Kept);
    assert_eq!(take(jobs, "two").await?, None, "its crawl runs");
    jobs.end(&id("a1"), &JobOutcome::Finished { problem: None }).await?;
    assert_eq!(take(jobs, "two").await?.as_deref(), Some("a2"));
    Ok(())
}

/// When the lease of a job expires, the job is back in its place in the queue, and its runner has lost it.
pub async fn a_lapsed_lease_gives_a_job_its_place_in_the_line_again(jobs: &Arc<dyn Jobs>) -> Result<()> {
    submit(jobs, [job("a", "a", 1.0), job("b", "b", 0.0)]).await?;
    let lapsing = jobs.take(&runner("dead"), Duration::ZERO).await?.expect("it is free");
    assert_eq!(lapsing.new.id, id("a"));
    assert_eq!(take(jobs, "two").await?.as_deref(), Some("a"));
    assert_eq!(jobs.extend(&runner("dead"), &[id("a"), id("none")], LONG).await?, [Hold::Lost, Hold::Lost]);
    assert_eq!(jobs.fed(&runner("dead"), &id("a"), None).await?, Hold::Lost);
    jobs.put_back(&runner("dead"), &id("a"), Duration::ZERO).await?;
    assert_eq!(jobs.extend(&runner("two"), &[id("a")], LONG).await?, [Hold::Kept]);
    Ok(())
}

/// A job that is put back waits, and its spider with it: other jobs of the spider would find it as busy.
pub async fn a_job_that_is_put_back_waits_and_its_spider_with_it(jobs: &Arc<dyn Jobs>) -> Result<()> {
    submit(jobs, [job("a1", "a", 0.0), job("a2", "a", 0.0), job("b", "b", 0.0)]).await?;
    assert_eq!(take(jobs, "one").await?.as_deref(), Some("a1"));
    jobs.put_back(&runner("one"), &id("a1"), Duration::ZERO).await?;
    assert_eq!(take(jobs, "one").await?.as_deref(), Some("a1"), "it has kept its place");
    jobs.put_back(&runner("one"), &id("a1"), Duration::from_millis(300)).await?;
    assert_eq!(status(jobs, "a1").await?, JobStatus::Pending);
    assert_eq!(take(jobs, "one").await?.as_deref(), Some("b"));
    eventually(LONG, async || Ok(take(jobs, "one").await?.as_deref() == Some("a1"))).await
}

/// A pending job is cancelled at once; a running one is marked, for its runner to see.
pub async fn a_pending_job_is_cancelled_at_once_and_one_that_runs_is_marked(
    jobs: &Arc<dyn Jobs>,
) -> Result<()> {
    submit(jobs, [job("a", "a", 1.0), job("b", "b", 0.0)]).await?;
    assert_eq!(take(jobs, "one").await?.as_deref(), Some("a"));
    assert_eq!(jobs.cancel(&id("b")).await?, Some(JobStatus::Pending));
    assert_eq!(status(jobs, "b").await?, JobStatus::Cancelled);
    assert_eq!(take(jobs, "one").await?, None);
    assert_eq!(jobs.cancel(&id("a")).await?, Some(JobStatus::Running));
    assert_eq!(jobs.extend(&runner("one"), &[id("a")], LONG).await?, [Hold::Cancelled]);
    assert_eq!(jobs.fed(&runner("one"), &id("a"), None).await?, Hold::Cancelled);
    jobs.end(&id("a"), &JobOutcome::Cancelled).await?;
    assert_eq!(jobs.cancel(&id("a")).await?, Some(JobStatus::Cancelled));
    assert_eq!(jobs.cancel(&id("none")).await?, None);
    Ok(())
}

/// A cancelled job whose runner is gone is not taken again, and waits to be ended.
pub async fn a_cancelled_job_whose_feeder_is_gone_waits_for_whoever_ends_it(
    jobs: &Arc<dyn Jobs>,
) -> Result<()> {
    submit(jobs, [job("a", "a", 0.0)]).await?;
    jobs.take(&runner("dead"), Duration::ZERO).await?;
    jobs.cancel(&id("a")).await?;
    assert_eq!(take(jobs, "two").await?, None);
    let waiting = jobs.look_after(10, Duration::ZERO).await?;
    assert!(matches!(waiting[0].state, JobState::Fed { is_cancelled: true, .. }), "{waiting:?}");
    Ok(())
}

/// Running jobs are checked in round robin: those not checked yet come first, and none twice within the pause.
pub async fn fed_jobs_are_checked_in_round_robin(jobs: &Arc<dyn Jobs>) -> Result<()> {
    for name in ["a", "b", "c"] {
        submit(jobs, [job(name, name, 0.0)]).await?;
        take(jobs, "one").await?;
        let problem = (name == "b").then(|| Problem::new("no such page"));
        jobs.fed(&runner("one"), &id(name), problem).await?;
    }
    let first = jobs.look_after(2, LONG).await?;
    let second = jobs.look_after(2, LONG).await?;
    assert_eq!((first.len(), second.len()), (2, 1));
    let all: BTreeSet<&str> = ids(&first).into_iter().chain(ids(&second)).collect();
    assert_eq!(all, ["a", "b", "c"].into());
    assert_eq!(jobs.look_after(2, LONG).await?, []);
    let found = jobs.job(&id("b")).await?.expect("it is there");
    assert_eq!(found.problem().map(Problem::as_str), Some("no such page"));
    Ok(())
}

/// The end of a job is final. It records the runner, and the problem.
pub async fn an_end_is_for_good(jobs: &Arc<dyn Jobs>) -> Result<()> {
    submit(jobs, [job("a", "a", 0.0)]).await?;
    take(jobs, "one").await?;
    jobs.end(&id("a"), &JobOutcome::failed("no such spider")).await?;
    jobs.end(&id("a"), &JobOutcome::Cancelled).await?;
    let ended = jobs.job(&id("a")).await?.expect("it is there");
    assert_eq!(ended.status(), JobStatus::Failed);
    assert_eq!(ended.problem().map(Problem::as_str), Some("no such spider"));
    assert_eq!(ended.run().map(|run| run.runner.as_str()), Some("one"));
    assert!(ended.ended() >= Some(ended.asked));
    assert_eq!(jobs.extend(&runner("one"), &[id("a")], LONG).await?, [Hold::Lost]);
    assert_eq!(jobs.counts().await?, JobCounts { pending: 0, running: 0, ended: 1 });
    Ok(())
}

/// The list is read page by page, newest first. Filters apply to each page.
pub async fn a_list_is_read_page_by_page_the_newest_first(jobs: &Arc<dyn Jobs>) -> Result<()> {
    submit(
        jobs,
        (0..7).map(|number| job(&format!("j{number}"), if number % 2 == 0 { "even" } else { "odd" }, 0.0)),
    )
    .await?;
    take(jobs, "one").await?;
    let all = JobFilter::default();
    let first = jobs.list(&all, JobPage { before: None, max: 3 }).await?;
    assert_eq!(ids(&first), ["j6", "j5", "j4"]);
    let second = jobs.list(&all, JobPage { before: Some(first[2].number), max: 100 }).await?;
    assert_eq!(ids(&second), ["j3", "j2", "j1", "j0"]);
    let spider = Some("odd".parse().expect("it is written as a name"));
    let odd = JobFilter { spider, ..all.clone() };
    assert_eq!(ids(&jobs.list(&odd, JobPage { before: None, max: 2 }).await?), ["j5", "j3"]);
    let running = JobFilter { status: Some(JobStatus::Running), ..all };
    assert_eq!(ids(&jobs.list(&running, JobPage { before: None, max: 9 }).await?), ["j0"]);
    Ok(())
}

/// The jobs that ended longest ago are forgotten with their keys, so that they may be submitted again. Recent ones are
/// kept, however many they are.
pub async fn what_ended_longest_ago_is_forgotten_with_its_key(jobs: &Arc<dyn Jobs>) -> Result<()> {
    let keyed = |name: &str| NewJob {
        idempotency_key: Some(format!("key-{name}").parse().expect("it is written as a key")),
        ..job(name, name, 0.0)
    };
    for name in ["a", "b", "c"] {
        submit(jobs, [keyed(name)]).await?;
        jobs.end(&id(name), &JobOutcome::Cancelled).await?;
        // So that the ends differ by the clock of the store.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    submit(jobs, [keyed("pending")]).await?;
    assert_eq!(jobs.forget(1, LONG).await?, 0);
    assert_eq!(jobs.forget(3, Duration::ZERO).await?, 0);
    assert_eq!(jobs.forget(1, Duration::ZERO).await?, 2);
    assert_eq!(
        ids(&jobs.list(&JobFilter::default(), JobPage { before: None, max: 9 }).await?),
        ["pending", "c"]
    );
    submit(jobs, [keyed("a")]).await
}

/// A job that has ended is forgotten with its key when somebody says so, and no other is.
pub async fn a_job_that_has_ended_may_be_forgotten(jobs: &Arc<dyn Jobs>) -> Result<()> {
    let keyed = |name: &str| NewJob {
        idempotency_key: Some(format!("key-{name}").parse().expect("it is written as a key")),
        ..job(name, name, 0.0)
    };
    submit(jobs, [keyed("over"), keyed("pending")]).await?;
    assert!(!jobs.forget_one(&id("over")).await?, "it is pending");
    jobs.end(&id("over"), &JobOutcome::Cancelled).await?;
    assert!(jobs.forget_one(&id("over")).await?);
    assert!(!jobs.forget_one(&id("over")).await? && !jobs.forget_one(&id("pending")).await?);
    assert_eq!(ids(&jobs.list(&JobFilter::default(), JobPage { before: None, max: 9 }).await?), ["pending"]);
    submit(jobs, [keyed("over")]).await
}
