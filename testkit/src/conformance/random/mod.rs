//! A model test: whatever two workers, a producer and an operator do to a few URLs, repeatedly and in any
//! order, an engine answers as a model of a page does, and its stats agree.

mod model;
mod step;

use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{ErrorKind, NewWork, Result};
use trawl_engine::Lease;

pub(super) use self::model::Model;
pub use self::step::{Step, Who, steps};
pub(super) use self::step::{URLS, url, who};
use super::control::ControlPorts;
use super::fixture::{Case, Fixture, long_ago, much_later};

/// Takes `steps` on the engine that `connect` returns, which is called again after each [`Step::Crash`], and then ends
/// the remaining URLs.
///
/// # Panics
/// If the engine departs from the model.
pub async fn obeys_the_model(
    mut connect: impl AsyncFnMut() -> Result<ControlPorts>,
    steps: &[Step],
) -> Result<()> {
    let mut ports = connect().await?;
    let case = Case::new();
    let mut lease = Some(Fixture::with(&ports.frontier, case.clone()).begin(0).await?);
    let mut model = Model::new();
    for step in steps {
        if matches!(step, Step::Crash) {
            drop(ports);
            ports = connect().await?;
            lease = None;
            // Workers keep the URLs that they held until their leases expire, which takes longer than the test.
        }
        let fixture = Fixture::with(&ports.frontier, case.clone());
        take(*step, &ports, &fixture, &mut lease, &mut model).await?;
        agree(&fixture, &model).await?;
    }
    let fixture = Fixture::with(&ports.frontier, case.clone());
    take(Step::Resume, &ports, &fixture, &mut lease, &mut model).await?;
    let ends = |url| [Step::Claim(Who::One, url), finish(Who::One, url), finish(Who::Two, url)];
    // No worker ends a URL that is parked for long.
    for step in (0..URLS).flat_map(ends).chain([Step::Open, Step::Close, Step::Cancel]) {
        if !model.status.is_over() {
            take(step, &ports, &fixture, &mut lease, &mut model).await?;
            agree(&fixture, &model).await?;
        }
    }
    assert!(model.status.is_over());
    Ok(())
}

fn finish(who: Who, url: usize) -> Step {
    Step::Finish(who, url, Terminal::Done)
}

async fn agree(fixture: &Fixture<'_>, model: &Model) -> Result<()> {
    model.check(&fixture.crawl_stats().await?);
    Ok(())
}

/// Returns the value of a call that must succeed if `expected`, and else be `Stale` because the crawl is over.
pub(super) fn goes<T: std::fmt::Debug>(result: Result<T>, expected: bool) -> Option<T> {
    match result {
        Ok(value) if expected => Some(value),
        Err(error) if !expected && error.kind == ErrorKind::Stale => None,
        other => panic!("{other:?}, where success is {expected}"),
    }
}

async fn take(
    step: Step,
    ports: &ControlPorts,
    fixture: &Fixture<'_>,
    lease: &mut Option<Lease>,
    model: &mut Model,
) -> Result<()> {
    let worker = |who| if who == Who::One { &fixture.worker } else { &fixture.other };
    let is_going = !model.status.is_over();
    match step {
        Step::Open => {
            if let Some(taken) = goes(fixture.open().await, is_going) {
                model.is_closed = false;
                *lease = Some(taken);
            }
        }
        Step::Close => {
            if let Some(lease) = lease.take() {
                let closed = fixture.frontier.close(lease, None).await;
                // A cancelled crawl has no sources to end.
                assert!(closed.is_ok() || !is_going);
                model.is_closed = true;
                model.settle();
            }
        }
        Step::Admit(first, count) => {
            if let Some(lease) = lease {
                let numbers = (first..first + count).map(|number| number % URLS);
                let urls: Vec<NewWork> = numbers.clone().map(|number| fixture.new_work(number)).collect();
                if let Some(new) = goes(fixture.frontier.admit(lease, &urls).await, is_going) {
                    assert_eq!(new, numbers.map(|number| model.admit(number)).collect::<Vec<_>>());
                }
            }
        }
        Step::Confirm(url) => fixture.frontier.confirm(&fixture.crawl, &[fixture.key(url)]).await?,
        Step::Claim(who, url) => {
            let reply = fixture.claim(worker(who), url).await?;
            match model.claim(who, url) {
                Some(expected) => assert_eq!(reply, expected),
                None => assert!(matches!(reply, ClaimReply::Wait { .. }), "{reply:?}"),
            }
        }
        Step::Extend(who, url) => {
            let expected = model.extend(who, url);
            assert_eq!(fixture.extend(worker(who), url).await?, expected);
        }
        Step::Start(who, url) => {
            assert_eq!(fixture.start(worker(who), url).await?, model.start(who, url));
        }
        Step::Park { who, url, long, failed } => {
            // Each instant is different: parking until the same one repeats a call.
            let until = if long { much_later() } else { long_ago() }.plus(model.next_moment());
            let expected = model.park(who, url, long, failed);
            assert_eq!(fixture.park(worker(who), url, until, failed).await?, expected);
        }
        Step::Release(who, url) => {
            fixture.release(worker(who), url).await?;
            model.release(who, url);
        }
        Step::Finish(who, url, terminal) => {
            let expected = model.finish(who, url, terminal);
            assert_eq!(fixture.end(worker(who), url, terminal).await?, expected);
        }
        Step::Pause => drop(goes(ports.control.pause(&fixture.crawl).await, model.pause())),
        Step::Resume => drop(goes(ports.control.resume(&fixture.crawl).await, model.resume())),
        Step::Cancel => drop(goes(ports.control.cancel(&fixture.crawl).await, model.cancel())),
        Step::Replay(url) => {
            let replayed = ports.frontier.replay(&fixture.crawl, &fixture.crawl, &[fixture.key(url)]).await;
            if let Some(messages) = goes(replayed, is_going) {
                assert_eq!(messages.len(), usize::from(model.replay(url)));
            }
        }
        Step::Sweep => {
            let swept = fixture.frontier.sweep(&fixture.worker).await?;
            for message in swept.lost.iter().filter(|message| message.crawl == fixture.crawl) {
                let url = (0..URLS).find(|&url| fixture.key(url) == message.key());
                assert!(url.is_some_and(|url| model.sweep(url)), "nothing else is lost so soon: {message:?}");
            }
        }
        Step::Crash => {}
    }
    Ok(())
}
