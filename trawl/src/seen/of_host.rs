//! The URLs of a host, and the requests for them, that a spider may have seen, as far as they are stored.

use std::collections::BTreeSet;

use trawl_cli::Fail;
use trawl_common::frontier::Key;
use trawl_common::names::SpiderName;
use trawl_common::web::url::Host;

use crate::backend::Backend;

/// Returns the stored keys on a host. A packed set, and that of a state file, has only fingerprints of URLs;
/// for these, only remembered pages and failed URLs are found.
pub(super) async fn of_host(backend: &Backend, spider: &SpiderName, host: &Host) -> Result<Vec<Key>, Fail> {
    let mut found = BTreeSet::new();
    let mut add = |key: Key| {
        if key.page().is_some_and(|url| url.host() == *host) {
            found.insert(key);
        }
    };
    let pages = backend.pages();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let walk = pages.walk(spider, at).await?;
        walk.pages.into_iter().for_each(|(url, _)| add(url.into()));
        cursor = walk.next;
    }
    for stats in backend.stats.crawls().await?.into_iter().filter(|stats| stats.spider == *spider) {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let page = backend.control.failed(&stats.crawl_ref(), at).await?;
            page.failed.into_iter().for_each(|(key, _)| add(key));
            cursor = page.next;
        }
    }
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let seen = backend.stats.walk_seen(spider, at).await?;
        seen.urls.into_iter().for_each(&mut add);
        cursor = seen.next;
    }
    Ok(found.into_iter().collect())
}
