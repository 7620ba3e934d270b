//! The sinks of a runner: the API's.

use std::sync::Arc;

use async_trait::async_trait;
use trawl_common::ports::{Error, ErrorKind, FileStore, Page, Result, Sink, SinkFactory};
use trawl_common::relay::Put;
use trawl_common::spider::{Download, Spider};

use crate::link::Link;

/// Size of the pages of one call, unless a single one has more.
const CALL_BYTES: usize = 4 << 20;

/// Passes the output of pages to the API, which stores it in the sinks of their spider.
pub(crate) struct RelaySinks(pub(crate) Arc<Link>);

impl SinkFactory for RelaySinks {
    fn open(&self, _: &Spider) -> Result<Vec<Arc<dyn Sink>>> {
        Ok(vec![Arc::new(RelaySink(Arc::clone(&self.0)))])
    }

    fn open_files(&self, _: &Spider, _: &Download) -> Result<Arc<dyn FileStore>> {
        Err(Error::new(
            ErrorKind::Refused,
            "a runner keeps no files: its [[download]] needs a worker of the fleet",
        ))
    }
}

struct RelaySink(Arc<Link>);

#[async_trait]
impl Sink for RelaySink {
    fn name(&self) -> &str {
        "the API's sinks"
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let (mut call, mut bytes) = (Vec::new(), 0);
        for page in pages {
            let size = serde_json::to_vec(page).map_or(0, |json| json.len());
            if bytes + size > CALL_BYTES && !call.is_empty() {
                self.0.call(&Put { pages: std::mem::take(&mut call) }).await?;
                bytes = 0;
            }
            bytes += size;
            call.push(page.clone());
        }
        match call.is_empty() {
            true => Ok(()),
            false => self.0.call(&Put { pages: call }).await,
        }
    }
}
