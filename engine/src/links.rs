//! Admits the links of pages into the records.

use std::collections::BTreeMap;

use trawl_common::frontier::Taken;
use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::frontier::trace::Trace;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Claim, Fatal, NewWork, one_each};
use trawl_common::trace::Admission;

use crate::member::Member;
use crate::outbox::{self, Tries};
use crate::records::{Linked, Linking};

/// The part of a page's links that the records accepted.
pub(crate) struct Admitted {
    /// The accepted links, in order.
    pub(crate) links: Vec<NewWork>,
    /// The number of links left out.
    pub(crate) left_out: LeftOut,
}

/// Admits the URLs that pages and tasks submit to other spiders, and publishes and confirms the new ones.
/// Repeating the call admits none twice.
pub(crate) async fn admit_elsewhere(member: &Member, asked: Vec<(SpiderName, NewWork)>) -> Result<(), Fatal> {
    let Member { records, broker, health, .. } = member;
    let mut by_crawl: BTreeMap<CrawlRef, Vec<NewWork>> = BTreeMap::new();
    for (spider, new) in asked {
        by_crawl.entry(CrawlRef::adhoc_of(spider)).or_default().push(new);
    }
    for (crawl, urls) in by_crawl {
        let admitting = async || one_each(records.take_in(&crawl, &urls).await?, urls.len(), "URLs");
        let new = health.insist("admitting for another spider", admitting).await?;
        let new = urls.iter().zip(new).filter(|(_, new)| *new);
        let messages = new.map(|(url, _)| url.message(&crawl)).collect();
        outbox::send(&**records, &**broker, messages, Tries::Repeated(health)).await.map_err(Fatal)?;
    }
    Ok(())
}

/// Admits the links of pages, and publishes and confirms the new ones. Returns the result for each page, in
/// order. `traces` has the trace of each page, if it is traced.
pub(crate) async fn admit(
    member: &Member,
    pages: Vec<Linking>,
    traces: &[Option<&Trace>],
) -> Result<Vec<Linked<Admitted>>, Fatal> {
    let Member { records, broker, health, worker, .. } = member;
    let admission = Admission::begin();
    let admitting = async || one_each(records.admit_links(worker, &pages).await?, pages.len(), "pages");
    let admitted = health.insist("admitting links", admitting).await?;
    let mut messages = Vec::new();
    let mut all = Vec::with_capacity(pages.len());
    for ((Linking { page: Claim { crawl, .. }, links }, linked), trace) in
        pages.into_iter().zip(admitted).zip(traces)
    {
        let first = messages.len();
        all.push(linked.map(|each| {
            let mut admitted =
                Admitted { links: Vec::with_capacity(links.len()), left_out: LeftOut::default() };
            for (link, what) in links.into_iter().zip(each) {
                match what {
                    Taken::New => messages.push(link.message(&crawl)),
                    Taken::Seen => {}
                    Taken::LeftOut => {
                        admitted.left_out.add(Limit::MaxPerHost, 1);
                        continue;
                    }
                }
                admitted.links.push(link);
            }
            admitted
        }));
        admission.end(&mut messages[first..], *trace);
    }
    outbox::send(&**records, &**broker, messages, Tries::Repeated(health)).await.map_err(Fatal)?;
    Ok(all)
}
