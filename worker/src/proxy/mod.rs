//! The proxy for the programs of spiders (`TRAWL_PROXY`): whatever a program asks through it is asked as the worker itself asks hosts.
//!
//! 1. `listen`: takes connections, on a port of this machine that is opened for the first run of a program;
//! 2. `credentials`: finds the run that a request is of;
//! 3. `polite`: waits until the host may be asked, as the spider's politeness and the fleet's schedules say;
//! 4. `forward`: sends a request on, and its answer back; what the host answers counts for its back-off;
//! 5. `tunnel`: connects to a host (`CONNECT`), and has each further exchange there (`flights`) wait for a slot as well.
//!
//! What is not asked gets a `refusal` that says why. When a run ends, so do its connections, and what they had is free.

mod credentials;
mod flights;
mod forward;
mod listen;
mod polite;
mod refusal;
#[cfg(test)]
mod tests;
mod tunnel;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
use crate::polite::{AsSpider, Asker};

/// What is under way when the proxy ends may take so long to notice.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The proxy of a process.
pub struct HandlerProxy {
    asker: Asker,
    credentials: Arc<Credentials>,
    /// Where it listens, once there was a run.
    address: Mutex<Option<SocketAddr>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A spider whose programs use it.
struct User {
    own: AsSpider,
    passage: Passage,
}

/// Lets the runs of one spider's program use it.
struct Access {
    proxy: Arc<HandlerProxy>,
    user: Arc<User>,
}

impl HandlerProxy {
    /// For a process that crawls nothing, by the schedules that `hosts` keeps.
    pub fn alone(settings: Arc<Settings>, hosts: Arc<dyn Hosts>) -> Arc<Self> {
        let proxy = Self::of(Asker::alone(settings, hosts));
        let (schedules, stop) = (proxy.asker.schedules.clone(), proxy.stop.clone());
        proxy.tasks.spawn(async move {
            stop.run_until_cancelled(schedules.in_flight.freeing(&*schedules.hosts)).await;
        });
        proxy
    }

    pub(crate) fn of(asker: Asker) -> Arc<Self> {
        let (credentials, address, tasks, stop) = Default::default();
        Arc::new(Self { asker, credentials, address, tasks, stop })
    }

    /// What lets the program of `spider` use it; `None` if it has none, or is to have no proxy. What it asks for is sent by a client
    /// like `fetcher`.
    ///
    /// # Errors
    /// There can be no such client.
    pub(crate) fn access(
        self: &Arc<Self>,
        spider: &Spider,
        fetcher: &Fetcher,
    ) -> Result<Option<Arc<dyn ProxyAccess>>, Unusable> {
        if spider.handler.as_ref().is_none_or(|handler| handler.proxy == ProxyUse::None) {
            return Ok(None);
        }
        let passage = fetcher.passage()?;
        let own = AsSpider::of(spider, &self.asker.settings, fetcher.clone());
        Ok(Some(Arc::new(Access { proxy: Arc::clone(self), user: Arc::new(User { own, passage }) })))
    }

    /// The settings that it asks by.
    pub(crate) fn settings(&self) -> &Settings {
        &self.asker.settings
    }

    /// Where it listens, from now on at the latest.
    fn address(self: &Arc<Self>) -> io::Result<SocketAddr> {
        let mut address = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        match *address {
            Some(address) => Ok(address),
            None => Ok(*address.insert(listen::start(self)?)),
        }
    }

    /// Where it listens, if there was a run.
    fn known_address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it when what this returns is dropped, if nothing did so before.
    pub(crate) fn until_dropped(&self) -> DropGuard {
        self.stop.clone().drop_guard()
    }

    /// Ends all that goes through it.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = timeout(LAST_WORD, self.tasks.wait()).await;
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
