//! The identity of a page: it may be known as another page, or represent it.

use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Outcome;
use trawl_common::names::CrawlRef;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;

use crate::claimed::ClaimedUrl;
use crate::claimed::settlement::aborted;
use crate::fetch::Fetching;

/// Whether `page`, to which a redirect or a canonical link of `from` leads, was seen before.
pub(super) async fn is_known(
    fetching: &Fetching,
    crawl: &CrawlRef,
    from: &CanonicalUrl,
    page: &CanonicalUrl,
) -> Result<bool, Outcome> {
    let mut names = vec![page.clone(), seen_as(page.clone(), from)];
    names.dedup();
    for name in &names {
        let is_seen = fetching.frontier.has_seen(crawl, name).await;
        if is_seen.map_err(|error| aborted(&fetching.context.health, error))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the URL to mark as seen when `from` led to `page`. Within a registrable domain that is the page
/// itself. Another site cannot claim a page; it is only ensured that links to it from elsewhere are not
/// followed twice.
pub(super) fn seen_as(page: CanonicalUrl, from: &CanonicalUrl) -> CanonicalUrl {
    let is_of_one_site = HostKey::domain(&page.host()) == HostKey::domain(&from.host());
    if is_of_one_site { page } else { page.led_to_from_elsewhere() }
}

/// The relation of a page to the one that it names as canonical.
pub(super) enum Form {
    /// It is the canonical page.
    Own,
    /// It represents this canonical page, which was not seen so far.
    Of(CanonicalUrl),
    /// It is another form of a page that has its own items.
    Known,
}

/// Returns the relation of a URL's page to its canonical URL. A page counts as its canonical one unless the
/// spider does not follow that. The response to a request always counts as itself.
pub(super) async fn form(
    fetching: &Fetching,
    claimed: &ClaimedUrl,
    canonical: Option<CanonicalUrl>,
) -> Result<Form, Outcome> {
    let ClaimedUrl { url, message: Message { crawl, .. }, spider, .. } = claimed;
    let Some(canonical) = canonical.filter(|canonical| {
        claimed.request().is_none() && canonical != url && spider.scope.follows(url, canonical, 0)
    }) else {
        return Ok(Form::Own);
    };
    Ok(match is_known(fetching, crawl, url, &canonical).await? {
        true => Form::Known,
        false => Form::Of(canonical),
    })
}
