//! From the queue to this worker's hands: which messages are this worker's to handle.
//!
//! A message is claimed as soon as it is delivered, however busy the worker is: recovery takes it that what was delivered
//! a while ago is known to the store. What waits for its turn waits after this, claimed, with its lease renewed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use trawl_common::backoff::Backoff;
use trawl_common::lane::Lane;
use trawl_common::line::Line;
use trawl_common::message::{Malformed, Message};
use trawl_common::outcome::{Outcome, Skip};
use trawl_common::ports::{Consumer, Content, Delivery, Error, Heard, Receipt, Unproven};
use trawl_common::settings::Acks;
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use crate::Shared;
use crate::crawls;
use crate::job::{Job, claim};
use crate::settlement::Settlement;
use crate::spiders::Loaded;

/// What fails while the queue is away.
const TAKING: &str = "taking messages";

/// How soon a worker that has enough in hand looks whether it has.
const CROWDED: Duration = Duration::from_millis(20);

/// How long about URLs wait that cannot be taken now, at least and at most: their spider's file cannot be used or is not here, and
/// another worker may have it, or there is no room. The ladder makes 3 s or 10 s of that, as often the one as the other: a queue
/// serves its consumers in turn, and what comes back at a regular interval can meet the same worker every time.
const UNREADY: [f64; 2] = [4.0, 16.0];

/// What fails while the store is full.
const TAKING_IN: &str = "taking in URLs of messages";
/// That it did is over when a message that was put aside could have said so again.
const FULL_FOR: Duration = Duration::from_secs(20);

/// Takes messages and claims their URLs.
pub(crate) struct Claiming {
    shared: Arc<Shared>,
    claimed: mpsc::UnboundedSender<Job>,
    settle: mpsc::Sender<Settlement>,
}

/// The jobs that are claimed and not yet scheduled, the urgent ones first. There are no more than the broker sends ahead.
pub(crate) struct Claimed {
    arriving: mpsc::UnboundedReceiver<Job>,
    /// What came back from the ladder, the priority lane, the bulk lane.
    waiting: [VecDeque<Job>; 3],
}

/// Claims for [`Claimed`].
pub(crate) fn claiming(shared: Arc<Shared>, settle: mpsc::Sender<Settlement>) -> (Claiming, Claimed) {
    let (claimed, arriving) = mpsc::unbounded_channel();
    (Claiming { shared, claimed, settle }, Claimed { arriving, waiting: Default::default() })
}

impl Claimed {
    /// The next jobs, between one and `most`; waits for them. `None` when claiming has ended and none is left. Cancelling
    /// the call loses nothing.
    pub(crate) async fn up_to(&mut self, most: usize) -> Option<Vec<Job>> {
        self.sort();
        if self.waiting.iter().all(VecDeque::is_empty) {
            let job = self.arriving.recv().await?;
            self.push(job);
            self.sort();
        }
        let mut jobs = Vec::with_capacity(most.min(64));
        for lane in &mut self.waiting {
            let room = lane.len().min(most - jobs.len());
            jobs.extend(lane.drain(..room));
        }
        Some(jobs)
    }

    /// The next job.
    pub(crate) async fn next(&mut self) -> Option<Job> {
        self.up_to(1).await?.pop()
    }

    fn sort(&mut self) {
        while let Ok(job) = self.arriving.try_recv() {
            self.push(job);
        }
    }

    fn push(&mut self, job: Job) {
        let came_back = job.message.until.is_some();
        let lane = if came_back { 0 } else { 1 + job.message.lane as usize };
        self.waiting[lane].push_back(job);
    }
}

impl Claiming {
    /// Consumes until `stop`. A broken consumer is replaced.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut backoff = Backoff::default();
        let health = &self.shared.health;
        while !stop.is_cancelled() {
            let prefetch = self.shared.settings.worker.prefetch;
            let opened = tokio::select! {
                () = stop.cancelled() => break,
                opened = self.shared.ports.queue.consume(prefetch) => opened,
            };
            match opened {
                Ok(consumer) => {
                    health.works(TAKING);
                    info!("waiting for messages");
                    backoff = Backoff::default();
                    self.consume(consumer, &stop).await;
                }
                Err(error) => {
                    health.fails(TAKING, &error);
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = backoff.pause() => {}
                    }
                }
            }
        }
    }

    /// Consumes until `stop` or until the consumer breaks.
    async fn consume(&self, mut consumer: Box<dyn Consumer>, stop: &CancellationToken) {
        let most = usize::from(self.shared.settings.worker.concurrency).max(16);
        loop {
            let is_crowded = self.is_crowded();
            let taken = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep(CROWDED), if is_crowded => continue,
                taken = consumer.next(most), if !is_crowded => taken,
            };
            match taken {
                Ok(deliveries) => self.receive(deliveries).await,
                Err(error) => return self.shared.health.fails(TAKING, &error),
            }
        }
    }

    /// Whether enough is in hand. A broker holds back what is not acknowledged, and only that.
    fn is_crowded(&self) -> bool {
        let settings = &self.shared.settings;
        let is_none = |lane| settings.queues.lane(lane).acks == Acks::None;
        let most = usize::from(settings.worker.prefetch) * Line::ALL.len();
        Lane::ALL.into_iter().any(is_none) && self.shared.hands.len() >= most
    }

    /// 1. Acknowledges what comes through a lane that says so.
    /// 2. Passes on what is no message.
    /// 3. Joins what is in hand already.
    /// 4. Hears which of the rest are this worker's.
    /// 5. Passes these on to be scheduled.
    async fn receive(&self, deliveries: Vec<Delivery>) {
        self.acknowledge(&deliveries).await;
        let mut messages = Vec::with_capacity(deliveries.len());
        for Delivery { content, receipt } in deliveries {
            match content {
                Content::Message(message) => {
                    // What its lane acknowledged as it arrived has no receipt any more.
                    let receipt = (self.acks(&message) != Acks::None).then_some(receipt);
                    self.take(message, receipt, &mut messages).await;
                }
                Content::Probe(probe) => self.pass_on(Settlement::Probe(probe, receipt)).await,
                Content::Malformed(malformed) => {
                    self.pass_on(Settlement::Malformed(malformed, vec![receipt])).await;
                }
                Content::Unproven(unproven) => match self.request_in(unproven).await {
                    Some(request) => self.take(request, Some(receipt), &mut messages).await,
                    None => self.drop_unproven(receipt).await,
                },
            }
        }
        if messages.is_empty() {
            return;
        }
        let Shared { ports, id, health, .. } = &*self.shared;
        let heard = health.until_done("hearing messages", || ports.frontier.hear(id, &messages)).await;
        let now = UnixMs::now();
        for (message, heard) in messages.into_iter().zip(heard) {
            match heard {
                Heard::Take { attempts, starts, deadline } => {
                    // The record decides; what a copy of its message says of it may be old.
                    let message = Message { deadline, ..message };
                    let Some(spider) = self.spider_for(&message).await else {
                        self.let_be(message, Outcome::Unready { until: after_a_while(now) }).await;
                        continue;
                    };
                    let is_expired = message.is_expired(now);
                    let job = Job { message, attempts, starts, misses: 0, spider };
                    match is_expired {
                        true => self.settle(job, Outcome::Expired).await,
                        false => self.hand_on(job),
                    }
                }
                Heard::SendAgain => self.let_be(message, Outcome::SentAgain).await,
                Heard::Wait { until } => self.let_be(message, Outcome::Waits { until }).await,
                Heard::NoRoom => {
                    self.shared.health.fails_lately(TAKING_IN, &Error::full(), FULL_FOR);
                    self.let_be(message, Outcome::Waits { until: after_a_while(now) }).await;
                }
                Heard::Full => self.let_be(message, Outcome::Skipped(Skip::Limit)).await,
                // Let go at once: its own message may come at any time, and is not to join it.
                Heard::Drop => {
                    self.shared.url_log.drops(&message);
                    let receipts = self.shared.hands.let_go(&claim(&message));
                    self.pass_on(Settlement::Dropped(receipts)).await;
                }
                Heard::Unknown => self.refuse(&message).await,
            }
        }
    }

    async fn take(&self, message: Message, receipt: Option<Receipt>, taken: &mut Vec<Message>) {
        match self.admitted(message) {
            Ok(message) => {
                if self.shared.hands.take(&message, receipt) {
                    taken.push(message);
                }
            }
            Err(malformed) => {
                self.pass_on(Settlement::Malformed(malformed, receipt.into_iter().collect())).await;
            }
        }
    }

    /// A stranger's message is for the page that its URL stands for, if its spider is here and takes URLs of that length; what
    /// trawl sent is as it is to be.
    fn admitted(&self, message: Message) -> Result<Message, Malformed> {
        if message.is_ours {
            return Ok(message);
        }
        let refused = |url: &CanonicalUrl, reason| Err(Malformed { text: url.to_string(), reason });
        let name = &message.crawl.spider;
        // Asked first: what anybody may write a name of is not even looked for.
        if !self.shared.spiders.is_for_strangers(name) {
            return refused(&message.url, format!("there is no spider {name} here"));
        }
        let Some(spider) = self.shared.spiders.get(name) else { return Ok(message) };
        let urls = &spider.spider.urls;
        let url = urls.canonical(message.url);
        if urls.takes(&url) { Ok(Message { url, ..message }) } else { refused(&url, urls.too_long()) }
    }

    /// What is to be done with what says without proof that it is the fleet's: nothing if the store knows its crawl, whose
    /// record sends the URL again, signed; else it is a stranger's request, so that nothing is lost with the store.
    async fn request_in(&self, unproven: Unproven) -> Option<Message> {
        let Shared { ports, health, .. } = &*self.shared;
        match unproven {
            Unproven::Probe => None,
            Unproven::Message { request, crawl } => {
                let books = health.until_done("looking up a crawl", || ports.frontier.books(&crawl.id)).await;
                let is_known = books.is_some_and(|books| books.crawl_ref() == crawl);
                (!is_known).then_some(*request)
            }
        }
    }

    async fn drop_unproven(&self, receipt: Receipt) {
        if self.shared.tally.drops_unproven() == 0 {
            warn!(
                "messages say that they are this fleet's, and are not signed by its key: they are dropped. They are from \
                 before it was set, or forged"
            );
        }
        self.pass_on(Settlement::Dropped(vec![receipt])).await;
    }

    /// What has no record yet is lost if this worker dies now; that is what such a lane is for.
    async fn acknowledge(&self, deliveries: &[Delivery]) {
        let is_for_it = |delivery: &&Delivery| match &delivery.content {
            Content::Message(message) => self.acks(message) == Acks::None,
            Content::Probe(_) | Content::Malformed(_) | Content::Unproven(_) => false,
        };
        let receipts: Vec<Receipt> =
            deliveries.iter().filter(is_for_it).map(|delivery| delivery.receipt).collect();
        if !receipts.is_empty()
            && let Err(error) = self.shared.ports.queue.ack(&receipts).await
        {
            debug!(%error, "not acknowledged as it arrived; the messages come again");
        }
    }

    fn acks(&self, message: &Message) -> Acks {
        self.shared.settings.queues.lane(message.lane).acks
    }

    /// The spider that a message is for, if this worker has it as its crawl needs it.
    async fn spider_for(&self, message: &Message) -> Option<Arc<Loaded>> {
        let spider = self.shared.spiders.get(&message.crawl.spider)?;
        let crawl = crawls::look_up(&self.shared, &message.crawl, &spider).await;
        crawl.can_be_worked_with(spider.spider.file).then_some(spider)
    }

    /// Has no record to settle.
    async fn refuse(&self, message: &Message) {
        let receipts = self.shared.hands.let_go(&claim(message));
        let reason = format!("there is no crawl {}", message.crawl.id);
        let malformed = Malformed { text: message.url.to_string(), reason };
        self.pass_on(Settlement::Malformed(malformed, receipts)).await;
    }

    fn hand_on(&self, job: Job) {
        // Closed only when the worker ends: what it holds is given back.
        let _ = self.claimed.send(job);
    }

    async fn let_be(&self, message: Message, outcome: Outcome) {
        self.pass_on(Settlement::untouched(message, outcome)).await;
    }

    async fn settle(&self, job: Job, outcome: Outcome) {
        self.pass_on(Settlement::of(job, outcome)).await;
    }

    async fn pass_on(&self, settlement: Settlement) {
        // Closed only when the settler is gone, which ends after this.
        let _ = self.settle.send(settlement).await;
    }
}

/// When to look again at what cannot be taken now.
fn after_a_while(now: UnixMs) -> UnixMs {
    let [least, most] = UNREADY;
    now.plus(Duration::from_secs_f64(rand::random_range(least..most)))
}
