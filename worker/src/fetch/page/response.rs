//! Requests a URL of its host, and follows redirects one by one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use trawl_common::frontier::outcome::{Failure, Outcome, Skip};
use trawl_common::host_schedules::HostPermit;
use trawl_common::metrics;
use trawl_common::time::UnixMs;
use trawl_common::trace;
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_web::{Answer, Fetcher, MAX_REDIRECTS, NoPage, Redirect, Trail};

use super::failed;
use super::history::RememberedPage;
use super::identity::is_known;
use super::transfer::Transfer;
use crate::claimed::ClaimedUrl;
use crate::fetch::Fetching;
use crate::schedule;
use crate::schedule::sessions::Visit;
use crate::schedule::{apart, backoff, blameless};
use crate::spiders::LoadedSpider;

/// Whether a page to which a redirect leads is another one that was seen.
pub(super) async fn leads_to_known(
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    page: &CanonicalUrl,
) -> Result<bool, Outcome> {
    let ClaimedUrl { url, message, .. } = claimed;
    // A target that is canonically the same page is requested nevertheless, because servers insist on it.
    let page = claimed.spider.spider.urls.canonical(page.clone());
    let is_plain = message.work.url().is_some();
    Ok(is_plain && page != *url && is_known(fetching, &message.crawl, url, &page).await?)
}

/// The purpose of the body of a response.
pub(super) enum Wanted<'a> {
    /// A page, whose remembered state is this.
    Page(&'a RememberedPage),
    /// A file, which is written as it arrives, to the store of this name.
    File(&'a mut Transfer, &'a str),
}

impl Wanted<'_> {
    /// Asks for the target of a URL once.
    async fn ask(&mut self, fetcher: &Fetcher, claimed: &ClaimedUrl) -> Result<Answer, Failure> {
        let hop = claimed.message.hop.as_ref();
        match (self, claimed.request()) {
            (Self::File(transfer, _), _) => transfer.ask(fetcher, hop).await,
            (Self::Page(_), Some(request)) => fetcher.ask_for(request, hop).await,
            (Self::Page(history), None) => {
                let redirect = hop.filter(|hop| hop.count > 0).map(|hop| &hop.url);
                fetcher.ask(claimed.target(), &history.validators_for(redirect)).await
            }
        }
    }

    /// Returns the time until the response began, if its body took time of its own.
    fn latency(&self) -> Option<Duration> {
        match self {
            Self::Page(_) => None,
            Self::File(transfer, _) => transfer.latency(),
        }
    }

    /// Returns the outcome of a URL whose file cannot be written, or is not wanted after all.
    fn outcome(&mut self, fetching: &Fetching, claimed: &mut ClaimedUrl) -> Option<Outcome> {
        match self {
            Self::Page(_) => None,
            Self::File(transfer, store) => transfer.outcome(fetching, claimed, store),
        }
    }
}

/// Requests the URL, and follows redirects as long as their hosts have a slot at once. The response for a file has no
/// body.
pub(super) async fn fetch(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    mut wanted: Wanted<'_>,
    mut permit: HostPermit,
    visit: Option<&Arc<Visit>>,
) -> Result<Response, Outcome> {
    loop {
        let answer = ask(fetching, claimed, &mut wanted, &permit, visit).await?;
        let _held = judge(fetching, claimed, &answer, permit, visit).await?;
        if let Some(outcome) = wanted.outcome(fetching, claimed) {
            return Err(outcome);
        }
        match answer {
            Ok(Answer::Page(response)) => {
                if let Some(refusal) = trawl_web::refusal(&response) {
                    backoff::leave_alone(&fetching.scheduling, claimed, &refusal).await?;
                }
                let redirected_to = claimed.redirected_to();
                claimed.message.hop = None;
                return Ok(Response { redirected_to, ..response });
            }
            Ok(Answer::NotModified) => {
                visit.iter().for_each(|visit| visit.prove());
                return Err(Outcome::Skipped(Skip::Unchanged));
            }
            Ok(Answer::Unread { .. }) => return Err(Outcome::Skipped(Skip::ContentType)),
            Ok(Answer::Redirect(next)) => permit = follow(fetching, claimed, &wanted, next).await?,
            Err(failure) if failure.is_refusal() => {
                return Err(backoff::left_alone(&fetching.scheduling, claimed, failure).await);
            }
            Err(failure) => return Err(failed(fetching, claimed, failure)),
        }
    }
}

/// Requests the target of a URL once, and measures it.
async fn ask(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    wanted: &mut Wanted<'_>,
    permit: &HostPermit,
    visit: Option<&Arc<Visit>>,
) -> Result<Result<Answer, Failure>, Outcome> {
    if permit.has_lapsed() {
        return Err(snooze(claimed, UnixMs::now()));
    }
    let target = claimed.target();
    let domain = HostKey::domain(&target.host());
    permit.wait_to_send().await;
    let begun = Instant::now();
    let asking = apart::ask(&fetching.scheduling.domains, &claimed.spider, domain, async |fetcher| {
        let in_session = visit.map(|visit| fetcher.in_session(Arc::clone(visit) as _));
        let fetcher = in_session.as_ref().unwrap_or(fetcher);
        wanted.ask(fetcher, claimed).await
    });
    let answer = match asking.await {
        Ok(answer) => answer,
        Err(until) => return Err(snooze(claimed, until)),
    };
    let took = begun.elapsed();
    fetching.latencies.note(wanted.latency().unwrap_or(took));
    metrics::fetched(backoff::status(&answer), took);
    let redirects = claimed.message.hop.as_ref().map_or(0, |hop| hop.count);
    trace::fetched(claimed.message.trace.as_deref(), target, redirects, status_or_class(&answer), took);
    Ok(answer)
}

/// Ends the permit of an answer, and returns the outcome of the URL if the answer is about its session, its host or
/// this machine instead of the page. An unwelcome answer counts as in flight until what is returned is dropped.
async fn judge(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    answer: &Result<Answer, Failure>,
    permit: HostPermit,
    visit: Option<&Arc<Visit>>,
) -> Result<Option<HostPermit>, Outcome> {
    let sign = visit.and_then(|_| lapse(&claimed.spider, answer));
    let ban = trawl_web::ban(&claimed.spider.bans, answer).filter(|_| sign.is_none());
    let held = permit.end(backoff::is_welcome(answer, ban.as_ref()));
    if let (Some(visit), Some(sign)) = (visit, sign) {
        return Err(fetching.sessions.lapsed(claimed, visit, &sign));
    }
    if let Some(ban) = ban {
        return Err(backoff::banned(&fetching.scheduling, claimed, ban).await);
    }
    match blameless::put_off(&fetching.scheduling, &claimed.spider, answer) {
        Some(until) => Err(snooze(claimed, until)),
        None => Ok(held),
    }
}

/// Returns the outcome of a URL that is to be tried again at `until`, and is then given another slot.
fn snooze(claimed: &mut ClaimedUrl, until: UnixMs) -> Outcome {
    (claimed.message.slot, claimed.message.turn) = (None, None);
    Outcome::Snooze { until }
}

/// Returns the sign in a response that its session has lapsed, if there is one without reading the page.
fn lapse(spider: &LoadedSpider, answer: &Result<Answer, Failure>) -> Option<String> {
    let signs = &spider.session.as_ref()?.login.as_ref()?.signs;
    match answer {
        Ok(Answer::Page(response)) => signs.by_page(response),
        Ok(Answer::Redirect(to)) => signs.by_url(&to.target),
        Ok(Answer::Unread { status, .. }) => signs.by_status(*status),
        Ok(Answer::NotModified) => None,
        Err(failure) => signs.by_status(failure.status?),
    }
}

/// Returns the status of a response, or the class of its failure.
fn status_or_class(answer: &Result<Answer, Failure>) -> Result<Option<u16>, &'static str> {
    match answer {
        Err(failure) if failure.status.is_none() => Err(failure.class.as_str()),
        answer => Ok(backoff::status(answer)),
    }
}

/// Returns the permit to continue at `next`: it is scheduled like any URL, unless it was requested already. If a
/// request is redirected, the response belongs to that request.
async fn follow(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    wanted: &Wanted<'_>,
    next: Redirect,
) -> Result<HostPermit, Outcome> {
    let mut trail = Trail::at(claimed.url.clone(), claimed.message.hop.clone(), MAX_REDIRECTS);
    let followed = match wanted {
        Wanted::Page(_) => trail.follow(next.clone(), &claimed.spider.scope),
        // A file may be on any host.
        Wanted::File(..) => trail.go(next.clone()).map_err(NoPage::from),
    };
    match followed {
        Ok(()) => {}
        Err(NoPage::Failed(failure)) => return Err(failed(fetching, claimed, failure)),
        Err(NoPage::OutOfScope(_) | NoPage::Unread(_)) => return Err(Outcome::Skipped(Skip::Scope)),
    }
    if leads_to_known(fetching, claimed, &next.target.normalised()).await? {
        return Err(Outcome::Skipped(Skip::Duplicate));
    }
    let message = &mut claimed.message;
    message.hop = trail.into_hop();
    (message.slot, message.turn, message.until) = (None, None, None);
    schedule::ask(&fetching.scheduling, claimed).await
}
