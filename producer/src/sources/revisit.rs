//! The pages that a spider found through links. The pages linking to them need not be read again, so they are
//! listed here.

use std::sync::Arc;

use tokio::sync::mpsc;
use trawl_common::frontier::route::Hints;
use trawl_common::health::Health;
use trawl_common::names::SpiderName;
use trawl_common::ports::{NewWork, PageHistories, Result};
use trawl_common::spider::Scope;

use crate::finding::{Candidate, Finding};
use crate::sources::read::PART_SIZE;
use crate::sources::sorter::Sorter;

/// The pages that a spider remembers, as one more source.
pub(crate) struct Revisit {
    pub(crate) pages: Arc<dyn PageHistories>,
    pub(crate) health: Arc<Health>,
    pub(crate) spider: SpiderName,
    pub(crate) scope: Scope,
    pub(crate) sorter: Sorter,
}

impl Revisit {
    /// Finds every remembered page within the spider's current scope, until the receiver of `findings` is
    /// gone.
    pub(crate) async fn run(&self, findings: &mpsc::Sender<Vec<Finding>>) -> Result<()> {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let walking = || self.pages.walk(&self.spider, at);
            let walk = self.health.retry("reading what is remembered", walking).await?;
            let known = walk.pages.into_iter().filter_map(|(url, depth)| {
                if depth > 0 && !self.scope.follows(&url, &url, depth) {
                    return None;
                }
                let Candidate { page, ttl, .. } = self.sorter.page(url, Hints::default())?;
                Some(Finding::Page(Candidate { page: NewWork { depth, ..page }, ttl, modified: None }))
            });
            let known: Vec<Finding> = known.collect();
            for part in known.chunks(PART_SIZE) {
                if findings.send(part.to_vec()).await.is_err() {
                    return Ok(());
                }
            }
            cursor = walk.next;
        }
        Ok(())
    }
}
