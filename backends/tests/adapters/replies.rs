//! Crawls stay exact, and jobs run once, whichever single answer of Redis is lost. The call is then repeated, and must
//! have the same result.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use trawl_backends::redis::{Link, RedisJobs, RedisRecords};
use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Reason, Terminal};
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::{ClaimReply, StartReply, Taken, Task, Work};
use trawl_common::jobs::{JobOutcome, JobStatus, NewJob};
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{Claim, Control, Finish, JobFilter, JobPage, Jobs, NewWork, Result, Stats, Terms};
use trawl_common::request::NewRequest;
use trawl_common::settings::Redis;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{
    Admission, Claims, DeadLetters, Lease, Linking, Outbox, Parking, Past, Probe, Recovery, Settlements,
    TaskStart,
};
use trawl_testkit::faults::replies::ReplyLoser;
use trawl_testkit::servers;

use crate::support::link;

const LONG: Duration = Duration::from_secs(600);
/// A lease lasts a quarter of this, which must be longer than a reconnect.
const LOST_AFTER: Duration = Duration::from_secs(12);

/// The pages of this crawl and its tasks, numbered by what happens to them.
const SEEDS: std::ops::Range<usize> = 0..8;
const LINKS: usize = 0;
const FAILS_ONCE: usize = 1;
const WAITS_ONCE: usize = 2;
const GIVEN_BACK_ONCE: usize = 3;
const REPLAYED: usize = 4;
const LACKS_A_FIELD: usize = 5;
const TASK_FAILS_ONCE: usize = 6;
const TASK_REPLAYED: usize = 7;
/// The links of the first page; there is room for three more URLs of their host.
const LINKED: [usize; 5] = [10, 11, 1, 12, 13];
/// Numbers of the pages that are requests.
const REQUESTS: [usize; 4] = [FAILS_ONCE, GIVEN_BACK_ONCE, REPLAYED, 11];
const TASKS: [usize; 2] = [TASK_FAILS_ONCE, TASK_REPLAYED];

/// Returns the page, the request or the task with this number.
fn work(number: usize) -> Work {
    let url = CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap();
    if TASKS.contains(&number) {
        return Task::new(&SpiderName::default(), NewTask::from_recipe(number.to_string().parse().unwrap()))
            .into();
    }
    let body = if REQUESTS.contains(&number) { number.to_string() } else { String::new() };
    Work::of_request(url, NewRequest { body: body.into(), ..NewRequest::get("/") }).unwrap()
}

fn number(work: &Work) -> usize {
    match work {
        Work::Task(task) => task.new.recipe.as_str().parse().unwrap(),
        _ => work.page().unwrap().as_str().rsplit('/').next().unwrap().parse().unwrap(),
    }
}

fn crawl(id: &str) -> CrawlRef {
    CrawlRef { id: id.parse().unwrap(), spider: SpiderName::default() }
}

/// Repeats a call, as programs do, while it fails because of the server.
async fn again<T, F: Future<Output = Result<T>>>(call: impl Fn() -> F) -> T {
    loop {
        match call().await {
            Ok(value) => return value,
            Err(error) => assert!(error.is_temporary(), "{error}"),
        }
    }
}

/// Producer, worker and operator in one, with a queue that loses nothing.
struct Fleet {
    redis: RedisRecords,
    worker: WorkerId,
    crawl: CrawlRef,
    queue: VecDeque<Message>,
    fetched: BTreeMap<usize, usize>,
    /// Numbers that were done; each may be done only once.
    done: BTreeSet<usize>,
    /// The number of messages that only the sweep sent.
    swept: usize,
}

impl Fleet {
    fn new(redis: RedisRecords) -> Self {
        let (queue, fetched, done) = Default::default();
        Self { redis, worker: "w".parse().unwrap(), crawl: crawl("c"), queue, fetched, done, swept: 0 }
    }

    /// Publishes messages and confirms them.
    async fn send(&mut self, messages: Vec<Message>) {
        again(|| self.redis.confirm(&messages)).await;
        self.queue.extend(messages);
    }

    async fn discover(&mut self) -> Lease {
        let terms = Terms { max_per_host: std::num::NonZeroU64::new(9), ..Terms::default() };
        let lease = again(|| self.redis.open(&self.crawl, terms, "producer", LONG, Past::Possible)).await;
        let urls: Vec<NewWork> = SEEDS.map(|number| NewWork::new(work(number), Lane::Bulk)).collect();
        let new = again(|| self.redis.admit(&lease, &urls)).await;
        let new = urls.iter().zip(new).filter(|(_, new)| *new).map(|(url, _)| url.message(&self.crawl));
        self.send(new.collect()).await;
        again(|| self.redis.renew(&lease, LONG)).await;
        lease
    }

    /// Handles all queued messages, and then sweeps for lost ones.
    async fn round(&mut self) {
        let messages: Vec<Message> = self.queue.drain(..).collect();
        let replies = again(|| self.redis.claim(&self.worker, &messages)).await;
        for (message, reply) in messages.into_iter().zip(replies) {
            match reply {
                ClaimReply::Take { .. } => self.handle(message).await,
                ClaimReply::Wait { .. } | ClaimReply::SendAgain => self.queue.push_back(message),
                ClaimReply::Drop => {}
                ClaimReply::StoreFull | ClaimReply::Full | ClaimReply::Unknown | ClaimReply::Newer => {
                    panic!("{reply:?}")
                }
            }
        }
        if self.queue.is_empty() {
            self.sweep().await;
        }
    }

    /// Claims one of the queued tasks, or sweeps for lost ones.
    async fn claim_tasks(&mut self, held: &mut VecDeque<Message>) {
        let Some(message) = self.queue.pop_front() else { return self.sweep().await };
        let messages = [message];
        let reply = again(|| self.redis.claim(&self.worker, &messages)).await.remove(0);
        match reply {
            ClaimReply::Take { .. } => held.extend(messages),
            ClaimReply::Wait { .. } | ClaimReply::SendAgain => {
                self.queue.extend(messages);
                sleep(Duration::from_millis(50)).await;
            }
            ClaimReply::Drop => {}
            other => panic!("{other:?}"),
        }
    }

    async fn sweep(&mut self) {
        let found = again(|| self.redis.sweep(&self.worker)).await;
        self.swept += found.lost.len();
        self.send(found.lost).await;
        if let Some(times) = found.probe {
            again(|| self.redis.probe_sent(times)).await;
            let probes = SourceQueue::ALL.map(|source| Probe { source, times });
            again(|| self.redis.probes_returned(&probes)).await;
        }
        assert_eq!(found.awaiting, [], "nothing was forgotten");
        for event in found.news {
            again(|| self.redis.announced(&event)).await;
        }
        sleep(found.rest.min(Duration::from_millis(50))).await;
    }

    async fn handle(&mut self, message: Message) {
        let claim = Claim::new(&message);
        let number = number(&message.work);
        assert_eq!(message.work, work(number), "with all that it says");
        let is_first = self.done.insert(number);
        assert_eq!(again(|| self.redis.extend(&self.worker, std::slice::from_ref(&message))).await, [true]);
        match number {
            GIVEN_BACK_ONCE if is_first => {
                again(|| self.redis.release(&self.worker, std::slice::from_ref(&claim))).await;
                return self.queue.push_back(message);
            }
            WAITS_ONCE if is_first => return self.park(claim, message, false).await,
            _ => {}
        }
        assert_eq!(
            again(|| self.redis.start(&self.worker, std::slice::from_ref(&claim))).await,
            [StartReply::Go]
        );
        *self.fetched.entry(number).or_default() += 1;
        match number {
            FAILS_ONCE | TASK_FAILS_ONCE if is_first => self.park(claim, message, true).await,
            REPLAYED | TASK_REPLAYED if is_first => self.fail(claim, message.lane).await,
            LINKS => {
                let left_out = self.follow(&claim).await;
                self.finish(Finish { left_out, ..Finish::new(claim, Terminal::Done) }).await;
            }
            LACKS_A_FIELD => {
                let missing = vec!["price".to_owned()];
                self.finish(Finish { missing, bytes: 7, ..Finish::new(claim, Terminal::Done) }).await;
            }
            _ => self.finish(Finish::new(claim, Terminal::Done)).await,
        }
    }

    async fn park(&mut self, claim: Claim, message: Message, failed: bool) {
        let parking = [Parking { claim, until: UnixMs::now(), failed }];
        assert_eq!(again(|| self.redis.park(&self.worker, &parking)).await, [true]);
        self.send(vec![message]).await;
    }

    async fn finish(&self, finish: Finish) {
        let finishes = [finish];
        assert_eq!(again(|| self.redis.finish(&self.worker, &finishes)).await, [true]);
    }

    /// Admits and publishes the links of a page before the page is finished. If the answer is lost, the repeated call
    /// reports them as known and nobody publishes them; the sweep finds them in the outbox.
    async fn follow(&mut self, page_that_links: &Claim) -> LeftOut {
        let link = |number: usize| NewWork {
            depth: 1,
            referrer: Some(page_that_links.key.clone()),
            ..NewWork::new(work(number), Lane::Bulk)
        };
        let links: Vec<NewWork> = LINKED.into_iter().map(link).collect();
        let linking = [Linking { page: page_that_links.clone(), links: links.clone() }];
        let taken = again(|| self.redis.admit_links(&self.worker, &linking)).await.remove(0).taken().unwrap();
        let mut left_out = LeftOut::default();
        let beyond = taken.iter().filter(|taken| **taken == Taken::LeftOut);
        left_out.add(Limit::MaxPerHost, beyond.count() as u64);
        let new = links.iter().zip(taken).filter(|(_, taken)| *taken == Taken::New);
        let new = new.map(|(link, _)| link.message(&self.crawl)).collect();
        self.send(new).await;
        left_out
    }

    /// Fails the URL permanently, and replays it at once.
    async fn fail(&mut self, claim: Claim, lane: Lane) {
        let cause = Cause {
            reason: Reason::Final,
            class: Some(Class::Http),
            status: Some(404),
            error: "404 Not Found".to_owned(),
            attempts: 1,
            worker: None,
            failed_at: UnixMs::now(),
        };
        let urls = [claim.key.clone()];
        let note = Some(DeadLetterEntry { cause, lane, depth: 0, referrer: None });
        self.finish(Finish { why: Some("http"), note, ..Finish::new(claim, Terminal::Failed) }).await;
        let replayed = again(|| self.redis.replay(&self.crawl, &self.crawl, &urls)).await;
        self.send(replayed).await;
    }

    async fn crawl_stats(&self, id: &str) -> CrawlStats {
        let crawl = crawl(id);
        again(|| self.redis.crawl_stats(&crawl.id)).await.unwrap()
    }
}

/// Runs a crawl from start to end, and cancels another one. Returns the number of URLs that only the sweep sent.
async fn count_swept(redis: RedisRecords) -> usize {
    let mut fleet = Fleet::new(redis);
    let lease = fleet.discover().await;
    again(|| fleet.redis.pause(&fleet.crawl)).await;
    let messages: Vec<Message> = fleet.queue.iter().cloned().collect();
    let replies = again(|| fleet.redis.claim(&fleet.worker, &messages)).await;
    assert!(replies.iter().all(|reply| matches!(reply, ClaimReply::Wait { .. })), "{replies:?}");
    again(|| fleet.redis.resume(&fleet.crawl)).await;
    while ![REPLAYED, TASK_REPLAYED].iter().all(|number| fleet.done.contains(number)) {
        fleet.round().await;
    }
    again(|| fleet.redis.close(lease.clone(), None)).await;
    while fleet.crawl_stats("c").await.status != CrawlState::Finished {
        fleet.round().await;
    }

    let other = crawl("other");
    let lease = again(|| fleet.redis.open(&other, Terms::default(), "producer", LONG, Past::Possible)).await;
    let urls = [20, 21].map(|number| NewWork::new(work(number), Lane::Bulk));
    again(|| fleet.redis.admit(&lease, &urls)).await;
    again(|| fleet.redis.renew(&lease, Duration::ZERO)).await;
    again(|| fleet.redis.cancel(&other)).await;
    let cancelled = fleet.crawl_stats("other").await;
    assert_eq!(cancelled.counts, Counts { admitted: 2, cancelled: 2, ..Counts::default() });

    let stats = fleet.crawl_stats("c").await;
    let all = SEEDS.chain(LINKED).filter(|number| *number != LINKED[4]).collect::<BTreeSet<usize>>();
    let count = all.len() as u64;
    assert_eq!(stats.counts, Counts { admitted: count, done: count, ..Counts::default() });
    assert_eq!((stats.pending, stats.bytes, stats.left_out), (0, 7, 1));
    assert_eq!(stats.reasons.get("missing:price"), Some(&1));
    let twice = [FAILS_ONCE, REPLAYED, TASK_FAILS_ONCE, TASK_REPLAYED];
    let fetches = |number| if twice.contains(&number) { 2 } else { 1 };
    assert_eq!(fleet.fetched, all.iter().map(|number| (*number, fetches(*number))).collect());
    for number in all {
        let key = work(number).key();
        let kept = again(|| fleet.redis.work(&fleet.crawl, &key)).await;
        let url = work(number).url().cloned().map(Work::Url);
        assert_eq!(kept, url, "what has ended needs no body and no recipe");
    }
    let hosts = again(|| fleet.redis.hosts(&fleet.crawl, 9)).await;
    let host = hosts.iter().find(|host| host.host == "site.example").unwrap();
    let pages = count - TASKS.len() as u64;
    let expected = Counts { admitted: pages, done: pages, ..Counts::default() };
    assert_eq!((host.counts, host.bytes), (expected, stats.bytes));
    fleet.swept
}

/// Returns an empty database of Redis behind a proxy.
async fn behind_a_proxy() -> (ReplyLoser, Link) {
    let (proxy, url) = ReplyLoser::in_front_of(&servers::own_database().await).await.unwrap();
    (proxy, link(url).await)
}

/// Runs a crawl in which the answer with this number is lost. Returns the number of answers, and of URLs that only the
/// sweep sent.
async fn without_answer(number: u64) -> (u64, usize) {
    let (proxy, link) = behind_a_proxy().await;
    let redis = RedisRecords::new(link, LOST_AFTER, Redis::default().dedup);
    proxy.lose(number);
    eprintln!("answer {number} is lost");
    let swept = count_swept(redis).await;
    (proxy.passed(), swept)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_is_exact_whichever_answer_is_lost() {
    // The first run makes the server load the scripts.
    without_answer(0).await;
    let (answers, swept) = without_answer(0).await;
    assert_eq!(swept, 0, "where no answer is lost, nothing is left to the sweep");
    let mut runs = JoinSet::new();
    for number in 1..=answers {
        runs.spawn(async move { (number, without_answer(number).await) });
    }
    let mut swept = BTreeMap::new();
    while let Some(run) = runs.join_next().await {
        let (number, (_, count)) = run.unwrap();
        swept.insert(number, count);
    }
    // Work admitted by a call whose answer was lost is known to the repeated call, and is in the outbox.
    let left: Vec<usize> = swept.into_values().filter(|count| *count > 0).collect();
    let expected = [SEEDS.len(), LINKED.len() - 2, 1, 1];
    assert_eq!(left, expected, "the seeds, the links, and the page and the task that were replayed");
}

/// Does tasks one after the other. The last one is urgent, and may already be done when its message arrives. Returns
/// the order in which they started.
async fn tasks_are_done_once(redis: RedisRecords) -> Vec<usize> {
    let mut fleet = Fleet::new(redis);
    let lease =
        again(|| fleet.redis.open(&fleet.crawl, Terms::default(), "producer", LONG, Past::Possible)).await;
    let task = |(recipe, priority): (&str, f64)| {
        let priority = priority.try_into().unwrap();
        let new = NewTask { priority, ..NewTask::from_recipe(recipe.parse().unwrap()) };
        NewWork::task(Task::new(&SpiderName::default(), new))
    };
    let tasks = [("0", 0.0), ("1", 0.0), ("2", 0.0), ("3", 5.0)].map(task);
    again(|| fleet.redis.admit(&lease, &tasks)).await;
    let messages: Vec<Message> = tasks.iter().map(|task| task.message(&fleet.crawl)).collect();
    let urgent = [&messages[3]];
    again(|| fleet.redis.list_urgent(&urgent)).await;
    fleet.send(messages).await;
    again(|| fleet.redis.close(lease.clone(), None)).await;
    let (mut held, mut begun) = (VecDeque::new(), Vec::new());
    while fleet.crawl_stats("c").await.status != CrawlState::Finished {
        let Some(message) = held.pop_front() else {
            fleet.claim_tasks(&mut held).await;
            continue;
        };
        match again(|| fleet.redis.start_task(&fleet.worker, &message)).await {
            TaskStart::This(StartReply::Go) => {
                begun.push(number(&message.work));
                fleet.finish(Finish::new(Claim::new(&message), Terminal::Done)).await;
            }
            TaskStart::This(start) => assert_eq!(start, StartReply::Lost),
            TaskStart::Behind(urgent) => held.extend([urgent.message, message]),
        }
    }
    assert_eq!((begun.len(), begun.iter().copied().collect()), (4, BTreeSet::from([0, 1, 2, 3])));
    let counts = fleet.crawl_stats("c").await.counts;
    assert_eq!(counts, Counts { admitted: 4, done: 4, ..Counts::default() });
    begun
}

#[tokio::test(flavor = "multi_thread")]
async fn urgent_tasks_are_done_once_whichever_answer_is_lost() {
    let without_answer = async |number| {
        let (proxy, link) = behind_a_proxy().await;
        proxy.lose(number);
        let begun = tasks_are_done_once(RedisRecords::new(link, LOST_AFTER, Redis::default().dedup)).await;
        (proxy.passed(), begun)
    };
    // The first run makes the server load the scripts.
    without_answer(0).await;
    let (answers, begun) = without_answer(0).await;
    assert_eq!(begun, [3, 0, 1, 2], "where no answer is lost, the urgent one is first");
    let runs = (1..=answers).map(async |number| {
        eprintln!("answer {number} is lost");
        without_answer(number).await
    });
    futures::future::join_all(runs).await;
}

/// Submits jobs, runs and ends them. Each must be fed once and in order, and leave nothing but its end.
async fn each_is_run_once(jobs: RedisJobs) {
    let asked = [("a1", "a", 0), ("a2", "a", 9), ("b1", "b", 5)].map(|(id, spider, priority)| NewJob {
        priority: f64::from(priority).try_into().unwrap(),
        idempotency_key: Some(format!("key-{id}").parse().unwrap()),
        ..NewJob::new(id.parse().unwrap(), spider.parse().unwrap())
    });
    for job in &asked {
        again(|| jobs.submit(job)).await;
    }
    // If the answer that hands out a job is lost, the job is free again once its lease has expired.
    let (runner, lease): (WorkerId, _) = ("w".parse().unwrap(), LOST_AFTER / 4);
    let mut fed = Vec::new();
    while again(|| jobs.counts()).await.ended < asked.len() as u64 {
        while let Some(job) = again(|| jobs.take(&runner, lease)).await {
            let id = job.new.id;
            again(|| jobs.extend(&runner, std::slice::from_ref(&id), lease)).await;
            again(|| jobs.fed(&runner, &id, None)).await;
            fed.push(id.to_string());
        }
        for job in again(|| jobs.look_after(9, Duration::ZERO)).await {
            again(|| jobs.end(&job.new.id, &JobOutcome::Finished { problem: None })).await;
        }
        sleep(Duration::from_millis(20)).await;
    }
    let place = |id: &str| fed.iter().position(|fed| fed == id).unwrap();
    assert!(fed.len() == asked.len() && place("a2") < place("a1"), "{fed:?}");
    let filter = JobFilter::default();
    let all = again(|| jobs.list(&filter, JobPage { before: None, max: 9 })).await;
    assert_eq!(all.len(), asked.len());
    assert!(all.iter().all(|job| job.status() == JobStatus::Finished), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_run_once_whichever_answer_is_lost() {
    let without_answer = async |number| {
        let (proxy, link) = behind_a_proxy().await;
        proxy.lose(number);
        each_is_run_once(RedisJobs::new(link, std::num::NonZeroU32::MIN)).await;
        proxy.passed()
    };
    // The first run makes the server load the scripts.
    without_answer(0).await;
    for number in 1..=without_answer(0).await {
        eprintln!("answer {number} is lost");
        without_answer(number).await;
    }
}
