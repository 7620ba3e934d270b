//! The spiders of crawls, as the API knows them: a runner's links, items and sinks are theirs, whatever it says.

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Error, ErrorKind, Result, Sink, SinkFactory, SpiderTexts, WorkerPorts};
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_common::spider::{FileHash, Render, Scope, Spider};
use trawl_common::web::url::Host;

use crate::threads::on_a_thread_apart;

/// Maximum number of crawls whose spiders are remembered.
const MAX_CRAWLS: u64 = 256;

/// The time for which a spider is remembered: its file may change.
const REMEMBERED: Duration = Duration::from_secs(30);

/// The spiders of crawls.
pub(super) struct Spiders {
    known: Cache<CrawlRef, Arc<CrawlSpider>>,
    /// By name and file: crawls of one file share its sinks.
    loaded: Cache<(SpiderName, Option<FileHash>), Arc<CrawlSpider>>,
    texts: Arc<dyn SpiderTexts>,
    sinks: Arc<dyn SinkFactory>,
    settings: Arc<Settings>,
}

/// The spider of a crawl.
pub(crate) struct CrawlSpider {
    pub(crate) spider: Spider,
    pub(super) scope: Scope,
    /// The hash of its file, if it has one.
    pub(super) file: Option<FileHash>,
    /// The text of its file for runners, without its sinks.
    pub(super) text: Option<String>,
    /// Its sinks.
    pub(super) sinks: Vec<Arc<dyn Sink>>,
}

impl CrawlSpider {
    /// Whether its work may lead to requests to a host: a program, a browser and a log-in ask others than its pages.
    pub(super) fn may_visit(&self, host: &Host) -> bool {
        let Spider { handler, login, pages, render, .. } = &self.spider;
        let renders = || {
            render.needs_browser() || pages.iter().any(|kind| kind.render.is_some_and(Render::needs_browser))
        };
        self.spider.allows(host) || handler.is_some() || login.is_some() || renders()
    }
}

impl Spiders {
    pub(super) fn new(settings: &Arc<Settings>, ports: &WorkerPorts) -> Self {
        let known = Cache::builder().max_capacity(MAX_CRAWLS).time_to_live(REMEMBERED).build();
        let (texts, sinks) = (Arc::clone(&ports.texts), Arc::clone(&ports.sink_factory));
        let loaded = Cache::new(MAX_CRAWLS);
        Self { known, loaded, texts, sinks, settings: Arc::clone(settings) }
    }

    /// Returns the spider of a crawl: from the crawl's own copy of its file, or else from the file here.
    ///
    /// Fails with `Refused` if the file cannot be used, or if runners cannot work by it.
    pub(super) async fn of(&self, crawl: &CrawlRef) -> Result<Arc<CrawlSpider>> {
        if let Some(known) = self.known.get(crawl) {
            return Ok(known);
        }
        let kept = self.texts.spider_text(crawl).await?;
        let (settings, name, sinks) =
            (Arc::clone(&self.settings), crawl.spider.clone(), Arc::clone(&self.sinks));
        let loaded = self.loaded.clone();
        let load = move || {
            let folder = Folder::new(&settings);
            let refused = |why: &dyn std::fmt::Display| {
                Error::new(ErrorKind::Refused, format_args!("spider {name}: {why}"))
            };
            let text = match kept {
                Some(text) => Some(text.as_str().to_owned()),
                None => folder.text(&name).map_err(|error| refused(&error))?,
            };
            let file = text.as_deref().map(FileHash::from_text);
            if let Some(known) = loaded.get(&(name.clone(), file)) {
                return Ok(known);
            }
            let spider =
                folder.spider(&name, text.as_deref(), &settings.items).map_err(|error| refused(&error))?;
            if !spider.downloads.is_empty() {
                return Err(refused(&"runners keep no files ([[download]])"));
            }
            if spider.hand_overs.iter().any(|one| one.task.is_none()) {
                return Err(refused(&"runners hand over tasks, not links ([[hand_over]])"));
            }
            let scope = Scope::new(&spider).map_err(|_| refused(&"its patterns cannot be used"))?;
            let opened = sinks.open(&spider)?;
            if opened.iter().any(|sink| sink.keeps_responses()) {
                return Err(refused(&"runners pass on no responses (`warc`)"));
            }
            let text = text.map(|text| without_sinks(&text));
            let spider = Arc::new(CrawlSpider { spider, scope, file, text, sinks: opened });
            loaded.insert((name.clone(), file), Arc::clone(&spider));
            Ok(spider)
        };
        let spider = on_a_thread_apart(load).await?;
        self.known.insert(crawl.clone(), Arc::clone(&spider));
        Ok(spider)
    }
}

/// Returns the text of a spider's file without its sinks, which only the API opens: their variables are not set elsewhere.
fn without_sinks(text: &str) -> String {
    let Ok(mut table) = text.parse::<toml::Table>() else { return text.to_owned() };
    match table.remove("sinks") {
        Some(_) => table.to_string(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_is_not_told_where_items_go() {
        let text = "max_pages = 7\n[[sinks]]\ntype = \"postgres\"\nurl = { env = \"DATABASE\" }\n[follow]\ndepth = 2\n";
        let left = without_sinks(text);
        assert!(
            !left.contains("postgres") && left.contains("depth = 2") && left.contains("max_pages = 7"),
            "{left}"
        );
        let plain = "# as it is written\nmax_pages = 7\n";
        assert_eq!(without_sinks(plain), plain);
    }
}
