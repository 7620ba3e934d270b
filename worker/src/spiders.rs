//! The spiders whose URLs this worker takes, each with what it needs to fetch, extract and store.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tracing::warn;
use trawl_common::names::SpiderName;
use trawl_common::ports::{self, Outlets, Sink};
use trawl_common::route::Rule;
use trawl_common::settings::{Politeness, Settings};
use trawl_common::spider::{Mistake, Scope, Spider};
use trawl_extract::Extractor;
use trawl_web::Fetcher;

/// A spider, ready to work.
pub(crate) struct Loaded {
    pub(crate) spider: Spider,
    pub(crate) scope: Scope,
    /// The rules that route what it finds.
    pub(crate) route: Vec<Rule>,
    pub(crate) politeness: Politeness,
    pub(crate) fetcher: Fetcher,
    pub(crate) extractor: Arc<Extractor>,
    pub(crate) sinks: Vec<Arc<dyn Sink>>,
}

/// Why a spider cannot work.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// Its selectors, patterns or paths cannot be used.
    #[error("spider {spider}: {}", told(mistakes))]
    Mistaken {
        /// Which.
        spider: SpiderName,
        /// What is wrong with it.
        mistakes: Vec<Mistake>,
    },
    /// The HTTP client refused its settings.
    #[error("[fetch]: {0}")]
    Fetch(#[from] trawl_web::Unusable),
    /// A sink cannot be opened as it is written.
    #[error(transparent)]
    Sink(#[from] ports::Error),
}

fn told(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// All of them, by name, each loaded when its first URL comes.
pub(crate) struct Spiders {
    settings: Settings,
    outlets: Arc<dyn Outlets>,
    loaded: RwLock<HashMap<SpiderName, Arc<Loaded>>>,
}

impl Spiders {
    /// None so far but the default one, so that what is wrong with the settings shows at once.
    pub(crate) fn new(settings: &Settings, outlets: Arc<dyn Outlets>) -> Result<Self, Unready> {
        let spiders = Self { settings: settings.clone(), outlets, loaded: RwLock::default() };
        spiders.find(&SpiderName::default())?;
        Ok(spiders)
    }

    /// The spider of this name; `None` if it cannot work now, which the log says.
    pub(crate) fn get(&self, name: &SpiderName) -> Option<Arc<Loaded>> {
        self.find(name).inspect_err(|error| warn!(spider = %name, %error, "the spider cannot work")).ok()
    }

    fn find(&self, name: &SpiderName) -> Result<Arc<Loaded>, Unready> {
        if let Some(loaded) = self.loaded.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(self.load(Spider::without_file(name.clone(), &self.settings.items))?);
        let mut all = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(all.entry(name.clone()).or_insert(loaded)))
    }

    fn load(&self, spider: Spider) -> Result<Loaded, Unready> {
        let mistaken = |mistakes| Unready::Mistaken { spider: spider.name.clone(), mistakes };
        let extractor = Extractor::new(&spider).map_err(mistaken)?;
        Ok(Loaded {
            scope: Scope::of(&spider).map_err(mistaken)?,
            route: spider.route.iter().chain(&self.settings.route).cloned().collect(),
            politeness: self.settings.politeness.of(&spider.politeness),
            fetcher: Fetcher::new(&self.settings.fetch)?,
            extractor: Arc::new(extractor),
            sinks: self.outlets.open(&spider)?,
            spider,
        })
    }
}
