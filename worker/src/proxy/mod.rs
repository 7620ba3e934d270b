//! The proxy for the programs of spiders (`TRAWL_PROXY`) and for browsers (`page`): requests that a program sends
//! through it follow the worker's own rules.
//!
//! 1. `listen`: accepts connections, on a port of this machine that is opened for the first run of a program.
//! 2. `credentials`: finds the run of a request.
//! 3. `permits`: waits until the host may be asked, by the spider's politeness and the fleet's schedules.
//! 4. `forward`: forwards a request, and its response; the response counts for the host's back-off.
//! 5. `tunnel`: connects to a host (`CONNECT`), and has each further exchange there (`flights`) wait for a
//!    slot as well.
//!
//! A request that is not forwarded gets a `refusal` with the reason. When a run ends, its connections are
//! closed, and their permits freed.

mod credentials;
mod flights;
mod forward;
mod listen;
pub(crate) mod page;
mod permits;
mod refusal;
#[cfg(test)]
mod tests;
mod tunnel;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Hosts;
use trawl_common::settings::Settings;
use trawl_common::spider::{ProxyUse, Spider};
use trawl_common::task::TaskView;
use trawl_handlers::{Admission, ProxyAccess};
use trawl_web::{Fetcher, Passage, Unusable};

use self::credentials::{Credentials, Run};
use crate::schedule::polite::{AsSpider, PoliteClient};

/// The time that connections get to end when the proxy does.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);

/// The proxy of a process.
pub struct HandlerProxy {
    asker: PoliteClient,
    credentials: Arc<Credentials>,
    /// The address that it listens on, once there was a run.
    address: Mutex<Option<SocketAddr>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A spider whose program or browser uses it.
pub(crate) struct User {
    pub(crate) own: AsSpider,
    pub(crate) passage: Passage,
}

/// Access for the runs of one spider's program.
struct Access {
    proxy: Arc<HandlerProxy>,
    user: Arc<User>,
}

impl HandlerProxy {
    /// Returns a proxy for a process that does not crawl, with the schedules in `hosts`.
    pub fn alone(settings: Arc<Settings>, hosts: Arc<dyn Hosts>) -> Arc<Self> {
        let proxy = Self::new(PoliteClient::alone(settings, hosts));
        let (schedules, stop) = (proxy.asker.schedules.clone(), proxy.stop.clone());
        proxy.tasks.spawn(async move {
            stop.run_until_cancelled(schedules.in_flight.freeing(&*schedules.hosts)).await;
        });
        proxy
    }

    pub(crate) fn new(asker: PoliteClient) -> Arc<Self> {
        let (credentials, address, tasks, stop) = Default::default();
        Arc::new(Self { asker, credentials, address, tasks, stop })
    }

    /// Returns the access for the program of `spider`; `None` if it has no program, or uses no proxy. Its
    /// requests are sent by a client like `fetcher`.
    ///
    /// # Errors
    ///
    /// Fails if there can be no such client.
    pub(crate) fn access(
        self: &Arc<Self>,
        spider: &Spider,
        fetcher: &Fetcher,
    ) -> Result<Option<Arc<dyn ProxyAccess>>, Unusable> {
        if spider.handler.as_ref().is_none_or(|handler| handler.proxy == ProxyUse::None) {
            return Ok(None);
        }
        let passage = fetcher.passage()?;
        let own = AsSpider::new(spider, &self.asker.settings, fetcher.clone());
        Ok(Some(Arc::new(Access { proxy: Arc::clone(self), user: Arc::new(User { own, passage }) })))
    }

    /// Returns the settings in use.
    pub(crate) fn settings(&self) -> &Settings {
        &self.asker.settings
    }

    /// Returns the address that it listens on; starts to listen if necessary.
    fn address(self: &Arc<Self>) -> io::Result<SocketAddr> {
        let mut address = self.address.lock();
        match *address {
            Some(address) => Ok(address),
            None => Ok(*address.insert(listen::start(self)?)),
        }
    }

    /// Returns the address that it listens on, if there was a run.
    fn known_address(&self) -> Option<SocketAddr> {
        *self.address.lock()
    }

    /// Returns a guard that ends the proxy when dropped.
    pub(crate) fn until_dropped(&self) -> DropGuard {
        self.stop.clone().drop_guard()
    }

    /// Ends all its connections.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = timeout(SHUTDOWN_GRACE, self.tasks.wait()).await;
    }
}

impl ProxyAccess for Access {
    fn admit(&self, task: Option<&TaskView>) -> io::Result<Admission> {
        let address = self.proxy.address()?;
        let crawl = task.map(|task| CrawlRef { id: task.crawl.clone(), spider: task.spider.clone() });
        let task = task.map(|task| task.id.to_string());
        let run = Run::new(Arc::clone(&self.user), crawl, task, self.proxy.stop.child_token());
        let (user, secret) = (run.name().to_owned(), run.secret().to_owned());
        let held = Box::new(self.proxy.credentials.issue(run));
        Ok(Admission { url: format!("http://{user}:{secret}@{address}"), held })
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}
