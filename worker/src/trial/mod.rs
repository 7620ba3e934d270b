//! One page for whoever tries a spider: in no crawl, and stored nowhere.

mod polite;

use std::io;
use std::sync::Arc;

pub use polite::Trials;
use trawl_common::frontier::outcome::Skip;
use trawl_common::ports::Response;
use trawl_common::settings::Settings;
use trawl_common::spider::{Scope, Spider};
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extractor, Tried, Untried};

use crate::parse::Parser;

/// Reads pages as a worker does.
pub struct PageReader(Parser);

impl PageReader {
    /// With threads of its own, and as much memory for trees as a worker has.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        Parser::start(settings.worker.page_memory.as_u64() / 2).map(Self)
    }

    /// What `spider` makes of `response`, with which the page at `landed` answered.
    ///
    /// # Errors
    /// Why it makes nothing of that.
    pub async fn read(
        &self,
        spider: &Spider,
        scope: &Scope,
        extractor: &Arc<Extractor>,
        landed: &CanonicalUrl,
        response: Response,
    ) -> Result<Tried, Untried> {
        if !extractor.reads(&response) {
            return Err(not_read(response.content_type().unwrap_or("no type")));
        }
        let extraction = self.0.read(Arc::clone(extractor), landed.clone(), response.clone()).await?;
        Ok(Tried::of(spider, scope, landed, response, extraction))
    }
}

fn not_read(content_type: &str) -> Untried {
    Untried::Skipped(Skip::ContentType, format!("{content_type} is not what this spider reads"))
}
