//! Claimed messages that wait to be handed out, most urgent first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::ports::Claimed;
use trawl_common::priority::Priority;
use trawl_common::time::UnixMs;

use crate::bulk_share::BulkShare;

/// Claimed messages that are not handed out yet, most urgent first, and equally urgent ones in the order of arrival.
/// There are no more than `worker.prefetch` of each queue of workers.
pub(crate) struct ByUrgency {
    arriving: mpsc::UnboundedReceiver<Arriving>,
    waiting: BTreeMap<(Urgency, Turn), Claimed>,
    arrived: u64,
    bulk_share: BulkShare,
}

/// A message to be handed out.
pub(crate) struct Arriving {
    pub(crate) claimed: Claimed,
    /// Its number in the order in which all were first handed out
    /// ([`HeldUrls::turn`](crate::held_urls::HeldUrls::turn)).
    pub(crate) turn: u64,
}

/// The order of equally urgent messages: by turn, then by arrival.
type Turn = (u64, u64);

/// The order of messages: from the ladder, the priority lane, the bulk lane, within each by priority, highest first.
/// For tasks only the priority counts.
type Urgency = (u8, Reverse<Priority>);

impl ByUrgency {
    /// Creates the queue of messages that arrive through this channel.
    pub(crate) fn new(arriving: mpsc::UnboundedReceiver<Arriving>) -> Self {
        Self { arriving, waiting: BTreeMap::new(), arrived: 0, bulk_share: BulkShare::default() }
    }

    /// Returns the next messages, between one and `most`. Waits for them, forever if none can arrive any more.
    /// Cancelling the call loses nothing.
    pub(crate) async fn next(&mut self, most: usize) -> Vec<Claimed> {
        loop {
            self.sort();
            let now = Instant::now();
            let next: Vec<_> = std::iter::from_fn(|| self.pop(now)).take(most).collect();
            if !next.is_empty() {
                return next;
            }
            let held_until = self.bulk_share.held_until(now).filter(|_| !self.waiting.is_empty());
            tokio::select! {
                Some(arriving) = self.arriving.recv() => self.push(arriving),
                () = sleep_until(held_until.unwrap_or(now)), if held_until.is_some() => {}
                else => std::future::pending().await,
            }
        }
    }

    /// Takes the most urgent message, unless that is a new one, and others return late.
    fn pop(&mut self, now: Instant) -> Option<Claimed> {
        let first = self.waiting.first_entry()?;
        let Message { until, lane, .. } = first.get().message;
        if until.is_none() && lane == Lane::Bulk {
            if !self.bulk_share.has_room(now) {
                return None;
            }
            self.bulk_share.note_new();
        }
        Some(first.remove())
    }

    fn sort(&mut self) {
        while let Ok(arriving) = self.arriving.try_recv() {
            self.push(arriving);
        }
    }

    fn push(&mut self, Arriving { claimed, turn }: Arriving) {
        if let Some(until) = claimed.message.until {
            self.bulk_share.note_returned(UnixMs::now().since(until), Instant::now());
        }
        self.waiting.insert((urgency(&claimed.message), (turn, self.arrived)), claimed);
        self.arrived += 1;
    }
}

fn urgency(message: &Message) -> Urgency {
    let comes_back = message.until.is_some() && message.lane != Lane::Task;
    let class = if comes_back { 0 } else { 1 + message.lane as u8 };
    (class, Reverse(message.work.priority()))
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::{Task, Work};
    use trawl_common::names::CrawlRef;
    use trawl_common::ports::{OpenCrawl, Terms};
    use trawl_common::request::NewRequest;
    use trawl_common::task::NewTask;

    use super::*;

    fn claimed(message: Message) -> Arriving {
        let crawl = OpenCrawl { terms: Terms::default(), started: UnixMs(0) };
        let claimed = Claimed { message, attempts: 0, starts: 0, is_beyond_limit: false, crawl };
        Arriving { claimed, turn: 0 }
    }

    fn task(recipe: &str, priority: f64) -> Message {
        let priority = priority.try_into().unwrap();
        let new = NewTask { priority, ..NewTask::from_recipe(recipe.parse().unwrap()) };
        let crawl = CrawlRef::adhoc();
        Message::new(Task::new(&crawl.spider, new).into(), crawl, Lane::Task)
    }

    fn request(path: &str, priority: f64, lane: Lane) -> Message {
        let (url, priority) = (format!("http://a.example/{path}"), priority.try_into().unwrap());
        let new = NewRequest { priority, ..NewRequest::get(&url) };
        Message::new(Work::of_request(url.parse().unwrap(), new).unwrap(), CrawlRef::adhoc(), lane)
    }

    #[tokio::test]
    async fn the_task_with_the_highest_priority_comes_first_and_of_one_priority_what_came_first() {
        let (send, arriving) = mpsc::unbounded_channel();
        let mut tasks = ByUrgency::new(arriving);
        let again = Message { until: Some(UnixMs(1)), ..task("c", -1.0) };
        for message in [task("a", 0.0), task("b", 1.5), again, task("d", 1.5)] {
            send.send(claimed(message)).unwrap();
        }
        let recipes = |claimed: Vec<Claimed>| -> Vec<String> {
            let task = |claimed: &Claimed| claimed.message.work.task().unwrap().new.recipe.to_string();
            claimed.iter().map(task).collect()
        };
        assert_eq!(recipes(tasks.next(1).await), ["b"]);
        send.send(claimed(task("e", 9.0))).unwrap();
        assert_eq!(recipes(tasks.next(9).await), ["e", "d", "a", "c"]);
    }

    /// This happens each time a more urgent task comes before it.
    #[tokio::test]
    async fn tasks_that_are_handed_out_again_keep_their_places_in_whatever_order_they_come_back() {
        let (send, arriving) = mpsc::unbounded_channel();
        let mut tasks = ByUrgency::new(arriving);
        let recipes = ["a", "b", "c", "d"];
        for (turn, recipe) in (0..).zip(recipes) {
            send.send(Arriving { turn, ..claimed(task(recipe, 0.0)) }).unwrap();
        }
        let turn = |claimed: &Claimed| {
            let recipe = claimed.message.work.task().unwrap().new.recipe.to_string();
            recipes.iter().position(|other| *other == recipe).unwrap() as u64
        };
        let taken = tasks.next(3).await;
        for claimed in taken.into_iter().rev() {
            send.send(Arriving { turn: turn(&claimed), claimed }).unwrap();
        }
        send.send(Arriving { turn: 4, ..claimed(task("e", 0.0)) }).unwrap();
        send.send(Arriving { turn: 5, ..claimed(task("urgent", 1.0)) }).unwrap();
        let order: Vec<String> = tasks
            .next(9)
            .await
            .iter()
            .map(|claimed| claimed.message.work.task().unwrap().new.recipe.to_string())
            .collect();
        assert_eq!(order, ["urgent", "a", "b", "c", "d", "e"]);
    }

    #[tokio::test]
    async fn what_comes_back_goes_before_the_lanes_and_in_each_the_highest_priority_before_others() {
        let (send, arriving) = mpsc::unbounded_channel();
        let mut urls = ByUrgency::new(arriving);
        let back = |message| Message { until: Some(UnixMs::now()), ..message };
        let messages = [
            request("low", -1.0, Lane::Bulk),
            request("bulk", 0.0, Lane::Bulk),
            request("lane", 0.0, Lane::Priority),
            request("high", 2.0, Lane::Bulk),
            back(request("back", 0.0, Lane::Bulk)),
            back(request("first", 1.0, Lane::Bulk)),
        ];
        for message in messages {
            send.send(claimed(message)).unwrap();
        }
        let found = urls.next(9).await;
        let paths: Vec<String> =
            found.iter().map(|found| found.message.work.page().unwrap().to_url().path().to_owned()).collect();
        assert_eq!(paths, ["/first", "/back", "/high", "/lane", "/bulk", "/low"]);
    }

    #[tokio::test(start_paused = true)]
    async fn new_urls_of_the_bulk_lane_wait_while_others_return_late() {
        let (send, arriving) = mpsc::unbounded_channel();
        let mut urls = ByUrgency::new(arriving);
        let late = |at: u64| {
            let message = request(&format!("late{at}"), 0.0, Lane::Bulk);
            claimed(Message { until: Some(UnixMs(1)), ..message })
        };
        (0..4).for_each(|at| send.send(late(at)).unwrap());
        let new = |lane| claimed(request("new", 0.0, lane));
        send.send(new(Lane::Bulk)).unwrap();
        send.send(new(Lane::Priority)).unwrap();
        let lanes: Vec<Lane> = urls.next(9).await.iter().map(|found| found.message.lane).collect();
        assert_eq!(lanes, [Lane::Bulk, Lane::Bulk, Lane::Bulk, Lane::Bulk, Lane::Priority]);
        assert_eq!(
            urls.next(9).await.len(),
            1,
            "a second later it is handed out although none returns any more"
        );
    }
}
