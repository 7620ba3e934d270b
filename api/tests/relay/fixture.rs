//! An API over a state file, and runners that reach nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use trawl_api::{Access as Callers, Backend};
use trawl_common::names::{ProjectName, RunnerName};
use trawl_common::ports::{Access, Claimed, Fatal, Frontier, Joined, Joining, RunnerKey};
use trawl_common::settings::{self, Settings};
use trawl_runner::{Api, Link};
use trawl_testkit::stand_ins::AllRequests;

use crate::support;
pub(crate) use crate::support::LIMIT;

/// An API that listens.
pub(crate) struct Serving {
    pub(crate) backend: Backend,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    server: JoinSet<()>,
    _stops: DropGuard,
}

impl Serving {
    /// Serves an API over a state file of its own.
    pub(crate) async fn start() -> Self {
        let (backend, _) = support::state_file(|_| Arc::new(|_, _, _| unreachable!("no page is tried")));
        Self::over(backend, "127.0.0.1:0").await
    }

    /// Serves an API over a backend.
    pub(crate) async fn over(backend: Backend, at: &str) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Arc::new(Callers::new(&settings::Api::default(), address).unwrap());
        let stop = CancellationToken::new();
        let mut server = JoinSet::new();
        let router = trawl_api::router(backend.clone(), access, stop.clone());
        server.spawn(trawl_api::serve(listener, router, Vec::new(), stop.clone()));
        let stops = stop.clone().drop_guard();
        Self { backend, address, stop, server, _stops: stops }
    }

    /// Ends the API, as a crash does, and serves another one at its address.
    pub(crate) async fn restart(mut self) -> Self {
        self.stop.cancel();
        self.server.shutdown().await;
        let Self { backend, address, .. } = &self;
        Self::over(backend.clone(), &address.to_string()).await
    }

    /// Returns a runner with access to the default project.
    pub(crate) async fn runner(&self, name: &str) -> Runner {
        let runner = self.stranger(name).await;
        self.allow(name, "default", Access::Assign).await;
        runner
    }

    /// Returns a runner that has asked for access.
    pub(crate) async fn stranger(&self, name: &str) -> Runner {
        let (name, key): (RunnerName, _) = (name.parse().unwrap(), RunnerKey::generate());
        self.backend.runners.ask(&name, &key.digest()).await.unwrap();
        self.known(name, key)
    }

    /// Returns a runner with this name and key, which may be another's.
    pub(crate) fn known(&self, name: RunnerName, key: RunnerKey) -> Runner {
        let api = Api::new(&[format!("http://{}", self.address)], name.clone(), key.clone()).unwrap();
        Runner { link: Arc::new(Link::new(api)), name, key }
    }

    pub(crate) async fn allow(&self, name: &str, project: &str, access: Access) {
        let (name, project): (RunnerName, ProjectName) = (name.parse().unwrap(), project.parse().unwrap());
        assert!(self.backend.runners.allow(&name, &project, access).await.unwrap());
    }
}

/// A runner.
pub(crate) struct Runner {
    pub(crate) link: Arc<Link>,
    pub(crate) name: RunnerName,
    pub(crate) key: RunnerKey,
}

/// A runner that works by hand.
pub(crate) struct Hand {
    pub(crate) frontier: Arc<dyn Frontier>,
    _maintenance: JoinSet<Fatal>,
}

impl Runner {
    pub(crate) fn join(&self) -> Hand {
        let ports = trawl_runner::ports(Arc::clone(&self.link));
        let Joined { frontier, maintenance } = ports.engine.join(Joining {
            worker: "ignored".parse().unwrap(),
            settings: Settings::default(),
            health: Arc::default(),
            requests: Arc::new(AllRequests),
            tasks: 20,
            stop: CancellationToken::new(),
        });
        Hand { frontier, _maintenance: JoinSet::from_iter([maintenance]) }
    }
}

impl Hand {
    /// Claims so many URLs.
    pub(crate) async fn claim(&self, count: usize) -> Vec<Claimed> {
        let mut all = Vec::new();
        while all.len() < count {
            let more = self.frontier.claim(count - all.len());
            all.extend(tokio::time::timeout(LIMIT, more).await.unwrap().unwrap());
        }
        all
    }
}

/// Waits for what must come.
pub(crate) async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.unwrap();
}
