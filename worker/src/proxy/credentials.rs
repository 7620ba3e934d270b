//! The credentials for the proxy: each run of a program has its own name and secret while it lasts. Other
//! users of the machine may reach the port, but know neither.

use std::collections::HashMap;
use std::sync::Arc;

use data_encoding::BASE64;
use hyper::HeaderMap;
use hyper::header::PROXY_AUTHORIZATION;
use parking_lot::RwLock;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use trawl_common::names::CrawlRef;

use super::User;

/// Maximum number of connections of one run.
pub(super) const MAX_CONNECTIONS: usize = 128;

/// One run of a program.
pub(super) struct Run {
    name: String,
    secret: String,
    /// The spider on whose behalf it sends requests.
    pub(super) user: Arc<User>,
    /// The crawl of its task, if it has one.
    pub(super) crawl: Option<CrawlRef>,
    /// The task.
    pub(super) task: Option<String>,
    /// Cancelled when the run has ended.
    pub(super) ended: CancellationToken,
    /// A permit for each connection that it may have.
    pub(super) connections: Arc<Semaphore>,
}

impl Run {
    pub(super) fn new(
        user: Arc<User>,
        crawl: Option<CrawlRef>,
        task: Option<String>,
        ended: CancellationToken,
    ) -> Self {
        let name = format!("run-{:016x}", rand::random::<u64>());
        let secret = format!("{:032x}", rand::random::<u128>());
        Self {
            name,
            secret,
            user,
            crawl,
            task,
            ended,
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn secret(&self) -> &str {
        &self.secret
    }
}

/// The runs that may use the proxy.
#[derive(Default)]
pub(super) struct Credentials(RwLock<HashMap<String, Arc<Run>>>);

/// The credentials of one run, which are void when this is dropped.
pub(super) struct Issued {
    all: Arc<Credentials>,
    run: Arc<Run>,
}

impl Credentials {
    pub(super) fn issue(self: &Arc<Self>, run: Run) -> Issued {
        let run = Arc::new(run);
        let mut runs = self.0.write();
        runs.insert(run.name.clone(), Arc::clone(&run));
        Issued { all: Arc::clone(self), run }
    }

    /// Returns the run whose credentials are in these header fields (RFC 7617).
    pub(super) fn run(&self, fields: &HeaderMap) -> Option<Arc<Run>> {
        let value = fields.get(PROXY_AUTHORIZATION)?.to_str().ok()?;
        let (scheme, encoded) = value.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = String::from_utf8(BASE64.decode(encoded.trim().as_bytes()).ok()?).ok()?;
        let (name, secret) = decoded.split_once(':')?;
        let runs = self.0.read();
        let run = runs.get(name).map(Arc::clone);
        run.filter(|run| bool::from(run.secret.as_bytes().ct_eq(secret.as_bytes())))
    }
}

impl Drop for Issued {
    fn drop(&mut self) {
        let mut runs = self.all.0.write();
        runs.remove(&self.run.name);
        drop(runs);
        self.run.ended.cancel();
    }
}
