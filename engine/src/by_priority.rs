//! Tasks that are claimed and wait to be handed out, those with the highest priority first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tokio::sync::mpsc;
use trawl_common::jobs::Priority;
use trawl_common::ports::Claimed;

/// The tasks that are claimed and not handed out yet: the highest priority first, and of one priority in the order in which they
/// came. There are no more than the broker sends ahead.
pub(crate) struct ByPriority {
    arriving: mpsc::UnboundedReceiver<Claimed>,
    waiting: BTreeMap<(Reverse<Priority>, u64), Claimed>,
    arrived: u64,
}

impl ByPriority {
    /// Sorts what arrives.
    pub(crate) fn new(arriving: mpsc::UnboundedReceiver<Claimed>) -> Self {
        Self { arriving, waiting: BTreeMap::new(), arrived: 0 }
    }

    /// The next tasks, between one and `most`; waits for them, for ever if none can come any more. Cancelling the call loses nothing.
    pub(crate) async fn next(&mut self, most: usize) -> Vec<Claimed> {
        self.sort();
        if self.waiting.is_empty() {
            match self.arriving.recv().await {
                Some(claimed) => self.push(claimed),
                None => std::future::pending().await,
            }
            self.sort();
        }
        let count = most.min(self.waiting.len());
        (0..count).filter_map(|_| self.waiting.pop_first()).map(|(_, claimed)| claimed).collect()
    }

    fn sort(&mut self) {
        while let Ok(claimed) = self.arriving.try_recv() {
            self.push(claimed);
        }
    }

    fn push(&mut self, claimed: Claimed) {
        let priority = claimed.message.work.task().map(|task| task.new.priority).unwrap_or_default();
        self.waiting.insert((Reverse(priority), self.arrived), claimed);
        self.arrived += 1;
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::Task;
    use trawl_common::frontier::lane::Lane;
    use trawl_common::frontier::message::Message;
    use trawl_common::names::CrawlRef;
    use trawl_common::ports::{OpenCrawl, Terms};
    use trawl_common::task::NewTask;
    use trawl_common::time::UnixMs;

    use super::*;

    fn claimed(recipe: &str, priority: f64) -> Claimed {
        let priority = priority.try_into().unwrap();
        let new = NewTask { priority, ..NewTask::of(recipe.parse().unwrap()) };
        let crawl = CrawlRef::adhoc();
        let task = Task::new(&crawl.spider, new);
        Claimed {
            message: Message::of(task.into(), crawl, Lane::Task),
            attempts: 0,
            starts: 0,
            is_beyond_limit: false,
            crawl: OpenCrawl { terms: Terms::default(), started: UnixMs(0) },
        }
    }

    #[tokio::test]
    async fn the_highest_priority_comes_first_and_of_one_priority_what_came_first() {
        let (send, arriving) = mpsc::unbounded_channel();
        let mut tasks = ByPriority::new(arriving);
        for (recipe, priority) in [("a", 0.0), ("b", 1.5), ("c", -1.0), ("d", 1.5)] {
            send.send(claimed(recipe, priority)).unwrap();
        }
        let recipes = |claimed: Vec<Claimed>| -> Vec<String> {
            let task = |claimed: &Claimed| claimed.message.work.task().unwrap().new.recipe.to_string();
            claimed.iter().map(task).collect()
        };
        assert_eq!(recipes(tasks.next(1).await), ["b"]);
        send.send(claimed("e", 9.0)).unwrap();
        assert_eq!(recipes(tasks.next(9).await), ["e", "d", "a", "c"]);
    }
}
