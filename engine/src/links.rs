//! What pages link to, on its way into the records.

use std::collections::BTreeMap;

use trawl_common::frontier::Taken;
use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Claim, NewUrl, one_each};

use crate::member::Member;
use crate::outbox;
use crate::records::{Linked, Linking};

/// What the records have of a page's links.
pub(crate) struct Admitted {
    /// Those that they have, in order.
    pub(crate) links: Vec<NewUrl>,
    /// How many they left out.
    pub(crate) left_out: LeftOut,
}

/// Admits what pages and tasks ask for of other spiders, and publishes and confirms what is new of it. What is asked for twice was
/// taken in before.
pub(crate) async fn admit_elsewhere(member: &Member, asked: Vec<(SpiderName, NewUrl)>) {
    let Member { records, broker, health, .. } = member;
    let mut by_crawl: BTreeMap<CrawlRef, Vec<NewUrl>> = BTreeMap::new();
    for (spider, new) in asked {
        by_crawl.entry(CrawlRef::adhoc_of(spider)).or_default().push(new);
    }
    for (crawl, urls) in by_crawl {
        let admitting = async || one_each(records.take_in(&crawl, &urls).await?, urls.len(), "URLs");
        let new = health.until_done("admitting for another spider", admitting).await;
        let new = urls.iter().zip(new).filter(|(_, new)| *new);
        let messages = new.map(|(url, _)| url.message(&crawl)).collect();
        outbox::send_until_done(&**records, &**broker, messages, health).await;
    }
}

/// Admits what pages link to, and publishes and confirms what is new of it. Returns for each page, in order, what became of its
/// links.
pub(crate) async fn admit(member: &Member, pages: Vec<Linking>) -> Vec<Linked<Admitted>> {
    let Member { records, broker, health, worker, .. } = member;
    let admitting = async || one_each(records.admit_links(worker, &pages).await?, pages.len(), "pages");
    let admitted = health.until_done("admitting links", admitting).await;
    let mut messages = Vec::new();
    let mut all = Vec::with_capacity(pages.len());
    for (Linking { page: Claim { crawl, .. }, links }, linked) in pages.into_iter().zip(admitted) {
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
    }
    outbox::send_until_done(&**records, &**broker, messages, health).await;
    all
}
