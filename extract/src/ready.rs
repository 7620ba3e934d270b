//! Prepares a spider's file for extraction.

use trawl_common::mistake::Mistake;
use trawl_common::settings::Fetch;
use trawl_common::spider::{Bans, Scope, Spider};

use crate::Extractor;

/// The parts of a spider that extract and follow.
pub struct Ready {
    /// Extracts from pages.
    pub extractor: Extractor,
    /// The scope of links to follow.
    pub scope: Scope,
    /// The rules for responses that are not pages.
    pub bans: Bans,
}

impl Ready {
    /// Prepares a spider whose requests use `fetch`. Fails with all of its invalid patterns and selectors.
    pub fn new(spider: &Spider, fetch: &Fetch) -> Result<Self, Vec<Mistake>> {
        match (Extractor::new(spider), Scope::new(spider), Bans::new(&spider.ban)) {
            (Ok(extractor), Ok(scope), Ok(bans)) => {
                let name = spider.request.apply(fetch).robots_name().unwrap_or_default();
                Ok(Self { extractor: extractor.named(&name), scope, bans })
            }
            (extractor, scope, bans) => {
                Err([extractor.err(), scope.err(), bans.err()].into_iter().flatten().flatten().collect())
            }
        }
    }
}
