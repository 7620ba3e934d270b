//! A model test: whatever two workers, a producer and an operator do to a few URLs and requests, repeatedly and in any
//! order, an engine answers as a model of a page does, and its stats agree.

mod model;

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::sleep;
use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{Claim, CrawlSession, Disposition, ErrorKind, NewWork, Result, Settlement};

use self::model::Model;
use super::worker::delay;
use super::{Carrier, Worker, ends, number};
use crate::conformance::fixture::{Case, LONG, long_ago, much_later};

/// Number of URLs in the test.
const URLS: usize = 4;

/// One call, about one of a few pages, by one of two workers.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The producer opens the crawl, or opens it again.
    Open,
    /// The producer admits `.1` pages, beginning with `.0`.
    Admit(usize, usize),
    /// The producer has read all sources.
    Close,
    /// A worker claims everything available.
    Claim(Who),
    /// A worker is about to store the items of a page, whether it holds the page or not.
    Extend(Who, usize),
    /// A worker is about to fetch.
    Start(Who, usize),
    /// A worker parks a page: for long or not, for a failure or not.
    PutAside {
        /// The worker.
        who: Who,
        /// The page.
        url: usize,
        /// Whether its wake-up is far away.
        long: bool,
        /// Whether it failed.
        failed: bool,
    },
    /// A worker releases a page.
    GiveBack(Who, usize),
    /// A worker gives a page its terminal state, whether it holds it or not.
    End(Who, usize, Terminal),
    /// A worker releases everything that it has, and another takes its place.
    Leave(Who),
    /// A worker is gone without releasing anything, and another takes its place.
    Vanish(Who),
    /// An operator pauses the crawl.
    Pause,
    /// An operator resumes the crawl.
    Resume,
    /// An operator cancels the crawl.
    Cancel,
    /// An operator replays a failed page in the same crawl.
    Replay(usize),
    /// Every process is killed, and new ones start with the same store.
    Crash,
}

/// One of two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The first worker.
    One,
    /// The second worker.
    Two,
}

/// Draws a worker.
fn who() -> impl Strategy<Value = Who> {
    prop_oneof![Just(Who::One), Just(Who::Two)]
}

/// Draws a URL, by its number.
fn url() -> impl Strategy<Value = usize> {
    0..URLS
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => Just(Step::Open),
        10 => (url(), 1..=URLS).prop_map(|(first, count)| Step::Admit(first, count)),
        5 => Just(Step::Close),
        30 => who().prop_map(Step::Claim),
        10 => (who(), url()).prop_map(|(who, url)| Step::Extend(who, url)),
        20 => (who(), url()).prop_map(|(who, url)| Step::Start(who, url)),
        15 => (who(), url(), any::<bool>(), any::<bool>())
            .prop_map(|(who, url, long, failed)| Step::PutAside { who, url, long, failed }),
        10 => (who(), url()).prop_map(|(who, url)| Step::GiveBack(who, url)),
        20 => (who(), url(), prop::sample::select(&Terminal::ALL[..]))
            .prop_map(|(who, url, terminal)| Step::End(who, url, terminal)),
        5 => who().prop_map(Step::Leave),
        5 => who().prop_map(Step::Vanish),
        5 => Just(Step::Pause),
        10 => Just(Step::Resume),
        1 => Just(Step::Cancel),
        10 => url().prop_map(Step::Replay),
        5 => Just(Step::Crash),
    ]
}

/// Draws up to eighty steps. Cancellations are rare, as little happens after them.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..80)
}

/// The state that is lost in a crash.
struct Process {
    carrier: Carrier,
    session: Option<Box<dyn CrawlSession>>,
    workers: [Worker; 2],
}

impl Process {
    fn new(carrier: Carrier, case: &Case) -> Self {
        let workers = [carrier.join(case), carrier.join_as(case.other.clone())];
        Self { carrier, session: None, workers }
    }

    /// Stops the workers' maintenance, which has the store open.
    async fn end(mut self) {
        for worker in &mut self.workers {
            worker.maintenance.shutdown().await;
        }
    }

    fn worker(&self, who: Who) -> &Worker {
        &self.workers[who as usize]
    }

    fn replace(&mut self, who: Who, case: &Case) {
        let worker = if who == Who::One { &case.worker } else { &case.other };
        self.workers[who as usize] = self.carrier.join_as(worker.clone());
    }
}

/// Takes `steps` on the engine that `connect` returns, which is called again after each [`Step::Crash`], and then ends
/// the remaining URLs. `fault` may make a step fail, by its number, until its result is dropped: that happens when the
/// engine has reported the failure, and tries again.
///
/// # Panics
/// If the engine departs from the model.
pub async fn obeys_the_model<F>(
    mut connect: impl AsyncFnMut() -> Result<Carrier>,
    mut fault: impl FnMut(usize) -> Option<F>,
    steps: &[Step],
) -> Result<()> {
    let case = Case::with_requests();
    let mut process = Process::new(connect().await?, &case);
    let mut model = Model::new();
    take(Step::Open, &case, &mut process, &mut model).await?;
    for (number, step) in steps.iter().enumerate() {
        if matches!(step, Step::Crash) {
            process.end().await;
            process = Process::new(connect().await?, &case);
            model.pages.values_mut().for_each(|page| page.holder = None);
        }
        take_despite(fault(number), *step, &case, &mut process, &mut model).await?;
        agree(&case, &process, &mut model).await?;
    }
    let end = |url| [Who::One, Who::Two].map(|who| Step::End(who, url, Terminal::Done));
    // No worker ends a URL that is parked for long.
    let rest = [Step::Resume, Step::Claim(Who::One)].into_iter().chain((0..URLS).flat_map(end));
    for step in rest.chain([Step::Open, Step::Close, Step::Cancel]) {
        if !model.status.is_over() {
            take(step, &case, &mut process, &mut model).await?;
            agree(&case, &process, &mut model).await?;
        }
    }
    assert!(model.status.is_over());
    Ok(())
}

/// Takes a step during a fault, which ends as soon as the engine has met it.
async fn take_despite<F>(
    fault: Option<F>,
    step: Step,
    case: &Case,
    process: &mut Process,
    model: &mut Model,
) -> Result<()> {
    let health = Arc::clone(&process.carrier.health);
    let until_met = async move {
        while fault.is_some() && health.trouble().is_none() {
            sleep(Duration::from_millis(1)).await;
        }
        drop(fault);
        pending().await
    };
    tokio::select! {
        biased;
        taken = take(step, case, process, model) => taken,
        never = until_met => never,
    }
}

async fn agree(case: &Case, process: &Process, model: &mut Model) -> Result<()> {
    let stats = process.carrier.stats(case).await?;
    model.check(&stats);
    for who in [Who::One, Who::Two] {
        let held = (0..URLS).filter(|url| model.held(who, *url).is_some()).count();
        assert_eq!(process.worker(who).frontier.activity().in_flight, held);
    }
    Ok(())
}

async fn take(step: Step, case: &Case, process: &mut Process, model: &mut Model) -> Result<()> {
    let is_going = !model.status.is_over();
    let health = Arc::clone(&process.carrier.health);
    let settlement = |url, disposition| vec![Settlement { message: case.message(url), disposition }];
    match step {
        Step::Open => {
            if let Some(before) = process.session.take() {
                before.abandon().await?;
            }
            match process.carrier.reopen(case, LONG).await {
                Ok(session) => {
                    assert!(is_going);
                    model.is_closed = false;
                    process.session = Some(session);
                }
                Err(error) => assert!(!is_going && error.kind == ErrorKind::Stale, "{error}"),
            }
        }
        Step::Close => {
            if let Some(session) = process.session.take() {
                goes(session.close().await, is_going);
                model.is_closed = true;
                model.settle();
            }
        }
        Step::Admit(first, count) => {
            if let Some(session) = &process.session {
                let numbers = (first..first + count).map(|number| number % URLS);
                let urls: Vec<NewWork> = numbers.clone().map(|number| case.new_work(number)).collect();
                if let Some(new) = goes(session.admit(&urls).await, is_going) {
                    assert_eq!(new, numbers.map(|number| model.admit(number)).collect::<Vec<_>>());
                }
            }
        }
        Step::Claim(who) => claim(who, case, process.worker(who), model).await,
        Step::Extend(who, url) => {
            if model.pages.contains_key(&url) {
                let message = case.message(url);
                let held = process.worker(who).frontier.extend(&[&message]).await?;
                assert_eq!(held, [model.extend(who, url)]);
            }
        }
        Step::Start(who, url) => {
            let claim = Claim { crawl: case.crawl.clone(), key: case.key(url) };
            assert_eq!(process.worker(who).frontier.start(&[claim]).await?, [model.start(who, url)]);
        }
        Step::PutAside { who, url, long, failed } => {
            // Each instant is different: parking until the same one repeats a call.
            let until = if long { much_later() } else { long_ago() }.plus(model.next_moment());
            model.park(who, url, long, failed);
            let disposition = delay(until, failed);
            assert!(
                process.worker(who).frontier.settle(settlement(url, disposition)).await?.ended.is_empty()
            );
        }
        Step::GiveBack(who, url) => {
            model.release(who, url);
            let disposition = Disposition::Release;
            assert!(
                process.worker(who).frontier.settle(settlement(url, disposition)).await?.ended.is_empty()
            );
        }
        Step::End(who, url, terminal) => {
            let expected = model.finish(who, url, terminal);
            let disposition = ends(case.ending(url, terminal));
            let settled = process.worker(who).frontier.settle(settlement(url, disposition)).await?;
            assert_eq!(settled.ended.len(), usize::from(expected));
        }
        Step::Leave(who) => {
            process.worker(who).frontier.release().await?;
            (0..URLS).for_each(|url| model.release(who, url));
            process.replace(who, case);
        }
        Step::Vanish(who) => {
            process.replace(who, case);
            let held = model.pages.values_mut().filter(|page| page.holder == Some(who));
            held.for_each(|page| page.holder = None);
        }
        Step::Pause => {
            let paused = health.retry("pausing", || process.carrier.control.pause(&case.crawl)).await;
            goes(paused, model.pause());
        }
        Step::Resume => {
            let resumed = health.retry("resuming", || process.carrier.control.resume(&case.crawl)).await;
            goes(resumed, model.resume());
        }
        Step::Cancel => {
            let cancelled = health.retry("cancelling", || process.carrier.control.cancel(&case.crawl)).await;
            goes(cancelled, model.cancel());
        }
        Step::Replay(url) => {
            let urls = [url];
            let replayed = health.retry("replaying", || process.carrier.replay(case, &urls)).await;
            if let Some(replayed) = goes(replayed, is_going) {
                assert_eq!(replayed, u64::from(model.replay(url)));
            }
        }
        Step::Crash => {}
    }
    Ok(())
}

/// Claims all available pages, and checks them against the model. Does not wait if there are none.
async fn claim(who: Who, case: &Case, worker: &Worker, model: &mut Model) {
    let expected: BTreeSet<usize> = (0..URLS).filter(|url| model.is_available(*url)).collect();
    if expected.is_empty() {
        return;
    }
    let claimed = worker.claim(expected.len()).await;
    assert_eq!(claimed.iter().map(number).collect::<BTreeSet<_>>(), expected);
    for claimed in &claimed {
        let Some(ClaimReply::Take { attempts, starts, .. }) = model.claim(who, number(claimed)) else {
            panic!("it is available");
        };
        assert_eq!((claimed.attempts, claimed.starts), (attempts, starts));
        assert_eq!(claimed.message.work, case.new_work(number(claimed)).work, "with all that a request says");
    }
}

/// Returns the value of a call that must succeed if `expected`, and else be `Stale` because the crawl is over.
fn goes<T: std::fmt::Debug>(result: Result<T>, expected: bool) -> Option<T> {
    match result {
        Ok(value) if expected => Some(value),
        Err(error) if !expected && error.kind == ErrorKind::Stale => None,
        other => panic!("{other:?}, where success is {expected}"),
    }
}
