//! Has a browser render a fetched page.

use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::outcome::{Class, Outcome, Skip};
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::spider::Render;
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::sniff::is_html;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extraction, RenderRule, Rendering};
use trawl_web::NoPage;

use super::failed;
use super::response::leads_to_known;
use crate::claimed::ClaimedUrl;
use crate::fetch::Fetching;
use crate::proxy::User;
use crate::proxy::page::OnBehalf;
use crate::render::{RenderReport, Unrendered};
use crate::schedule::polite::AsSpider;
use crate::schedule::sessions::Visit;

/// Name in the log and in the health report.
const RENDERING: &str = "rendering pages";

/// Time without a repetition after which browsers count as working again.
const RECOVERY_TIME: Duration = Duration::from_secs(30);

/// Whether a browser may be to render this page.
pub(super) fn may_be_rendered(claimed: &ClaimedUrl, response: &Response) -> bool {
    is_for_browsers(claimed, response)
        && rendering(claimed, response).is_none_or(|rendering| rendering.is_wanted)
}

/// Returns the rule by which a browser renders this page before it is read; `None` if none does.
pub(super) fn rule_unread(claimed: &ClaimedUrl, response: &Response) -> Option<RenderRule> {
    let rendering = rendering(claimed, response).filter(|_| is_for_browsers(claimed, response))?;
    rendering.is_wanted.then_some(rendering.rule)
}

/// Returns the rule by which a browser renders this page after it was read as it was sent; `None` if none does.
pub(super) fn rule_once_read(
    claimed: &ClaimedUrl,
    response: &Response,
    read: &Extraction,
) -> Option<RenderRule> {
    if !may_be_rendered(claimed, response) {
        return None;
    }
    let Rendering { rule, is_wanted } = claimed.spider.extractor.rendering_once_read(response, read);
    let is_promising =
        || rule.render == Render::Always || claimed.spider.gains.is_promising(read.kind, &claimed.url);
    (is_wanted && is_promising()).then_some(rule)
}

/// Whether it is an HTML page of a spider that has a browser.
fn is_for_browsers(claimed: &ClaimedUrl, response: &Response) -> bool {
    claimed.spider.passage.is_some() && is_html(response.content_type(), &response.body)
}

/// Returns the decision about an HTML page, if it can be made before the page is read.
fn rendering(claimed: &ClaimedUrl, response: &Response) -> Option<Rendering> {
    let request = claimed.message.work.request().map(|request| &**request);
    claimed.spider.extractor.rendering(&claimed.url, response, request)
}

/// Returns the response with the document that a page's scripts leave after the steps of this rule. Scripts that lead
/// elsewhere count as a redirect; steps may lead several pages to one URL.
pub(super) async fn rendered(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    response: Response,
    rule: RenderRule,
    visit: Option<&Arc<Visit>>,
) -> Result<Response, Outcome> {
    let Some(passage) = claimed.spider.passage.clone() else { return Ok(response) };
    let spider = &claimed.spider;
    let fetcher = match visit {
        Some(visit) => spider.apart.in_session(Arc::clone(visit) as _),
        None => spider.apart.clone(),
    };
    let (politeness, robots_name) = (spider.politeness.clone(), spider.robots_name.clone());
    let user = User { own: AsSpider { fetcher, politeness, robots_name }, passage };
    let (crawl, scope) = (Some(claimed.message.crawl.clone()), spider.scope.clone());
    let on_behalf = OnBehalf { user, crawl, scope };
    let (url, before) = (claimed.url.clone(), response.redirected_to.clone());
    let watched = fetching.watch.over(&claimed.message);
    let (steps, mut report) = (Arc::clone(spider.extractor.steps(rule)), RenderReport::default());
    let own = before.as_ref().unwrap_or(&url);
    let rendering = fetching.renderer.render(on_behalf, own, response, &steps, &mut report);
    let rendered = tokio::select! {
        biased;
        rendered = rendering => rendered,
        () = watched.lost() => return Err(Outcome::Republish),
    };
    let rendered = rendered.map_err(|unrendered| outcome(fetching, claimed, unrendered))?;
    // Scripts may lead back.
    let redirected_to = rendered.redirected_to.filter(|page| *page != url);
    let rendered = Response { redirected_to, ..rendered };
    let is_led = |page: &&CanonicalUrl| steps.is_empty() && Some(*page) != before.as_ref();
    match rendered.redirected_to.as_ref().filter(is_led) {
        Some(page) if leads_to_known(fetching, claimed, page).await? => {
            Err(Outcome::Skipped(Skip::Duplicate))
        }
        _ => Ok(rendered),
    }
}

/// Returns the outcome of a page that is not rendered. One that is not to blame comes back as if it had not been
/// fetched.
fn outcome(fetching: &Fetching, claimed: &mut ClaimedUrl, unrendered: Unrendered) -> Outcome {
    match unrendered {
        Unrendered::NoPage(NoPage::Failed(failure)) if failure.class == Class::Crash => {
            claimed.failed_for_now(&fetching.context.settings.retry, failure)
        }
        Unrendered::NoPage(NoPage::Failed(failure)) => failed(fetching, claimed, failure),
        Unrendered::NoPage(NoPage::OutOfScope(_) | NoPage::Unread(_)) => Outcome::Skipped(Skip::Scope),
        Unrendered::Later(why, after) => {
            let error = Error::new(ErrorKind::Unavailable, why);
            fetching.context.health.report_recent_failure(RENDERING, &error, RECOVERY_TIME);
            (claimed.message.slot, claimed.message.turn) = (None, None);
            Outcome::Snooze { until: UnixMs::now().plus(after.mul_f64(rand::random_range(1.0..2.0))) }
        }
    }
}
