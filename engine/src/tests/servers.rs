//! Records and a broker that write down what they are asked. Time is the test's.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::sleep;
use trawl_common::events::{CrawlEvent, Event, HostEvent};
use trawl_common::format::FORMAT;
use trawl_common::frontier::crawl::{CrawlStats, HostStats};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::ladder::Wake;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{ClaimReply, Key, Start, Taken, Task, UrlState};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{
    Backlog, BeatReply, Claim, Error, ErrorKind, Finish, Heartbeat, LaneState, NewUrl, Places, Result, Seen,
    SeenUrls, Stats, TaskPage, Terms, Vanished, WorkerState,
};
use trawl_common::spider::SpiderText;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use crate::broker::{Broker, Consumer, Content, Delivery, Newer, Parked, Receipt};
use crate::records::{Lease, Linked, Linking, Parking, Probe, ProbeTimes, Records, Sweep};

/// What is wrong with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// Nothing is held by the worker any more.
    NotHeld,
    /// The last answer is left out.
    ShortAnswer,
    /// Calls of this name are refused.
    Refused(&'static str),
    /// Calls of this name come to nothing now.
    Away(&'static str),
    /// What is stored of crawls cannot be read.
    UnreadableCrawls,
    /// There is no room for links.
    NoRoomForLinks,
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

    /// Queues a message for a task of this recipe; returns its key.
    pub(super) fn deliver_task(&self, recipe: &str) -> Key {
        let mut state = self.state();
        state.tag += 1;
        let receipt = Receipt { session: 1, tag: state.tag };
        let crawl = CrawlRef::adhoc();
        let task = Task::new(&crawl.spider, NewTask::of(recipe.parse().unwrap()));
        let message = Message::of(task.into(), crawl, Lane::Task);
        let key = message.key();
        state.queue.push_back(Delivery { content: Content::Message(message), receipt });
        self.some_queued.notify_one();
        key
    }

    /// What the records reply to a claim of a URL.
    pub(super) fn replies_to_claim(&self, url: &str, reply: ClaimReply) {
        self.state().replies.insert(url.to_owned(), reply);
    }

    /// The next step of the sweep finds this.
    pub(super) fn lose(&self, message: Message) {
        self.state().lost.push(message);
    }

    pub(super) fn fault(&self, fault: Fault) {
        self.state().fault = fault;
    }

    /// The calls so far, each with what it was for, in order.
    pub(super) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Waits until so many calls of this name were made.
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

    /// Fails if calls of this name do.
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

    /// The answers to a call that asks for these, one for each unless one is left out.
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

/// A stream of what is queued, two at a time.
struct Stream(Servers);

#[async_trait]
impl Consumer for Stream {
    async fn next(&mut self, _max: usize) -> Result<Vec<Delivery>> {
        loop {
            let deliveries: Vec<Delivery> = {
                let queue = &mut self.0.state().queue;
                let count = queue.len().min(2);
                queue.drain(..count).collect()
            };
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
            self.0.some_queued.notified().await;
        }
    }
}

#[async_trait]
impl Broker for Servers {
    async fn publish(&self, messages: &[Message]) -> Result<()> {
        self.check("publish")?;
        messages.iter().for_each(|message| self.called("publish", &message.work));
        Ok(())
    }

    async fn park(&self, parked: &[Parked]) -> Result<()> {
        self.check("park message of")?;
        parked.iter().for_each(|parked| self.called("park message of", &parked.message.work));
        Ok(())
    }

    async fn pass_on(&self, newer: &[Newer], wake: Wake) -> Result<()> {
        self.check("pass on")?;
        let seconds = wake.wait.as_secs();
        assert!((3..16).contains(&seconds), "in {seconds} s another worker may take it");
        newer.iter().for_each(|newer| self.called("pass on", String::from_utf8_lossy(&newer.message)));
        Ok(())
    }

    fn wake(&self, until: UnixMs) -> Wake {
        let now = UnixMs::now();
        Wake::after(now, until.wait_from(now))
    }

    async fn dead_letter(&self, letters: &[DeadLetter]) -> Result<()> {
        self.check("dead letter")?;
        letters.iter().for_each(|letter| self.called("dead letter", &letter.url));
        Ok(())
    }

    async fn probe(&self, _: ProbeTimes) -> Result<Vec<Probe>> {
        unreachable!("no sweep asks for a probe")
    }

    async fn longest_parked(&self) -> Result<Duration> {
        unreachable!("no crawl waits for what is parked")
    }

    async fn announce(&self, _: &Event) -> Result<()> {
        unreachable!("no crawl ends")
    }

    async fn consume(&self, _: u16, _: u16) -> Result<Box<dyn Consumer>> {
        Ok(Box::new(Stream(self.clone())))
    }

    async fn ack(&self, receipts: &[Receipt]) -> Result<()> {
        receipts.iter().for_each(|receipt| self.called("ack", receipt.tag));
        Ok(())
    }

    async fn release(&self, receipts: &[Receipt]) -> Result<()> {
        receipts.iter().for_each(|receipt| self.called("release", receipt.tag));
        Ok(())
    }
}

#[async_trait]
impl Records for Servers {
    async fn begin(&self, _: &CrawlRef, _: Terms, _: &str, _: Duration) -> Result<Lease> {
        unreachable!("a worker opens no crawl")
    }

    async fn open(&self, _: &CrawlRef, _: Terms, _: &str, _: Duration) -> Result<Lease> {
        unreachable!("a worker opens no crawl")
    }

    async fn reopen(&self, _: &Lease, _: &str, _: Duration) -> Result<Lease> {
        unreachable!("a worker opens no crawl")
    }

    async fn renew(&self, _: &Lease, _: Duration) -> Result<()> {
        unreachable!("a worker has no lease of a crawl")
    }

    async fn admit(&self, _: &Lease, _: &[NewUrl]) -> Result<Vec<bool>> {
        unreachable!("a worker admits links")
    }

    async fn admit_links(&self, _: &WorkerId, pages: &[Linking]) -> Result<Vec<Linked>> {
        self.check("admit links of")?;
        pages.iter().for_each(|linking| self.called("admit links of", &linking.page.key));
        let has_room = self.state().fault != Fault::NoRoomForLinks;
        let taken = |linking: &Linking| match has_room {
            true => Linked::Taken(vec![Taken::New; linking.links.len()]),
            false => Linked::NoRoom,
        };
        Ok(pages.iter().map(taken).collect())
    }

    async fn take_in(&self, crawl: &CrawlRef, urls: &[NewUrl]) -> Result<Vec<bool>> {
        self.check("take in for")?;
        self.called("take in for", &crawl.id);
        Ok(vec![true; urls.len()])
    }

    async fn confirm(&self, _: &CrawlRef, keys: &[Key]) -> Result<()> {
        self.check("confirm")?;
        keys.iter().for_each(|key| self.called("confirm", key));
        Ok(())
    }

    async fn close(&self, _: Lease) -> Result<()> {
        unreachable!("a worker has no lease of a crawl")
    }

    async fn claim(&self, _: &WorkerId, messages: &[Message]) -> Result<Vec<ClaimReply>> {
        let take = ClaimReply::Take { attempts: 0, starts: 0, deadline: None };
        let urls: Vec<_> = messages.iter().map(Message::key).collect();
        self.answers("claim", &urls, |state, url| state.replies.get(url).copied().unwrap_or(take))
    }

    async fn extend(&self, _: &WorkerId, messages: &[Message]) -> Result<Vec<bool>> {
        let fault = self.state().fault;
        if fault == Fault::SlowLeases {
            sleep(Duration::from_secs(1)).await;
        }
        let urls: Vec<_> = messages.iter().map(Message::key).collect();
        self.answers("extend", &urls, |state, _| state.fault != Fault::NotHeld)
    }

    async fn start(&self, _: &WorkerId, claims: &[Claim]) -> Result<Vec<Start>> {
        let urls: Vec<_> = claims.iter().map(|claim| claim.key.clone()).collect();
        self.answers("start", &urls, |_, _| Start::Go)
    }

    async fn park(&self, _: &WorkerId, parkings: &[Parking]) -> Result<Vec<bool>> {
        let urls: Vec<_> = parkings.iter().map(|parking| parking.claim.key.clone()).collect();
        self.answers("park record of", &urls, |state, _| state.fault != Fault::NotHeld)
    }

    async fn release(&self, _: &WorkerId, claims: &[Claim]) -> Result<()> {
        self.check("release record of")?;
        claims.iter().for_each(|claim| self.called("release record of", &claim.key));
        Ok(())
    }

    async fn finish(&self, _: &WorkerId, finishes: &[Finish]) -> Result<Vec<bool>> {
        let urls: Vec<_> = finishes.iter().map(|finish| finish.claim.key.clone()).collect();
        self.answers("finish", &urls, |state, _| state.fault != Fault::NotHeld)
    }

    async fn note_invalid(&self, _: &[DeadLetter]) -> Result<()> {
        unreachable!("all is a URL")
    }

    async fn keep_spider_text(&self, _: &CrawlRef, _: &SpiderText) -> Result<()> {
        unreachable!("no crawl is opened with one")
    }

    async fn has_seen(&self, _: &CrawlRef, _: &CanonicalUrl) -> Result<bool> {
        Ok(false)
    }

    async fn sweep(&self, _: &WorkerId) -> Result<Sweep> {
        let lost = std::mem::take(&mut self.state().lost);
        Ok(Sweep { lost, rest: Duration::from_secs(3_600), ..Sweep::default() })
    }

    async fn probe_sent(&self, _: ProbeTimes) -> Result<()> {
        unreachable!("no sweep asks for a probe")
    }

    async fn probes_returned(&self, _: &[Probe]) -> Result<()> {
        unreachable!("no probe is sent")
    }

    async fn await_parked(&self, _: &CrawlRef, _: Duration) -> Result<()> {
        unreachable!("no crawl waits for what is parked")
    }

    async fn dead_letters_published(&self, _: &[DeadLetter]) -> Result<()> {
        unreachable!("all can be read")
    }

    async fn announced(&self, _: &CrawlEvent) -> Result<()> {
        unreachable!("no crawl ends")
    }

    async fn hosts_announced(&self, _: &HostEvent) -> Result<()> {
        unreachable!("no host refuses")
    }

    async fn beat(&self, _: &Heartbeat, _: Duration) -> Result<BeatReply> {
        Ok(BeatReply::GoOn)
    }

    async fn leave(&self, _: &WorkerId) -> Result<()> {
        Ok(())
    }

    async fn replay(&self, _: &CrawlRef, _: &CrawlRef, _: &[Key]) -> Result<Vec<Message>> {
        unreachable!("nothing has failed")
    }
}

#[async_trait]
impl Stats for Servers {
    async fn crawl_stats(&self, _: &CrawlId) -> Result<Option<CrawlStats>> {
        Ok(None)
    }

    async fn crawls(&self) -> Result<Vec<CrawlStats>> {
        Ok(Vec::new())
    }

    async fn hosts(&self, _: &CrawlRef, _: usize) -> Result<Vec<HostStats>> {
        Ok(Vec::new())
    }

    async fn backlog(&self, _: &CrawlRef) -> Result<Backlog> {
        Ok(Backlog::default())
    }

    async fn terms(&self, _: &CrawlRef) -> Result<Terms> {
        match self.state().fault {
            Fault::UnreadableCrawls => Err(Error::new(ErrorKind::Corrupt, "max_pages is no number")),
            _ => Ok(Terms::default()),
        }
    }

    async fn spider_text(&self, _: &CrawlRef) -> Result<Option<SpiderText>> {
        Ok(None)
    }

    async fn url_state(&self, _: &CrawlRef, _: &Key) -> Result<UrlState> {
        unreachable!("nobody asks for a URL")
    }

    async fn tasks(&self, _: &CrawlRef, _: u64) -> Result<TaskPage> {
        unreachable!("nobody asks for tasks")
    }

    async fn workers(&self) -> Result<Vec<WorkerState>> {
        Ok(Vec::new())
    }

    async fn vanished(&self) -> Result<Vec<Vanished>> {
        Ok(Vec::new())
    }

    async fn places(&self, _: &CrawlRef) -> Result<Places> {
        Ok(Places::default())
    }

    async fn seen(&self, _: &SpiderName) -> Result<Option<u64>> {
        Ok(None)
    }

    async fn walk_seen(&self, _: &SpiderName, _: u64) -> Result<SeenUrls> {
        Ok(SeenUrls::default())
    }

    async fn seen_urls(&self, _: &SpiderName, _: &[CanonicalUrl]) -> Result<Vec<Seen>> {
        unreachable!("nobody asks for a URL")
    }

    async fn lanes(&self) -> Result<Vec<LaneState>> {
        Ok(Vec::new())
    }
}
