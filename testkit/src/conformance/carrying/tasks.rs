//! Tasks are admitted, claimed, settled and replayed like URLs, each with all its fields.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::timeout;
use trawl_common::crawl_end::{Left, left_of};
use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{Key, StartReply, State, Task, UrlState, Work};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{
    Claim, Claimed, Completion, Disposition, Finish, NewWork, PendingTask, Result, Settlement, TaskPage,
    Terms,
};
use trawl_common::task::{MAX_RECIPE_BYTES, NewTask};
use trawl_common::time::UnixMs;

use super::{Carrier, Worker, dead_work, done};
use crate::conformance::engine::{GLANCE, LIMIT};
use crate::conformance::fixture::Case;

/// Returns a task of a spider with a recipe and no other fields.
fn task(spider: &SpiderName, recipe: &str) -> Task {
    Task::new(spider, NewTask::from_recipe(recipe.parse().expect("it is a recipe")))
}

fn new(case: &Case, recipe: &str) -> NewWork {
    NewWork::task(task(&case.crawl.spider, recipe))
}

fn key(case: &Case, recipe: &str) -> Key {
    task(&case.crawl.spider, recipe).key.into()
}

/// Returns the task that was claimed.
fn new_task(claimed: &Claimed) -> &NewTask {
    &claimed.message.work.task().expect("it is a task").new
}

fn recipes(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|claimed| new_task(claimed).recipe.as_str()).collect()
}

impl Worker {
    /// Claims tasks until there are `count`.
    pub(super) async fn claim_tasks(&self, count: usize) -> Vec<Claimed> {
        let claiming = async {
            let mut all = Vec::new();
            while all.len() < count {
                all.extend(self.frontier.claim_tasks(count - all.len()).await.expect("no server fails"));
            }
            all
        };
        timeout(LIMIT, claiming).await.unwrap_or_else(|_| panic!("no {count} tasks within {LIMIT:?}"))
    }

    async fn claim_task(&self) -> Claimed {
        self.claim_tasks(1).await.remove(0)
    }

    pub(super) async fn claims_no_task(&self) {
        if let Ok(claimed) = timeout(GLANCE, self.frontier.claim_tasks(9)).await {
            panic!("{claimed:?}");
        }
    }

    /// Settles a task as done that the worker no longer holds.
    async fn finish_lost(&self, claimed: Claimed) {
        let disposition = done(&claimed.message, Vec::new());
        self.frontier
            .settle(vec![Settlement { message: claimed.message, disposition }])
            .await
            .expect("no server fails");
    }
}

impl Carrier {
    /// Starts a crawl of tasks with these recipes.
    async fn begin_tasks(&self, case: &Case, recipes: &[&str]) -> Result<()> {
        let session = self.open(case, Terms::default()).await?;
        let tasks: Vec<NewWork> = recipes.iter().map(|recipe| new(case, recipe)).collect();
        assert_eq!(session.admit(&tasks).await?, vec![true; recipes.len()]);
        session.close().await
    }
}

/// A task is admitted once and claimed complete, however often it is submitted, with its recipe or a `unique` as its
/// identity; and its crawl ends with it.
pub async fn a_task_is_admitted_once_and_claimed_with_everything_it_was_submitted_with(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let long = "\u{e4}".repeat(MAX_RECIPE_BYTES / 2);
    let line = r#"{"recipe": "[1]\n", "unique": "1", "priority": 2.5, "retries": 7, "project": "books"}"#;
    let full = Task::new(&case.crawl.spider, NewTask::from_line(line).expect("it is a task"));
    let again = NewTask { recipe: "another".parse().expect("it is a recipe"), ..full.new.clone() };
    let all = [
        new(&case, "plain"),
        NewWork::task(full.clone()),
        new(&case, &long),
        new(&case, "plain"),
        NewWork::task(Task::new(&case.crawl.spider, again)),
    ];
    assert_eq!(session.admit(&all).await?, [true, true, true, false, false]);
    assert_eq!(session.admit(&all).await?, [false; 5]);
    session.close().await?;
    let claimed = worker.claim_tasks(3).await;
    let found: BTreeSet<String> = claimed.iter().map(|claimed| format!("{:?}", new_task(claimed))).collect();
    let expected = [&all[0], &all[1], &all[2]].map(|new| new.work.task().expect("a task").new.clone());
    assert_eq!(found, expected.iter().map(|new| format!("{new:?}")).collect());
    assert!(claimed.iter().any(|claimed| new_task(claimed).recipe.as_str() == long));
    for claimed in claimed {
        worker.finish(claimed).await;
    }
    let stats = carrier.stats(&case).await?;
    let expected = Counts { admitted: 3, done: 3, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    assert_eq!(carrier.stats.hosts(&case.crawl, 10).await?, [], "tasks have no host");
    assert_eq!(
        carrier.control.work(&case.crawl, &full.key.into()).await?,
        None,
        "what has ended needs no recipe"
    );
    Ok(())
}

/// Tasks and URLs are claimed separately: a worker's pages do not wait for its programs, nor the reverse. A recipe that
/// looks like a URL is still a task.
pub async fn tasks_and_urls_are_claimed_apart(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let alike = case.url(0).to_string();
    assert_eq!(session.admit(&[case.new_work(0), new(&case, &alike)]).await?, [true, true]);
    session.close().await?;
    let task = worker.claim_task().await;
    assert_eq!(recipes(std::slice::from_ref(&task)), [&alike]);
    assert_eq!(task.message.key(), key(&case, &alike));
    let page = worker.claim_one().await;
    assert_eq!(page.message.work, Work::Url(case.url(0)));
    worker.claims_no_task().await;
    worker.claims_nothing().await;
    worker.finish(page).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    worker.finish(task).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// Among the tasks that a worker was sent, the one with the highest priority is claimed first.
pub async fn the_task_with_the_highest_priority_is_claimed_first(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    let of = |(recipe, priority): (&str, f64)| {
        let priority = priority.try_into().expect("it is finite");
        let new = NewTask { priority, ..NewTask::from_recipe(recipe.parse().expect("it is a recipe")) };
        NewWork::task(Task::new(&case.crawl.spider, new))
    };
    session.admit(&[("a", 0.0), ("b", 7.0), ("c", -1.5), ("d", 7.0)].map(of)).await?;
    session.close().await?;
    let worker = carrier.join(&case);
    // By then it has been sent all four.
    tokio::time::sleep(if carrier.claims_ahead { GLANCE } else { Duration::ZERO }).await;
    let mut order = Vec::new();
    for _ in 0..4 {
        let claimed = worker.claim_task().await;
        order.push(new_task(&claimed).recipe.to_string());
        worker.finish(claimed).await;
    }
    assert_eq!(order, ["b", "d", "a", "c"]);
    Ok(())
}

/// Two spiders may admit tasks with equal recipes, each for its own program.
pub async fn two_spiders_take_in_the_same_recipe(carrier: &Carrier) -> Result<()> {
    let one = Case::new();
    let two = one.other_spider();
    let worker = carrier.join(&one);
    for case in [&one, &two] {
        carrier.begin_tasks(case, &["same"]).await?;
    }
    let claimed = worker.claim_tasks(2).await;
    assert_eq!(recipes(&claimed), ["same", "same"]);
    let crawls: BTreeSet<_> = claimed.iter().map(|claimed| claimed.message.crawl.clone()).collect();
    assert_eq!(crawls, [one.crawl.clone(), two.crawl.clone()].into());
    for claimed in claimed {
        worker.finish(claimed).await;
    }
    for case in [&one, &two] {
        let stats = carrier.stats(case).await?;
        assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 1));
    }
    Ok(())
}

/// A task that failed comes back with its recipe, and one attempt more.
pub async fn a_task_that_failed_comes_back_with_its_recipe(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_tasks(&case, &["again"]).await?;
    let claimed = worker.claim_task().await;
    assert_eq!(claimed.attempts, 0);
    let until = UnixMs::now().plus(Duration::from_millis(50));
    worker.settle(claimed, Disposition::Retry { until }).await;
    let state = carrier.stats.url_state(&case.crawl, &key(&case, "again")).await?;
    assert!(matches!(state, UrlState::Pending(_)), "{state:?}");
    let again = worker.claim_task().await;
    assert_eq!((again.attempts, recipes(std::slice::from_ref(&again))), (1, vec!["again"]));
    worker.finish(again).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// A task that is released is claimed by another worker.
pub async fn a_task_that_is_released_is_claimed_by_another(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let (one, two) = (carrier.join(&case), carrier.join_as(case.other.clone()));
    carrier.begin_tasks(&case, &["moved"]).await?;
    let (claimed, first, second) = tokio::select! {
        claimed = one.claim_task() => (claimed, &one, &two),
        claimed = two.claim_task() => (claimed, &two, &one),
    };
    let message = claimed.message.clone();
    first.stop.cancel();
    first.frontier.settle(vec![Settlement { message, disposition: Disposition::Release }]).await?;
    first.frontier.release().await?;
    let again = second.claim_task().await;
    assert_eq!(recipes(std::slice::from_ref(&again)), ["moved"]);
    second.finish(again).await;
    Ok(())
}

/// A task that is a dead letter keeps its recipe, and is replayed as often as it fails, until it is purged.
pub async fn a_task_that_is_a_dead_letter_keeps_its_recipe_and_is_replayed(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let both = [new(&case, "dead"), new(&case, "deader")];
    dead_work::is_kept_replayed_and_purged(carrier, &case, both).await
}

/// A dead task of a finished crawl is admitted complete by a successor; the finished crawl does not change.
pub async fn a_dead_task_of_a_finished_crawl_is_replayed_into_another(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    dead_work::is_replayed_into_a_successor(carrier, &case, new(&case, "late")).await
}

/// Tasks and pages that a task yields are admitted before the task ends, so that their crawl does not end in between.
pub async fn what_a_task_yields_is_admitted_before_it_ends(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_tasks(&case, &["parent"]).await?;
    let parent = worker.claim_task().await;
    let referrer = Some(parent.message.key());
    let child = |new: NewWork| NewWork { depth: 1, referrer: referrer.clone(), ..new };
    let children = vec![
        child(new(&case, "child")),
        child(new(&case, "parent")),
        child(case.new_work(0)),
        child(new(&case, "child")),
    ];
    let ends = done(&parent.message, children);
    worker.settle(parent, ends).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!(
        (stats.status, stats.counts.admitted),
        (CrawlState::Running, 3),
        "in a cycle each is met once"
    );
    let task = worker.claim_task().await;
    assert_eq!((task.message.depth, &task.message.referrer), (1, &referrer));
    assert_eq!(recipes(std::slice::from_ref(&task)), ["child"]);
    let page = worker.claim_one().await;
    assert_eq!((&page.message.work, &page.message.referrer), (&Work::Url(case.url(0)), &referrer));
    worker.finish(task).await;
    worker.finish(page).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 3));
    Ok(())
}

/// The unfinished tasks of a cancelled crawl are cancelled, and their contents are forgotten.
pub async fn a_cancelled_crawl_leaves_no_task(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    carrier.begin_tasks(&case, &["one", "two"]).await?;
    carrier.control.cancel(&case.crawl).await?;
    let stats = carrier.stats(&case).await?;
    let expected = Counts { admitted: 2, cancelled: 2, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Cancelled, expected));
    assert_eq!(carrier.control.work(&case.crawl, &key(&case, "one")).await?, None);
    let worker = carrier.join(&case);
    worker.claims_no_task().await;
    // Unfinished tasks are new to a later crawl.
    let next = case.next_crawl();
    carrier.begin_tasks(&next, &["one"]).await?;
    let claimed = worker.claim_task().await;
    assert_eq!(claimed.message.crawl, next.crawl);
    worker.finish(claimed).await;
    Ok(())
}

/// Tasks without an end are listed with their places; a crawl that is over or unknown has none.
pub async fn tasks_without_an_end_are_listed_with_where_they_are(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    assert_eq!(carrier.stats.tasks(&case.crawl, 0).await?, TaskPage::default());
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    assert!(!carrier.stats.may_have_tasks(&case.crawl).await?, "a URL is none");
    session.admit(&[new(&case, "runs"), new(&case, "waits"), new(&case, "held")]).await?;
    assert!(carrier.stats.may_have_tasks(&case.crawl).await?);
    session.close().await?;
    let claimed = worker.claim_tasks(3).await;
    let of = |recipe: &str| claimed.iter().find(|claimed| new_task(claimed).recipe.as_str() == recipe);
    let [runs, waits, held] =
        ["runs", "waits", "held"].map(|recipe| of(recipe).expect("it is there").clone());
    worker.frontier.start(&[Claim::new(&runs.message)]).await?;
    let until = UnixMs::now().plus(Duration::from_secs(60));
    worker.settle(waits, Disposition::Retry { until }).await;
    let mut places = BTreeMap::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let page = carrier.stats.tasks(&case.crawl, at).await?;
        for PendingTask { key, state, attempts } in page.tasks {
            let place = match state {
                State::Held { by, has_started, .. } if by == case.worker => {
                    format!("held {has_started} {attempts}")
                }
                State::Parked { until: parked, .. } => {
                    format!("parked {} {attempts}", parked > UnixMs::now())
                }
                other => format!("{other:?}"),
            };
            places.insert(key, place);
        }
        cursor = page.next;
    }
    let expected = [("runs", "held true 0"), ("waits", "parked true 1"), ("held", "held false 0")];
    let expected = expected.map(|(recipe, place)| (task(&case.crawl.spider, recipe).key, place.to_owned()));
    assert_eq!(places, expected.into());
    carrier.control.cancel(&case.crawl).await?;
    worker.finish_lost(runs).await;
    worker.finish_lost(held).await;
    assert_eq!(carrier.stats.tasks(&case.crawl, 0).await?, TaskPage::default());
    Ok(())
}

/// A cancelled task ends, whether it waits, is parked or is in hand, and its crawl goes on.
pub async fn a_task_that_is_cancelled_ends_wherever_it_is_and_its_crawl_goes_on(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_tasks(&case, &["in hand", "put aside", "goes on"]).await?;
    let claimed = worker.claim_tasks(3).await;
    let of = |recipe: &str| claimed.iter().find(|claimed| new_task(claimed).recipe.as_str() == recipe);
    let [held, waits, goes_on] =
        ["in hand", "put aside", "goes on"].map(|recipe| of(recipe).expect("it is there").clone());
    let until = UnixMs::now().plus(Duration::from_millis(50));
    worker.settle(waits, Disposition::Retry { until }).await;
    let [first, second, other] =
        ["in hand", "put aside", "never there"].map(|recipe| task(&case.crawl.spider, recipe).key);
    assert_eq!(carrier.control.cancel_tasks(&case.crawl, &[first.clone(), second, other]).await?, 2);
    assert_eq!(carrier.control.cancel_tasks(&case.crawl, std::slice::from_ref(&first)).await?, 0);
    assert_eq!(carrier.control.work(&case.crawl, &first.into()).await?, None, "what it says is not needed");
    assert_eq!(worker.frontier.start(&[Claim::new(&held.message)]).await?, [StartReply::Lost]);
    worker.finish_lost(held).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    worker.finish(goes_on).await;
    let stats = carrier.stats(&case).await?;
    let expected = Counts { admitted: 3, done: 1, cancelled: 2, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    worker.claims_no_task().await;
    Ok(())
}

/// A task that others asked for can be cancelled and asked for again. Its crawl never ends, so its message may come at
/// any time, and must not bring it back.
pub async fn a_task_that_others_asked_for_is_cancelled_and_may_be_asked_for_again(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_tasks(&case, &["asks", "asks again"]).await?;
    let other: SpiderName = case.other_spider().crawl.spider;
    let (crawl, child) = (CrawlRef::adhoc_of(other.clone()), task(&other, "child"));
    let mut parents = worker.claim_tasks(2).await;
    let asks = async |parent: Claimed| {
        let new = NewWork { depth: 1, ..NewWork::task(child.clone()) };
        let finish = Finish::new(Claim::new(&parent.message), Terminal::Done);
        let ending = Completion { elsewhere: vec![(other.clone(), new)], ..Completion::new(finish) };
        worker.settle(parent, Disposition::Finish(Box::new(ending))).await;
    };
    asks(parents.remove(0)).await;
    let claimed = worker.claim_task().await;
    assert_eq!(carrier.control.cancel_tasks(&crawl, std::slice::from_ref(&child.key)).await?, 1);
    assert_eq!(worker.frontier.start(&[Claim::new(&claimed.message)]).await?, [StartReply::Lost]);
    let goes_round = Settlement { message: claimed.message, disposition: Disposition::Republish };
    worker.frontier.settle(vec![goes_round]).await.expect("no server fails");
    worker.claims_no_task().await;
    asks(parents.remove(0)).await;
    let again = worker.claim_task().await;
    assert_eq!(again.message.crawl, crawl);
    worker.finish(again).await;
    let stats = carrier.stats.crawl_stats(&crawl.id).await?.expect("it is known");
    let expected = Counts { admitted: 2, done: 1, cancelled: 1, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Running, expected));
    Ok(())
}

/// A worker that runs no programs takes no task; the task waits for one that does.
pub async fn a_worker_that_runs_no_programs_takes_no_task(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let without = carrier.join_for(case.other.clone(), 0, |_| {});
    carrier.begin_tasks(&case, &["x"]).await?;
    without.claims_no_task().await;
    without.claims_nothing().await;
    let worker = carrier.join(&case);
    let claimed = worker.claim_task().await;
    worker.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// A task of another spider is admitted before the task that asks for it ends, into that spider's crawl of what others
/// publish. Tasks that ask for each other are met once.
pub async fn what_a_task_asks_for_of_another_spider_is_admitted_before_it_ends(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_tasks(&case, &["parent", "twin"]).await?;
    let other: SpiderName = case.other_spider().crawl.spider;
    for claimed in worker.claim_tasks(2).await {
        let child = NewWork { depth: 1, ..NewWork::task(task(&other, "child")) };
        let finish = Finish::new(Claim::new(&claimed.message), Terminal::Done);
        let ending = Completion { elsewhere: vec![(other.clone(), child)], ..Completion::new(finish) };
        worker.settle(claimed, Disposition::Finish(Box::new(ending))).await;
    }
    let parents = carrier.stats(&case).await?;
    let crawl = CrawlRef::adhoc_of(other.clone());
    assert_eq!(parents.status, CrawlState::Finished);
    assert_eq!(parents.reasons.get(&format!("handed:{other}")), Some(&2), "{parents:?}");
    assert_eq!(left_of(&*carrier.stats, &parents).await?, Left::Handed(1));
    let others = async || -> Result<CrawlStats> {
        Ok(carrier.stats.crawl_stats(&crawl.id).await?.expect("it is known"))
    };
    assert_eq!(left_of(&*carrier.stats, &others().await?).await?, Left::Own);
    let child = worker.claim_task().await;
    assert_eq!((&child.message.crawl, recipes(std::slice::from_ref(&child))), (&crawl, vec!["child"]));
    worker.finish(child).await;
    let stats = others().await?;
    assert_eq!(stats.counts, Counts { admitted: 1, done: 1, ..Counts::default() });
    for waited_for in [&parents, &stats] {
        assert_eq!(left_of(&*carrier.stats, waited_for).await?, Left::Nothing);
    }
    worker.claims_no_task().await;
    Ok(())
}
