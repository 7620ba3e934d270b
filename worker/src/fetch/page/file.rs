//! Downloads the file of a URL that a `[[download]]` of its spider found.

use std::sync::Arc;

use serde_json::{Map, Value};
use trawl_common::frontier::limit::LeftOut;
use trawl_common::frontier::outcome::Outcome;
use trawl_common::frontier::{Key, Request};
use trawl_common::host_schedules::HostPermit;
use trawl_common::metrics;
use trawl_common::ports::{FileContent, Page};
use trawl_common::spider::item::Item;
use trawl_common::spider::{Carried, FileFacts, ItemCounts};
use trawl_common::web::url::Fingerprint;
use trawl_extract::{Extracted, FileType, image_size};

use super::items::item;
use super::response::{Wanted, fetch};
use super::transfer::{Transfer, unwritten};
use crate::claimed::ClaimedUrl;
use crate::claimed::page_output::PageOutput;
use crate::claimed::settlement::Settlement;
use crate::fetch::Fetching;
use crate::schedule::sessions::Visit;

/// Number of the first bytes of an image that show its size: large profiles and previews may come before it.
const IMAGE_START: usize = 1 << 20;

/// Downloads the file of a URL, as long as that is this worker's.
pub(super) async fn settled(
    fetching: &Fetching,
    mut claimed: ClaimedUrl,
    request: Arc<Request>,
    carried: Carried,
    permit: HostPermit,
) -> Settlement {
    let watched = fetching.watch.over(&claimed.message);
    let downloaded = tokio::select! {
        biased;
        downloaded = download(fetching, &mut claimed, request, carried, permit) => downloaded,
        () = watched.lost() => Err(Outcome::Republish),
    };
    match downloaded {
        Ok(output) => Settlement::done(claimed, output, None),
        Err(outcome) => Settlement::from_url(claimed, outcome),
    }
}

async fn download(
    fetching: &Fetching,
    claimed: &mut ClaimedUrl,
    request: Arc<Request>,
    carried: Carried,
    permit: HostPermit,
) -> Result<PageOutput, Outcome> {
    let (spider, domains) = (Arc::clone(&claimed.spider), &fetching.scheduling.domains);
    let name = carried.download.as_deref().unwrap_or_default();
    let (rule, store) = spider.download(name).expect("only a URL with a rule is a download");
    let key = Fingerprint::from_text(&format!("{}\n{}", spider.spider.name, request.key));
    let part = store.open(key).await.map_err(|error| unwritten(fetching, claimed, store.name(), &error))?;
    let visit = fetching.sessions.visit(&spider);
    let mut transfer = Transfer::new(request, rule, domains, part);
    let wanted = Wanted::File(&mut transfer, store.name());
    let response = fetch(fetching, claimed, wanted, permit, visit.as_ref()).await?;
    let (mut part, kind) = transfer.whole().expect("any other end has an outcome of its own");
    visit.iter().for_each(|visit: &Arc<Visit>| visit.prove());
    let kept = async {
        let content = part.content().await?;
        let start = if kind.media.starts_with("image/") {
            part.start(IMAGE_START).await?
        } else {
            Default::default()
        };
        let facts = FileFacts {
            sha256: &content.sha256,
            ext: &kind.ending,
            url: &claimed.url,
            carried: &carried.values,
        };
        let place = part.keep(&rule.path.path(&facts), &content).await?;
        Ok((place, content, image_size(&start)))
    };
    let (place, content, pixels) =
        kept.await.map_err(|error| unwritten(fetching, claimed, store.name(), &error))?;
    metrics::page_read(content.size);
    let bytes = content.size;
    let fields = fields(place, content, &kind, pixels, &carried.values);
    let extracted = Extracted { rule: Some(name.to_owned()), number: 0, fields };
    let item = Item {
        referrer: claimed.message.referrer.as_ref().map(Key::page_or_task),
        path: Some(carried.path_to(name)),
        ..item(claimed, &claimed.url, &response, extracted)
    };
    let items = ItemCounts::new(&spider.spider, std::slice::from_ref(&item), 0);
    Ok(PageOutput {
        spider,
        page: Some(Page::new(&claimed.message, vec![item])),
        file: None,
        links: Vec::new(),
        elsewhere: Vec::new(),
        left_out: LeftOut::default(),
        landed: None,
        status: Some(response.status),
        items,
        bytes,
        missing: Vec::new(),
    })
}

/// Returns the fields of a file's item: its own, and the carried ones of other names.
fn fields(
    place: String,
    content: FileContent,
    kind: &FileType,
    pixels: Option<(u64, u64)>,
    carried: &Map<String, Value>,
) -> Map<String, Value> {
    let FileContent { size, sha256 } = content;
    let (width, height) = pixels.unzip();
    let own: [(&str, Value); 6] = [
        ("file", place.into()),
        ("sha256", sha256.into()),
        ("size", size.into()),
        ("type", kind.media.as_str().into()),
        ("width", width.into()),
        ("height", height.into()),
    ];
    let own = own.into_iter().filter(|(_, value)| !value.is_null());
    let mut fields: Map<String, Value> = own.map(|(name, value)| (name.to_owned(), value)).collect();
    for (name, value) in carried {
        if !fields.contains_key(name) {
            fields.insert(name.clone(), value.clone());
        }
    }
    fields
}
