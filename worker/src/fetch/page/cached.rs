//! Returns the response to a URL: from the response cache, or from its host.

use std::sync::Arc;

use tracing::debug;
use trawl_common::frontier::outcome::{Outcome, Skip};
use trawl_common::host_schedules::HostPermit;
use trawl_common::metrics;
use trawl_common::spider;
use trawl_common::time::UnixMs;
use trawl_common::web::freshness::lifetime;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_web::{MAX_REDIRECTS, Trail};

use super::history::RememberedPage;
use super::response::{Wanted, fetch, leads_to_known};
use crate::claimed::ClaimedUrl;
use crate::fetch::Fetching;
use crate::schedule::sessions::Visit;

/// Returns the response to a claimed URL, or the outcome of the URL without one.
pub(super) async fn response(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    history: &RememberedPage,
    permit: HostPermit,
    visit: Option<&Arc<Visit>>,
) -> Result<Response, Outcome> {
    let url = claimed.url.clone();
    let settings = &fetching.context.settings.cache;
    // A response to one spider's own request must not be used for another.
    let has_own = claimed.spider.spider.request != spider::Request::default()
        || claimed.spider.spider.proxies.is_some()
        || claimed.spider.session.is_some();
    let is_own = claimed.own_request().is_some() || has_own;
    if settings.ttl.is_zero() || is_own {
        return fetch(fetching, claimed, Wanted::Page(history), permit, visit).await;
    }
    if let Some(response) = cached(fetching, claimed, history).await {
        return match &response.redirected_to {
            Some(page) if leads_to_known(fetching, claimed, page).await? => {
                Err(Outcome::Skipped(Skip::Duplicate))
            }
            _ => Ok(response),
        };
    }
    let response = fetch(fetching, claimed, Wanted::Page(history), permit, visit).await?;
    let ttl = settings.keeps(lifetime(&response.headers, response.fetched_at));
    if let Err(error) = fetching.cache.put(&url, &response, ttl).await {
        debug!(%error, "response not cached");
    }
    Ok(response)
}

/// Returns the cached response for a claimed URL, if it may be used. The cache is optional: its errors count as misses.
async fn cached(fetching: &Fetching, claimed: &ClaimedUrl, history: &RememberedPage) -> Option<Response> {
    // A page that failed before might fail again if it is cached.
    if claimed.attempts > 0 {
        return None;
    }
    let response = fetching.cache.get(&claimed.url).await.ok().flatten().filter(|response| {
        history.may_use_cached(response)
            && claimed.spider.bans.by_page(response).is_none()
            && response.redirected_to.as_ref().is_none_or(|page| may_be_led(fetching, claimed, page))
    });
    metrics::cache_looked_up(response.is_some());
    // Items need a time. Its age is unknown and does not matter here, so it counts as fetched now.
    response.map(|response| match response.fetched_at {
        Response::UNKNOWN => Response { fetched_at: UnixMs::now(), ..response },
        _ => response,
    })
}

/// Whether redirects may lead from a claimed URL to this page, which they did for another: its spider may go there, the
/// pace of the host is the one by which the URL was scheduled, and its robots.txt is known to allow it.
fn may_be_led(fetching: &Fetching, claimed: &ClaimedUrl, page: &CanonicalUrl) -> bool {
    let ClaimedUrl { url, spider, .. } = claimed;
    let mut trail = Trail::at(url.clone(), None, MAX_REDIRECTS);
    let may_ask =
        || fetching.scheduling.asker.host_policy(&spider.politeness, &spider.robots_name, page).is_ok();
    page.host() == url.host() && trail.follow(page.clone(), &spider.scope).is_ok() && may_ask()
}
