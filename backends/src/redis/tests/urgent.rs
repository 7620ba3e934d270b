//! Tests of the list of urgent tasks: its content, and its effect on records.

use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{StartReply, Task};
use trawl_common::ports::{Control, Finish};
use trawl_common::task::NewTask;
use trawl_engine::{Past, TaskStart, Urgent};

use super::*;

const URGENT: &str = "{crawled_urls}:urgent";

fn task(recipe: &str, priority: f64) -> NewWork {
    let priority = priority.try_into().unwrap();
    let new = NewTask { priority, ..NewTask::from_recipe(recipe.parse().unwrap()) };
    NewWork::task(Task::new(&SpiderName::default(), new))
}

fn recipe(message: &Message) -> String {
    message.work.task().unwrap().new.recipe.to_string()
}

impl Fixture {
    fn crawl_named(id: &str) -> CrawlRef {
        CrawlRef { id: id.parse().unwrap(), spider: SpiderName::default() }
    }

    /// Admits tasks to a crawl of its own, and lists those that are urgent. Returns their messages.
    async fn submit(&self, crawl: &CrawlRef, tasks: &[NewWork]) -> Vec<Message> {
        let lease =
            self.frontier.open(crawl, Terms::default(), "producer", HOUR, Past::Possible).await.unwrap();
        self.frontier.admit(&lease, tasks).await.unwrap();
        let messages: Vec<Message> = tasks.iter().map(|task| task.message(crawl)).collect();
        self.list(&messages).await;
        self.frontier.confirm(&messages).await.unwrap();
        self.frontier.close(lease, None).await.unwrap();
        messages
    }

    async fn list(&self, messages: &[Message]) {
        let urgent: Vec<&Message> =
            messages.iter().filter(|message| message.work.priority().get() > 0.0).collect();
        self.frontier.list_urgent(&urgent).await.unwrap();
    }

    async fn claims(&self, message: &Message) -> ClaimReply {
        self.frontier.claim(&self.worker, std::slice::from_ref(message)).await.unwrap().remove(0)
    }

    /// Returns the start when a task of priority 0, which the worker holds, is about to begin.
    async fn begins(&self, low: &Message) -> TaskStart {
        self.frontier.start_task(&self.worker, low).await.unwrap()
    }

    async fn begins_behind(&self, low: &Message) -> Urgent {
        match self.begins(low).await {
            TaskStart::Behind(urgent) => *urgent,
            TaskStart::This(start) => panic!("{start:?}"),
        }
    }

    async fn ends(&self, message: &Message) {
        let finish = Finish::new(Claim::new(message), Terminal::Done);
        assert_eq!(self.frontier.finish(&self.worker, &[finish]).await.unwrap(), [true]);
    }

    async fn listed(&self) -> usize {
        self.ask(redis::cmd("ZCARD").arg(URGENT)).await
    }
}

#[tokio::test]
async fn an_urgent_task_is_held_with_all_that_is_known_of_it() {
    let fixture = Fixture::new().await;
    let (low, other) = (Fixture::crawl_named("low"), Fixture::crawl_named("other"));
    let low = fixture.submit(&low, &[task("low", 0.0)]).await.remove(0);
    let urgent = NewWork { depth: 3, ..task("urgent", 1e300) };
    let expected = fixture.submit(&other, &[urgent, task("next", 1e-300)]).await;
    assert_eq!(fixture.claims(&low).await, TAKE);
    let first = fixture.begins_behind(&low).await;
    assert_eq!((first.message.key(), first.message.depth), (expected[0].key(), 3));
    assert_eq!((first.message.work.clone(), first.attempts, first.starts), (expected[0].work.clone(), 0, 0));
    assert_eq!(fixture.begins(&first.message).await, TaskStart::This(StartReply::Go));
    assert_eq!(recipe(&fixture.begins_behind(&low).await.message), "next");
    assert_eq!(fixture.begins(&low).await, TaskStart::This(StartReply::Go), "nothing else is urgent");
    assert_eq!(fixture.listed().await, 0);
}

/// However long after the task has ended: that of a crawl which never ends would be a new one by then.
#[tokio::test]
async fn a_message_that_comes_after_its_task_was_done_is_dropped() {
    let fixture = Fixture::new().await;
    for crawl in [fixture.crawl.clone(), CrawlRef::adhoc()] {
        let messages = fixture
            .submit(&crawl, &[task(&format!("low {crawl:?}"), 0.0), task(&format!("{crawl:?}"), 1.0)])
            .await;
        assert_eq!(fixture.claims(&messages[0]).await, TAKE);
        let urgent = fixture.begins_behind(&messages[0]).await.message;
        assert_eq!(fixture.begins(&urgent).await, TaskStart::This(StartReply::Go));
        assert!(matches!(
            fixture.frontier.claim(&fixture.other, &messages[1..]).await.unwrap()[..],
            [ClaimReply::Wait { .. }]
        ));
        fixture.ends(&urgent).await;
        fixture.set_clock(24 * HOUR + 100 * HOUR).await;
        assert_eq!(fixture.claims(&messages[1]).await, ClaimReply::Drop);
        fixture.set_clock(24 * HOUR).await;
    }
}

#[tokio::test]
async fn an_urgent_task_whose_worker_died_is_sent_again_and_begins_first_again() {
    let fixture = Fixture::new().await;
    let messages = fixture.submit(&fixture.crawl, &[task("low", 0.0), task("urgent", 1.0)]).await;
    assert_eq!(fixture.claims(&messages[0]).await, TAKE);
    fixture.begins_behind(&messages[0]).await;
    fixture.set_clock(24 * HOUR + LOST_AFTER / 2).await;
    let lost = fixture.round().await.lost;
    assert_eq!(lost.iter().map(recipe).collect::<std::collections::BTreeSet<_>>().len(), 2);
    fixture.list(&lost).await;
    assert_eq!(fixture.claims(&messages[0]).await, TAKE);
    assert_eq!(fixture.begins_behind(&messages[0]).await.message.key(), messages[1].key());
}

/// As one that was claimed.
#[tokio::test]
async fn an_urgent_task_that_is_met_in_a_pause_is_sent_again_after_it() {
    let fixture = Fixture::new().await;
    let paused = Fixture::crawl_named("paused");
    let low = fixture.submit(&fixture.crawl, &[task("low", 0.0)]).await.remove(0);
    let urgent = fixture.submit(&paused, &[task("urgent", 1.0)]).await.remove(0);
    fixture.frontier.pause(&paused).await.unwrap();
    assert_eq!(fixture.claims(&low).await, TAKE);
    assert_eq!(fixture.begins(&low).await, TaskStart::This(StartReply::Go));
    assert_eq!(fixture.listed().await, 0);
    let record: String =
        fixture.ask(redis::cmd("HGET").arg("{crawled_urls}:pending:paused").arg(urgent.work.as_str())).await;
    assert!(record.starts_with('p') && record.ends_with(" paused"), "{record}");
}

#[tokio::test]
async fn what_waits_no_more_is_forgotten_as_others_are_listed_and_as_tasks_begin() {
    let fixture = Fixture::new().await;
    let over = Fixture::crawl_named("over");
    let many: Vec<NewWork> = (0..40).map(|number| task(&format!("over {number}"), 9.0)).collect();
    fixture.submit(&over, &many).await;
    assert_eq!(fixture.listed().await, 40);
    fixture.frontier.cancel(&over).await.unwrap();
    let next: Vec<NewWork> = (0..20).map(|number| task(&format!("next {number}"), 1.0)).collect();
    let messages = fixture.submit(&fixture.crawl, &next).await;
    assert_eq!(fixture.listed().await, 20, "as many as twice those that are listed were looked at");
    // The others come with their messages.
    for message in &messages {
        assert_eq!(fixture.claims(message).await, TAKE);
        assert_eq!(fixture.begins(message).await, TaskStart::This(StartReply::Go));
    }
    assert_eq!(fixture.listed().await, 0);
}

#[tokio::test]
async fn what_others_wrote_into_a_crawl_holds_up_no_task_of_another() {
    let fixture = Fixture::new().await;
    let broken = Fixture::crawl_named("broken");
    let low = fixture.submit(&fixture.crawl, &[task("low", 0.0), task("next", 0.5)]).await;
    fixture.submit(&broken, &[task("urgent", 1.0)]).await;
    let () = fixture.ask(redis::cmd("SET").arg("{crawled_urls}:pending:broken").arg("x")).await;
    assert_eq!(fixture.claims(&low[0]).await, TAKE);
    assert_eq!(recipe(&fixture.begins_behind(&low[0]).await.message), "next");
}
