//! Stand-ins for the web and the only sink.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::sleep;
use trawl_common::ports::{Cache, Error, ErrorKind, FileStore, Page, Result, Sink, SinkFactory};
use trawl_common::spider::{Download, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use super::Memory;

#[async_trait]
impl Cache for Memory {
    /// Stands for the web: each page comes after its time.
    async fn get(&self, url: &CanonicalUrl) -> Result<Option<Response>> {
        self.called("ask for", url);
        let takes = self.state().pages.get(url.as_str()).copied();
        match takes {
            Some(takes) => sleep(takes).await,
            None => pending().await,
        }
        self.called("fetched", url);
        let has_links = self.state().links_without_end.as_deref() == Some(url.as_str());
        let links: String =
            (0..1_000).filter(|_| has_links).map(|link| format!("<a href=\"/{link}\">x</a>")).collect();
        Ok(Some(Response {
            status: 200,
            headers: [("content-type", "text/html")].into_iter().collect(),
            redirected_to: None,
            fetched_at: UnixMs::now(),
            address: None,
            body: format!("<title>a page</title><p>text{links}").into(),
        }))
    }

    async fn put(&self, _url: &CanonicalUrl, _response: &Response, _ttl: Duration) -> Result<()> {
        unreachable!("nothing is fetched from elsewhere")
    }
}

/// The one sink.
pub(super) struct Items(pub(super) Memory);

impl SinkFactory for Items {
    fn open(&self, _spider: &Spider) -> Result<Vec<Arc<dyn Sink>>> {
        Ok(vec![Arc::new(Items(self.0.clone()))])
    }

    fn open_files(&self, _spider: &Spider, _download: &Download) -> Result<Arc<dyn FileStore>> {
        unreachable!("no spider of these tests keeps files")
    }
}

#[async_trait]
impl Sink for Items {
    fn name(&self) -> &str {
        "memory"
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let refusals = self.0.state().sink_refusals;
        if refusals > 0 {
            self.0.state().sink_refusals = refusals - 1;
            self.0.called("refuse", self.name());
            return Err(Error::new(ErrorKind::Refused, "there is no column `price`"));
        }
        for page in pages {
            self.0.called("store", &page.key);
            let mut state = self.0.state();
            if state.lost_when_stored.remove(&page.key) {
                state.lost.insert(page.key.clone());
            }
        }
        Ok(())
    }
}
