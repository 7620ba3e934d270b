//! Which page a page is: another one may be known as this one, or stand for it.

use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;

use crate::job::Job;
use crate::shared::Shared;

/// Whether `page` was seen, to which a redirect or a canonical link of `from` leads.
pub(super) async fn is_known(
    shared: &Shared,
    crawl: &CrawlRef,
    from: &CanonicalUrl,
    page: &CanonicalUrl,
) -> bool {
    let mut names = vec![page.clone(), seen_as(page.clone(), from)];
    names.dedup();
    for name in &names {
        if shared.frontier.has_seen(crawl, name).await {
            return true;
        }
    }
    false
}

/// As what `page` counts as seen when `from` led there. Within a registrable domain that is the page itself. Another site claims
/// no page: only what leads there from elsewhere is not followed twice.
pub(super) fn seen_as(page: CanonicalUrl, from: &CanonicalUrl) -> CanonicalUrl {
    let is_of_one_site = HostKey::domain(&page.host()) == HostKey::domain(&from.host());
    if is_of_one_site { page } else { page.led_to_from_elsewhere() }
}

/// What a page is beside the one that it names as canonical.
pub(super) enum Form {
    /// Itself.
    Own,
    /// That page, which was not seen so far: what this one says stands for it.
    Of(CanonicalUrl),
    /// Another form of a page that has its own items.
    Known,
}

/// One that names another page is that page, unless the spider does not go there. The answer to a request is always itself.
pub(super) async fn form(shared: &Shared, job: &Job, canonical: Option<CanonicalUrl>) -> Form {
    let Job { url, message: Message { crawl, .. }, spider, .. } = job;
    let Some(canonical) = canonical.filter(|canonical| {
        job.request().is_none() && canonical != url && spider.scope.follows(url, canonical, 0)
    }) else {
        return Form::Own;
    };
    match is_known(shared, crawl, url, &canonical).await {
        true => Form::Known,
        false => Form::Of(canonical),
    }
}
