//! What a spider works with, made of what its file says.

use trawl_common::settings::Fetch;
use trawl_common::spider::{Bans, Mistake, Scope, Spider};

use crate::Extractor;

/// What a spider extracts and follows with.
pub struct Ready {
    /// What it takes from pages.
    pub extractor: Extractor,
    /// Which links it follows.
    pub scope: Scope,
    /// Which answers are no pages.
    pub bans: Bans,
}

impl Ready {
    /// That of a spider which asks as `fetch` says; or all of its patterns and selectors that cannot be used.
    pub fn of(spider: &Spider, fetch: &Fetch) -> Result<Self, Vec<Mistake>> {
        match (Extractor::new(spider), Scope::of(spider), Bans::of(&spider.ban)) {
            (Ok(extractor), Ok(scope), Ok(bans)) => {
                let name = spider.request.apply(fetch).robots_name().unwrap_or_default();
                Ok(Self { extractor: extractor.named(name), scope, bans })
            }
            (extractor, scope, bans) => {
                Err([extractor.err(), scope.err(), bans.err()].into_iter().flatten().flatten().collect())
            }
        }
    }
}
