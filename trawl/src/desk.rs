//! Where commands find crawls: on the fleet's servers, or in the state file of `trawl crawl`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trawl_backends::embedded::Embedded;
use trawl_backends::fleet;
use trawl_backends::rabbitmq::RabbitMq;
use trawl_backends::redis;
use trawl_cli::{Fail, Global};
use trawl_common::crawl::Books;
use trawl_common::names::CrawlId;
use trawl_common::ports::{Control, Error, ErrorKind, Frontier, HostControl, Queue};
use trawl_common::settings::Settings;

/// Which crawls a command is about.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Where {
    /// Look into the state file FILE of `trawl crawl`, not at the fleet
    #[arg(long, value_name = "FILE", global = true)]
    state: Option<PathBuf>,
}

/// The books of crawls, the hosts, and what can be done to them.
pub(crate) struct Desk {
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) control: Arc<dyn Control>,
    pub(crate) hosts: Arc<dyn HostControl>,
    pub(crate) settings: Settings,
    embedded: Option<Embedded>,
}

impl Desk {
    /// For a command that changes something: no other process may have the state file.
    pub(crate) async fn open(global: &Global, place: &Where) -> Result<Self, Fail> {
        Self::with(global, place, Embedded::open).await
    }

    /// For a command that only looks: the crawl may be running.
    pub(crate) async fn look(global: &Global, place: &Where) -> Result<Self, Fail> {
        let watch = |file: &Path, patience| match Embedded::watch(file, patience) {
            // One of an older version is brought up to date first.
            Err(error) if error.kind == ErrorKind::Refused => Embedded::open(file, patience),
            watched => watched,
        };
        Self::with(global, place, watch).await
    }

    async fn with(
        global: &Global,
        place: &Where,
        open: impl Fn(&Path, Duration) -> Result<Embedded, Error>,
    ) -> Result<Self, Fail> {
        let settings = Global::load(&global.source())?;
        let Some(file) = &place.state else { return Self::of_fleet(settings).await };
        if !file.exists() {
            return Err(Fail::usage(format!("{}: there is no such state file", file.display())));
        }
        let store = open(file, settings.recovery.patience).map_err(Fail::usage)?;
        Ok(Self {
            frontier: store.frontier(),
            control: store.control(),
            hosts: store.host_control(),
            settings,
            embedded: Some(store),
        })
    }

    async fn of_fleet(settings: Settings) -> Result<Self, Fail> {
        let redis = redis::connect(&settings.redis).await?;
        redis::check_schema(&redis).await?;
        let (frontier, hosts) = fleet::records(&settings, redis)?;
        frontier.follow_clock().await?;
        Ok(Self { frontier: frontier.clone(), control: frontier, hosts, settings, embedded: None })
    }

    /// Where messages go.
    pub(crate) async fn queue(&self) -> Result<Arc<dyn Queue>, Fail> {
        match &self.embedded {
            Some(store) => Ok(store.queue()),
            None => {
                let Settings { rabbitmq, queues, items, .. } = &self.settings;
                Ok(Arc::new(RabbitMq::connect(rabbitmq, queues, items).await?))
            }
        }
    }

    /// Whether workers are waiting for what is sent.
    pub(crate) fn is_fleet(&self) -> bool {
        self.embedded.is_none()
    }

    /// The books of a crawl that must exist.
    pub(crate) async fn books(&self, id: &CrawlId) -> Result<Books, Fail> {
        let books = self.frontier.books(id).await?;
        books.ok_or_else(|| Fail::usage(format!("no crawl {id}: `trawl status` lists them")))
    }
}
