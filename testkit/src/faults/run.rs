//! One run: a crawl, faults while it lasts, and the ledger at its end.

use std::io;

use tokio::time::sleep;

use super::environment::{Environment, Past};
use super::kind::Kind;
use super::ledger::Injected;
use super::options::Options;
use super::outcome::Outcome;
use super::plan;

/// Runs a crawl through its faults.
///
/// # Errors
/// If the suite itself fails, such as a server that does not start or a file that cannot be read.
pub async fn run(options: &Options) -> io::Result<Outcome> {
    let mut environment = Environment::set_up(options).await?;
    environment.crawl_before().await?;
    environment.produce();
    let kinds: Vec<Kind> =
        options.kinds.iter().copied().filter(|kind| options.scenario.takes(*kind)).collect();
    let steps = plan::draw(options.seed, options.faults, options.pages, &kinds);
    let mut faults: Vec<Injected> = Vec::with_capacity(steps.len());
    // The latest of the faults that the fleet needs time to recover from.
    let (mut loss, mut worker): (Option<Past>, Option<Past>) = (None, None);
    for step in &steps {
        if !environment.comes_to(step.after).await {
            break;
        }
        sleep(step.pause).await;
        for earlier in [&loss, &worker].into_iter().flatten() {
            if !step.kind.may_follow(earlier.fault.kind) {
                environment.mends(earlier, step.kind).await;
            }
        }
        let fault = environment.injector.inject(step, &environment.fleet, &environment.timeline).await?;
        faults.push(fault);
        let past = Some(Past { fault, announced: environment.announced() });
        if fault.kind.loses_data() {
            loss = past;
        } else if fault.kind.takes_worker() {
            worker = past;
        }
        environment.recovers(&fault).await;
    }
    let missed = steps[faults.len()..].iter().map(|step| step.kind).collect();
    Ok(Outcome { missed, ..environment.ends(faults).await? })
}
