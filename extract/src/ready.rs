//! Prepares a spider's file for extraction.

use trawl_common::mistake::Mistake;
use trawl_common::settings::Fetch;
use trawl_common::spider::{Bans, Scope, Spider};

use crate::{Extractor, LoginPlan};

/// The parts of a spider that extract and follow.
pub struct Ready {
    /// Extracts from pages.
    pub extractor: Extractor,
    /// The scope of links to follow.
    pub scope: Scope,
    /// The rules for responses that are not pages.
    pub bans: Bans,
    /// The log-in, if it has one.
    pub login: Option<LoginPlan>,
}

impl Ready {
    /// Prepares a spider whose requests use `fetch`. Fails with all of its invalid patterns and selectors.
    pub fn new(spider: &Spider, fetch: &Fetch) -> Result<Self, Vec<Mistake>> {
        let login = LoginPlan::new(spider);
        match (Extractor::new(spider), Scope::new(spider), Bans::new(&spider.ban), login) {
            (Ok(extractor), Ok(scope), Ok(bans), Ok(login)) => {
                let name = spider.request.apply(fetch).robots_name().unwrap_or_default();
                Ok(Self { extractor: extractor.named(&name), scope, bans, login })
            }
            (extractor, scope, bans, login) => {
                let mistakes = [extractor.err(), scope.err(), bans.err(), login.err()];
                Err(mistakes.into_iter().flatten().flatten().collect())
            }
        }
    }
}
