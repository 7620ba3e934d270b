//! Stores pages' items in the sinks of their spiders.
//!
//! The pages of each spider are stored separately: a sink that is slow or unavailable delays neither other spiders nor
//! pages without items. A spider whose pages wait also takes only its share of a worker: its further URLs are snoozed
//! on the ladder until its sinks accept pages.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use trawl_common::batching::gather;
use trawl_common::frontier::message::Message;
use trawl_common::health::of_spider;
use trawl_common::ports::{Fatal, Frontier, Page};
use trawl_common::trace;

use crate::claimed::items_file::FileItems;
use crate::claimed::page_output::ForSinks;
use crate::claimed::settlement::Settlement;
use crate::context::Context;
use crate::spiders::LoadedSpider;

/// Maximum number of pages of a spider that are stored in one step.
const BATCH: usize = 256;

/// How long a page that ran alone delays the next one of its kind until its sinks have stored it: they may be
/// unavailable for hours.
const MAX_ALONE_DELAY: Duration = Duration::from_secs(10);

/// The settings and the frontier by which pages are stored.
pub(crate) struct Storage {
    pub(crate) context: Arc<Context>,
    pub(crate) frontier: Arc<dyn Frontier>,
}

/// Passes on stored pages, and at once those without items, until every sender is gone.
pub(crate) async fn run(
    storage: Arc<Storage>,
    mut from: mpsc::Receiver<Settlement>,
    to: mpsc::Sender<Settlement>,
) {
    let mut stores = Stores { storage, to, lines: Vec::new(), storing: JoinSet::new() };
    let (mut batch, mut is_open) = (Vec::with_capacity(BATCH), true);
    loop {
        tokio::select! {
            Some(stored) = stores.storing.join_next() => match stored {
                Ok(Ok(spider)) => stores.mark_idle(&spider),
                Ok(Err(error)) => return stores.storage.context.health.abort(error),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // A step is cancelled only together with this task.
                    Err(_) => return,
                },
            },
            count = gather(&mut from, &mut batch, BATCH), if is_open => is_open = count > 0,
            else => return,
        }
        for settlement in batch.drain(..) {
            stores.take(settlement).await;
        }
        stores.begin();
    }
}

/// The pages of one spider that are not being stored yet.
struct Line {
    spider: Arc<LoadedSpider>,
    waiting: Vec<(ForSinks, Settlement)>,
    is_busy: bool,
}

struct Stores {
    storage: Arc<Storage>,
    to: mpsc::Sender<Settlement>,
    lines: Vec<Line>,
    storing: JoinSet<Result<Arc<LoadedSpider>, Fatal>>,
}

impl Stores {
    async fn take(&mut self, mut settlement: Settlement) {
        let Some(for_sinks) = settlement.take_for_sinks() else {
            return pass_on(&self.to, settlement).await;
        };
        let spider = Arc::clone(&for_sinks.spider);
        match self.lines.iter_mut().find(|line| Arc::ptr_eq(&line.spider, &spider)) {
            Some(line) => line.waiting.push((for_sinks, settlement)),
            None => self.lines.push(Line { spider, waiting: vec![(for_sinks, settlement)], is_busy: false }),
        }
    }

    /// Stores the waiting pages of each spider for which no step is running.
    fn begin(&mut self) {
        for line in self.lines.iter_mut().filter(|line| !line.is_busy) {
            line.is_busy = true;
            let count = line.waiting.len().min(BATCH);
            let waiting: Vec<_> = line.waiting.drain(..count).collect();
            let (storage, to, spider) =
                (Arc::clone(&self.storage), self.to.clone(), Arc::clone(&line.spider));
            self.storing.spawn(async move {
                store(&storage, &spider, waiting, &to).await?;
                Ok(spider)
            });
        }
    }

    fn mark_idle(&mut self, spider: &Arc<LoadedSpider>) {
        self.lines.retain_mut(|line| {
            line.is_busy &= !Arc::ptr_eq(&line.spider, spider);
            line.is_busy || !line.waiting.is_empty()
        });
    }
}

/// 1. Extends the leases of pages that have been held for long: pages that another worker holds by now are not stored,
///    and are requeued.
/// 2. Writes the rest to every sink, and passes it on. Pages that are no longer this worker's, such as those of a
///    cancelled crawl, are dropped while a sink is unavailable.
/// 3. Stores the files of items, one after the other, and passes on their pages and tasks.
async fn store(
    storage: &Storage,
    spider: &LoadedSpider,
    waiting: Vec<(ForSinks, Settlement)>,
    to: &mpsc::Sender<Settlement>,
) -> Result<(), Fatal> {
    let (mut pages, mut all, mut with_files) =
        (Vec::with_capacity(waiting.len()), Vec::with_capacity(waiting.len()), Vec::new());
    let messages: Vec<&Message> = waiting.iter().map(|(_, settlement)| settlement.message()).collect();
    let held = storage.frontier.extend(&messages).await?;
    for ((ForSinks { page, file, .. }, settlement), is_held) in waiting.into_iter().zip(held) {
        if !is_held {
            all.push(settlement.lost());
            continue;
        }
        pages.extend(page);
        match file {
            Some(file) => with_files.push((file, settlement)),
            None => all.push(settlement),
        }
    }
    let begun = Instant::now();
    let mut alone: Vec<_> = all.iter_mut().map(Settlement::take_alone).collect();
    let is_stored = {
        let settlements = all.iter().chain(with_files.iter().map(|(_, settlement)| settlement));
        let of: Vec<&Message> = settlements.map(Settlement::message).collect();
        let mut storing = pin!(put(storage, spider, &pages, &of));
        match timeout(MAX_ALONE_DELAY, &mut storing).await {
            Ok(is_stored) => is_stored?,
            Err(_) => {
                alone.iter_mut().for_each(|permit| *permit = None);
                storing.await?
            }
        }
    };
    spider.backlog.take_off(all.len());
    for (settlement, alone) in all.into_iter().zip(alone) {
        let settlement = settlement.with_alone(alone);
        stored(to, if is_stored { settlement } else { settlement.lost() }, begun).await;
    }
    for (file, settlement) in with_files {
        let settlement = match is_stored {
            true => store_file(storage, spider, *file, settlement).await?,
            false => settlement.lost(),
        };
        spider.backlog.take_off(1);
        stored(to, settlement, begun).await;
    }
    Ok(())
}

/// Writes pages to every sink. Each sink is retried separately: pages that it has stored are not sent again because
/// another sink is unavailable. People fix a table that lacks a column, or a file that another process writes to, while
/// other spiders continue. `of` are the messages of the pages. Returns whether all sinks have all pages; false if none
/// of the pages is this worker's any more.
async fn put(
    storage: &Storage,
    spider: &LoadedSpider,
    pages: &[Page],
    of: &[&Message],
) -> Result<bool, Fatal> {
    let storing = spider.sinks.iter().filter(|_| !pages.is_empty()).map(async |sink| {
        let what = of_spider(&spider.spider.name, sink.name());
        let is_retry = AtomicBool::new(false);
        let putting = async || {
            if is_retry.swap(true, Ordering::Relaxed) {
                match storage.frontier.extend(of).await {
                    Ok(held) if held.contains(&true) => {}
                    lost => return Ok(lost.map(|_| false)),
                }
            }
            sink.put(pages).await.map(|()| Ok(true))
        };
        storage.context.health.retry_if(&what, |_| true, putting).await.map_err(Fatal).flatten()
    });
    Ok(try_join_all(storing).await?.into_iter().all(|is_stored| is_stored))
}

/// Stores the items of a file, as long as its page or task is this worker's. This may take long, but is no danger to
/// the worker, so the URL no longer runs alone.
async fn store_file(
    storage: &Storage,
    spider: &LoadedSpider,
    mut file: FileItems,
    mut settlement: Settlement,
) -> Result<Settlement, Fatal> {
    drop(settlement.take_alone());
    loop {
        match file.next().await {
            Ok(Some(page)) => {
                if !put(storage, spider, &[page], &[settlement.message()]).await? {
                    return Ok(settlement.lost());
                }
            }
            Ok(None) => return Ok(settlement),
            Err(failure) => {
                let policy = spider.spider.program_retry(&storage.context.settings.retry);
                return Ok(settlement.failed(policy, failure));
            }
        }
        if storage.frontier.extend(&[settlement.message()]).await? != [true] {
            return Ok(settlement.lost());
        }
    }
}

async fn stored(to: &mpsc::Sender<Settlement>, settlement: Settlement, begun: Instant) {
    trace::step(settlement.message().trace.as_deref(), "store", begun.elapsed());
    pass_on(to, settlement).await;
}

async fn pass_on(to: &mpsc::Sender<Settlement>, settlement: Settlement) {
    // Closed only when the settler is gone, which ends after this.
    let _ = to.send(settlement).await;
}
