//! Tasks are kept, handled and ended like URLs, and the most urgent ones of a spider are started first.

use std::sync::Arc;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, StartReply, Task};
use trawl_common::ports::{Claim, Finish, NewWork, Result};
use trawl_common::task::NewTask;
use trawl_engine::{Records, TaskStart};

use crate::conformance::fixture::{Fixture, TAKE};

impl Fixture<'_> {
    fn task(&self, recipe: &str, priority: f64) -> NewWork {
        let priority = priority.try_into().expect("it is finite");
        let new = NewTask { priority, ..NewTask::from_recipe(recipe.parse().expect("it is a recipe")) };
        NewWork::task(Task::new(&self.crawl.spider, new))
    }

    /// Starts a crawl of these tasks, as an engine publishes them. Returns their messages.
    async fn submit(&self, tasks: &[NewWork]) -> Result<Vec<Message>> {
        let lease = self.open().await?;
        assert_eq!(self.frontier.admit(&lease, tasks).await?, vec![true; tasks.len()]);
        let messages: Vec<Message> = tasks.iter().map(|task| task.message(&self.crawl)).collect();
        let is_urgent = |message: &&Message| message.work.priority().get() > 0.0;
        self.frontier.list_urgent(&messages.iter().filter(is_urgent).collect::<Vec<_>>()).await?;
        self.frontier.confirm(&messages).await?;
        self.frontier.close(lease, None).await?;
        Ok(messages)
    }

    async fn claim_task(&self, task: &Message) -> Result<ClaimReply> {
        Ok(self.frontier.claim(&self.worker, std::slice::from_ref(task)).await?[0])
    }

    /// Has the worker start a task. Returns which task is started.
    async fn start_task(&self, task: &Message) -> Result<TaskStart> {
        self.frontier.start_task(&self.worker, task).await
    }

    /// Has the worker start a task while a more urgent one comes first. Returns the message of that one.
    async fn starts_behind(&self, task: &Message) -> Result<Message> {
        match self.start_task(task).await? {
            TaskStart::Behind(urgent) => Ok(urgent.message),
            TaskStart::This(start) => panic!("{start:?}"),
        }
    }

    async fn end_task(&self, task: &Message) -> Result<()> {
        let finish = Finish::new(Claim::new(task), Terminal::Done);
        assert_eq!(self.frontier.finish(&self.worker, &[finish]).await?, [true]);
        Ok(())
    }
}

const GO: TaskStart = TaskStart::This(StartReply::Go);

/// A task is claimed, started and ended like a URL: its holder starts it, and a repeated start counts once.
pub async fn a_task_is_claimed_started_and_ended_as_a_url_is(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let task = fixture.submit(&[fixture.task("recipe", 0.0)]).await?.remove(0);
    assert_eq!(fixture.start_task(&task).await?, TaskStart::This(StartReply::Lost), "not claimed yet");
    assert_eq!(fixture.claim_task(&task).await?, TAKE);
    assert_eq!((fixture.start_task(&task).await?, fixture.start_task(&task).await?), (GO, GO));
    assert_eq!(frontier.start_task(&fixture.other, &task).await?, TaskStart::This(StartReply::Lost));
    fixture.end_task(&task).await?;
    assert_eq!(fixture.claim_task(&task).await?, ClaimReply::Drop);
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    Ok(())
}

/// The most urgent task of a spider, of any of its crawls, is claimed in place of the one that is to start. Its own
/// message is a duplicate.
pub async fn the_most_urgent_task_of_a_spider_is_held_in_place_of_the_one_that_is_to_start(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let (next, other) = (fixture.next_crawl(), fixture.other_spider());
    let tasks = fixture.submit(&[fixture.task("low", 0.0), fixture.task("urgent", 1.0)]).await?;
    let more_urgent = next.submit(&[next.task("more urgent", 2.0)]).await?.remove(0);
    other.submit(&[other.task("of another spider", 3.0)]).await?;
    assert_eq!(fixture.claim_task(&tasks[0]).await?, TAKE);
    let first = fixture.starts_behind(&tasks[0]).await?;
    assert_eq!((&first.work, &first.crawl), (&more_urgent.work, &next.crawl));
    assert_eq!(next.start_task(&first).await?, GO, "nothing is more urgent");
    let held = frontier.claim(&fixture.other, std::slice::from_ref(&more_urgent)).await?;
    assert!(matches!(held[..], [ClaimReply::Wait { .. }]), "{held:?}");
    next.end_task(&first).await?;
    assert_eq!(
        (next.claim_task(&more_urgent).await?, next.status().await?),
        (ClaimReply::Drop, CrawlState::Finished)
    );
    let second = fixture.starts_behind(&tasks[0]).await?;
    assert_eq!((second.key(), fixture.start_task(&second).await?), (tasks[1].key(), GO));
    assert_eq!(fixture.start_task(&tasks[0]).await?, GO);
    fixture.end_task(&second).await?;
    fixture.end_task(&tasks[0]).await?;
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    Ok(())
}

/// An urgent task that another worker holds, or that has ended, does not come first: a task is started by one worker.
pub async fn an_urgent_task_that_is_held_or_has_ended_comes_before_none(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let of = [("low", 0.0), ("held", 1.0), ("ended", 2.0), ("released", 0.5), ("low as well", 0.0)];
    let tasks = fixture.submit(&of.map(|(recipe, priority)| fixture.task(recipe, priority))).await?;
    frontier.claim(&fixture.other, &tasks[1..3]).await?;
    let finish = Finish::new(Claim::new(&tasks[2]), Terminal::Done);
    assert_eq!(frontier.finish(&fixture.other, &[finish]).await?, [true]);
    assert_eq!(fixture.claim_task(&tasks[0]).await?, TAKE);
    let released = fixture.starts_behind(&tasks[0]).await?;
    assert_eq!(released.key(), tasks[3].key());
    frontier.release(&fixture.worker, &[Claim::new(&released)]).await?;
    assert_eq!(fixture.start_task(&tasks[0]).await?, GO, "it is not listed any more");
    frontier.list_urgent(&[&tasks[1], &tasks[2], &released]).await?;
    assert_eq!(fixture.claim_task(&tasks[4]).await?, TAKE);
    assert_eq!(fixture.starts_behind(&tasks[4]).await?.key(), released.key());
    assert_eq!(fixture.start_task(&tasks[4]).await?, GO);
    Ok(())
}
