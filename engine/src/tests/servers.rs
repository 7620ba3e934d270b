//! Records and a broker in memory that record their calls, on paused time.

mod broker;
mod records;
mod stats;

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use trawl_common::format::FORMAT;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{ClaimReply, Key, Task};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::task::NewTask;

use crate::broker::{Content, Delivery, Newer, Receipt};

/// An injected fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// The worker no longer holds anything.
    NotHeld,
    /// The last answer is missing.
    ShortAnswer,
    /// Calls of this name are refused.
    Refused(&'static str),
    /// Calls of this name fail as in an outage.
    Away(&'static str),
    /// Stored crawls cannot be read.
    UnreadableCrawls,
    /// The store is full and accepts no links.
    StoreFullForLinks,
    /// Leases take a second to extend.
    SlowLeases,
}

/// All servers of one worker.
#[derive(Clone, Default)]
pub(super) struct Servers {
    state: Arc<Mutex<State>>,
    some_queued: Arc<Notify>,
}

#[derive(Default)]
struct State {
    calls: Vec<String>,
    queue: VecDeque<Delivery>,
    tag: u64,
    replies: HashMap<String, ClaimReply>,
    lost: Vec<Message>,
    /// The task that comes before the next one to start.
    urgent: Option<Message>,
    fault: Fault,
}

impl Servers {
    /// Queues a message for a URL.
    pub(super) fn deliver(&self, url: &str) {
        let mut state = self.state();
        state.tag += 1;
        let receipt = Receipt { session: 1, tag: state.tag };
        let message = Message::seed(url.parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk);
        state.queue.push_back(Delivery { content: Content::Message(message), receipt });
        self.some_queued.notify_one();
    }

    /// Queues a message of a newer format.
    pub(super) fn deliver_newer(&self, message: &str) {
        let mut state = self.state();
        state.tag += 1;
        let receipt = Receipt { session: 1, tag: state.tag };
        let content = Content::Newer(Newer { format: FORMAT + 1, message: message.as_bytes().to_vec() });
        state.queue.push_back(Delivery { content, receipt });
        self.some_queued.notify_one();
    }

    /// Queues a message for a task of this recipe and returns its key.
    pub(super) fn deliver_task(&self, recipe: &str) -> Key {
        let mut state = self.state();
        state.tag += 1;
        let receipt = Receipt { session: 1, tag: state.tag };
        let crawl = CrawlRef::adhoc();
        let task = Task::new(&crawl.spider, NewTask::from_recipe(recipe.parse().unwrap()));
        let message = Message::new(task.into(), crawl, Lane::Task);
        let key = message.key();
        state.queue.push_back(Delivery { content: Content::Message(message), receipt });
        self.some_queued.notify_one();
        key
    }

    /// Sets the records' reply to a claim of a URL.
    pub(super) fn replies_to_claim(&self, url: &str, reply: ClaimReply) {
        self.state().replies.insert(url.to_owned(), reply);
    }

    /// Makes the next step of the sweep find this message.
    pub(super) fn lose(&self, message: Message) {
        self.state().lost.push(message);
    }

    /// Makes the next task to start come after this one.
    pub(super) fn urge(&self, task: Message) {
        self.state().urgent = Some(task);
    }

    pub(super) fn fault(&self, fault: Fault) {
        self.state().fault = fault;
    }

    /// The calls so far, each with its argument, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Waits until this many calls of this name were made.
    pub(super) async fn until(&self, name: &str, count: usize) {
        while self.calls().iter().filter(|call| call.starts_with(name)).count() < count {
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until nothing is queued.
    pub(super) async fn until_taken(&self) {
        while !self.state().queue.is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        sleep(Duration::from_millis(1)).await;
    }

    /// Returns the injected error, if calls of this name fail.
    fn check(&self, name: &str) -> Result<()> {
        match self.state().fault {
            Fault::Refused(call) if call == name => Err(Error::new(ErrorKind::Refused, "no permission")),
            Fault::Away(call) if call == name => Err(Error::new(ErrorKind::Unavailable, "away")),
            _ => Ok(()),
        }
    }

    fn called(&self, name: &str, of: impl Display) {
        self.state().calls.push(format!("{name} {of}"));
    }

    /// The answers to a call for these keys, one each unless one is left out.
    fn answers<T>(&self, name: &str, keys: &[Key], answer: impl Fn(&State, &str) -> T) -> Result<Vec<T>> {
        self.check(name)?;
        keys.iter().for_each(|key| self.called(name, key));
        let state = self.state();
        let count = keys.len() - usize::from(state.fault == Fault::ShortAnswer);
        Ok(keys[..count].iter().map(|key| answer(&state, key.as_str())).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}
