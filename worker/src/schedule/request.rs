//! Requests slots of hosts for URLs, and handles the decisions.

use std::ops::Range;
use std::time::Duration;

use trawl_common::frontier::outcome::{Outcome, Skip};
use trawl_common::host_schedules::{Decision, HostPermit, HostRequest};
use trawl_common::metrics;
use trawl_common::politeness::gcra::Standing;
use trawl_common::politeness::waiting::{SOON, not_before, waitlisted};
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;
use trawl_common::web::url::Origin;

use super::Scheduling;
use super::robots_memory::NotAllowed;
use crate::claimed::ClaimedUrl;
use crate::claimed::settlement::aborted;
use crate::telemetry::idle_reasons::Why;

/// A URL in a waitlist stays away for this part of its wait at least: so how many of a host come back in a second to
/// look depends on the host's rate, and not on how many wait.
const LEAST_PART: Range<f64> = 0.125..0.1875;

/// Why a URL's host is not asked for a slot.
pub(super) enum NoHostRequest {
    /// A slot is reserved, and it was snoozed to wait for it.
    Reserved { slot: UnixMs, until: UnixMs },
    /// It was snoozed until this instant.
    PutAside(UnixMs),
    /// The origin's robots.txt has to be known first.
    Robots(Origin),
    /// It must not be fetched.
    Never(Outcome),
}

/// Returns the request for a slot of a URL's host.
pub(super) fn prepare(
    scheduling: &Scheduling,
    claimed: &ClaimedUrl,
    now: UnixMs,
) -> std::result::Result<HostRequest, NoHostRequest> {
    let message = &claimed.message;
    if let Some(until) = not_before(message.until, message.slot, message.turn, now) {
        return Err(match message.slot {
            Some(slot) => NoHostRequest::Reserved { slot, until },
            None => NoHostRequest::PutAside(until),
        });
    }
    let (url, spider) = (claimed.target(), &claimed.spider);
    let policy = scheduling.asker.host_policy(&spider.politeness, &spider.robots_name, url);
    let policy = policy.map_err(|why| match why {
        NotAllowed::Forbidden => NoHostRequest::Never(Outcome::Skipped(Skip::Robots)),
        NotAllowed::Unreadable(failure) => {
            NoHostRequest::Never(claimed.failed(&scheduling.context.settings.retry, failure))
        }
        NotAllowed::Unknown => NoHostRequest::Robots(url.origin()),
    })?;
    Ok(HostRequest {
        slot: message.slot,
        standing: Standing::new(message.turn.map(|(turn, _)| turn)),
        deadline: message.deadline,
        waits_for_host_only: claimed.waits_for_host_only,
        ..HostRequest::new(&policy)
    })
}

/// Requests slots for many URLs.
pub(super) async fn ask_hosts(scheduling: &Scheduling, requests: &[HostRequest]) -> Result<Vec<Decision>> {
    let decisions = scheduling.asker.schedules.ask_hosts(requests).await?;
    requests.iter().zip(&decisions).for_each(|(request, decision)| note(scheduling, request, decision));
    Ok(decisions)
}

/// Requests permission to follow a redirect of a URL that is being fetched. It does not wait for a slot: a URL that its
/// host does not admit at once comes back.
pub(crate) async fn ask(
    scheduling: &Scheduling,
    claimed: &mut ClaimedUrl,
) -> std::result::Result<HostPermit, Outcome> {
    let mut request = match prepare(scheduling, claimed, UnixMs::now()) {
        Ok(request) => request,
        Err(NoHostRequest::Never(outcome)) => return Err(outcome),
        Err(NoHostRequest::PutAside(until) | NoHostRequest::Reserved { until, .. }) => {
            return Err(Outcome::Snooze { until });
        }
        // It is requested without a fetch permit.
        Err(NoHostRequest::Robots(_)) => return Err(Outcome::Snooze { until: UnixMs::now() }),
    };
    let addresses = claimed.spider.fetcher.addresses(&claimed.target().host()).await;
    match scheduling.asker.schedules.ask(&mut request, &addresses, SOON).await {
        Ok(decision) => {
            note(scheduling, &request, &decision);
            decided(claimed, decision)
        }
        Err(error) => Err(aborted(&scheduling.context.health, error)),
    }
}

/// Returns the permit, or the outcome of a URL without one.
pub(super) fn decided(
    claimed: &mut ClaimedUrl,
    decision: Decision,
) -> std::result::Result<HostPermit, Outcome> {
    let now = UnixMs::now();
    let message = &mut claimed.message;
    match decision {
        Decision::Go(permit) => Ok(permit),
        Decision::At { wait, slot } => {
            (message.slot, message.turn) = (Some(slot), None);
            Err(Outcome::Snooze { until: now.plus(wait) })
        }
        Decision::Later { wait, turn } => {
            let (away, turn) = waitlisted(wait, turn, message.turn, rand::random());
            let away = away.max(wait.mul_f64(rand::random_range(LEAST_PART)));
            (message.slot, message.turn) = (None, Some(turn));
            Err(Outcome::Snooze { until: now.plus(away) })
        }
        Decision::Crowded { wait } => {
            (message.slot, message.turn) = (None, None);
            Err(Outcome::Snooze { until: now.plus(wait) })
        }
        Decision::TooLate => Err(Outcome::Expired),
        Decision::Blocked => Err(Outcome::Skipped(Skip::Blocked)),
    }
}

fn note(scheduling: &Scheduling, request: &HostRequest, decision: &Decision) {
    match decision {
        Decision::Go(_) if request.slot.is_none() => metrics::slot_given(Duration::ZERO),
        Decision::At { wait, .. } if request.slot.is_none() => metrics::slot_given(*wait),
        _ => {}
    }
    if let Decision::At { wait, .. } | Decision::Later { wait, .. } = decision
        && !request.pace.interval.is_zero()
    {
        scheduling.idle_reasons.note_wait(
            &request.key,
            UnixMs::now().plus(*wait),
            Why::Pace(request.pace.interval),
        );
    }
}
