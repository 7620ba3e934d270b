//! Priorities of tasks: within a spider the highest comes first, whichever message comes first, and each task is done
//! once.

use std::collections::BTreeSet;
use std::time::Duration;

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::{StartReply, Task, TaskKey};
use trawl_common::ports::{Claimed, Disposition, NewWork, Result, Settlement, Terms};
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;

use super::{Carrier, Worker, done};
use crate::conformance::fixture::Case;

fn task(case: &Case, recipe: &str, priority: f64) -> Task {
    let priority = priority.try_into().expect("it is finite");
    let new = NewTask { priority, ..NewTask::from_recipe(recipe.parse().expect("it is a recipe")) };
    Task::new(&case.crawl.spider, new)
}

fn key(case: &Case, recipe: &str) -> TaskKey {
    task(case, recipe, 0.0).key
}

fn recipe(claimed: &Claimed) -> String {
    claimed.message.work.task().expect("it is a task").new.recipe.to_string()
}

impl Worker {
    /// Starts the next task.
    async fn begin_task(&self) -> Claimed {
        loop {
            let claimed = self.claim_tasks(1).await.remove(0);
            match self.frontier.start_task(&claimed).await.expect("it can be asked") {
                Some(StartReply::Go) => return claimed,
                Some(other) => panic!("{claimed:?}: {other:?}"),
                None => {}
            }
        }
    }

    async fn end_task(&self, claimed: Claimed) {
        let disposition = done(&claimed.message, Vec::new());
        self.frontier
            .settle(vec![Settlement { message: claimed.message, disposition }])
            .await
            .expect("no server fails");
    }

    /// Does `count` tasks, one after the other. Returns their recipes.
    async fn do_tasks(&self, count: usize) -> Vec<String> {
        let mut recipes = Vec::new();
        for _ in 0..count {
            let claimed = self.begin_task().await;
            recipes.push(recipe(&claimed));
            self.end_task(claimed).await;
        }
        recipes
    }
}

impl Carrier {
    /// Starts a crawl of tasks with these priorities.
    async fn submit(&self, case: &Case, tasks: &[(&str, f64)]) -> Result<()> {
        let session = self.open(case, Terms::default()).await?;
        let new = |(recipe, priority): &(&str, f64)| NewWork::task(task(case, recipe, *priority));
        let tasks: Vec<NewWork> = tasks.iter().map(new).collect();
        assert_eq!(session.admit(&tasks).await?, vec![true; tasks.len()]);
        session.close().await
    }

    /// Starts a crawl of four tasks. Returns it with a worker that does one task at a time, and the task that the
    /// worker has started.
    async fn busy_with_one(&self) -> Result<(Case, Worker, Claimed)> {
        let case = Case::new();
        let worker = self.join_for(case.worker.clone(), 1, |_| {});
        self.submit(&case, &LOW).await?;
        let first = worker.begin_task().await;
        Ok((case, worker, first))
    }
}

const LOW: [(&str, f64); 4] = [("a", 0.0), ("b", 0.0), ("c", 0.0), ("d", 0.0)];

/// The most urgent task begins first, whichever message comes first, and among equals the one that was submitted first.
/// The messages of tasks that began early come later, and do not bring them back.
pub async fn the_most_urgent_task_begins_first_whichever_message_comes_first(
    carrier: &Carrier,
) -> Result<()> {
    let (case, worker, first) = carrier.busy_with_one().await?;
    let next = case.next_crawl();
    let urgent = [("x", 5.0), ("low", -1.0), ("y", 5.0), ("z", 0.5), ("urgent", 7.5), ("w", 5.0)];
    carrier.submit(&next, &urgent).await?;
    worker.end_task(first).await;
    assert_eq!(worker.do_tasks(5).await, ["urgent", "x", "y", "w", "z"]);
    let rest: BTreeSet<String> = worker.do_tasks(4).await.into_iter().collect();
    assert_eq!(rest, ["b", "c", "d", "low"].map(str::to_owned).into());
    worker.claims_no_task().await;
    for (case, tasks) in [(&case, 4), (&next, 6)] {
        let stats = carrier.stats(case).await?;
        let expected = Counts { admitted: tasks, done: tasks, ..Counts::default() };
        assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    }
    Ok(())
}

/// An urgent task that was cancelled, or whose crawl is paused or over, does not begin.
pub async fn an_urgent_task_whose_crawl_is_paused_or_over_begins_before_none(
    carrier: &Carrier,
) -> Result<()> {
    let (case, worker, first) = carrier.busy_with_one().await?;
    let [paused, over, other] = [case.next_crawl(), case.next_crawl(), case.next_crawl()];
    carrier.submit(&paused, &[("paused", 5.0)]).await?;
    carrier.control.pause(&paused.crawl).await?;
    carrier.submit(&over, &[("over", 6.0)]).await?;
    carrier.control.cancel(&over.crawl).await?;
    carrier.submit(&other, &[("cancelled", 7.0), ("stays", 1.0)]).await?;
    assert_eq!(carrier.control.cancel_tasks(&other.crawl, &[key(&other, "cancelled")]).await?, 1);
    worker.end_task(first).await;
    assert_eq!(worker.do_tasks(4).await, ["stays", "b", "c", "d"]);
    let stats = carrier.stats(&other).await?;
    let expected = Counts { admitted: 2, done: 1, cancelled: 1, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    assert_eq!(carrier.stats(&paused).await?.pending, 1);
    Ok(())
}

/// An urgent task that comes back is done once, whatever the worker that began it before its message came does with it.
pub async fn an_urgent_task_that_comes_back_is_done_once(carrier: &Carrier) -> Result<()> {
    let (case, worker, first) = carrier.busy_with_one().await?;
    let other = case.other.clone();
    let next = case.next_crawl();
    carrier.submit(&next, &[("fails", 3.0), ("moves", 2.0)]).await?;
    worker.end_task(first).await;
    let fails = worker.begin_task().await;
    let until = UnixMs::now().plus(Duration::from_millis(50));
    let disposition = Disposition::Retry { until };
    worker.frontier.settle(vec![Settlement { message: fails.message, disposition }]).await?;
    // It may have come back by then.
    let mut begun = worker.begin_task().await;
    if recipe(&begun) == "fails" {
        assert_eq!(begun.attempts, 1);
        worker.end_task(begun).await;
        begun = worker.begin_task().await;
    }
    assert_eq!(recipe(&begun), "moves");
    worker.stop.cancel();
    let released = Settlement { message: begun.message, disposition: Disposition::Release };
    worker.frontier.settle(vec![released]).await?;
    worker.frontier.release().await?;
    let other = carrier.join_for(other, 1, |_| {});
    let left = 5 - carrier.stats(&next).await?.counts.done as usize;
    let all: BTreeSet<String> = other.do_tasks(left).await.into_iter().collect();
    assert_eq!(all.len(), left);
    other.claims_no_task().await;
    for (case, tasks) in [(&case, 4), (&next, 2)] {
        let stats = carrier.stats(case).await?;
        assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, tasks));
    }
    Ok(())
}
