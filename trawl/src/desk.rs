//! Where commands find crawls: on the fleet's servers, or in the state file of `trawl crawl`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trawl_backends::embedded::Embedded;
use trawl_backends::fleet;
use trawl_backends::rabbitmq::RabbitMq;
use trawl_backends::redis;
use trawl_cli::{Fail, Global};
use trawl_common::crawl::Books;
use trawl_common::names::CrawlId;
use trawl_common::ports::{Control, Frontier, HostControl, Queue};
use trawl_common::settings::Settings;

/// Which crawls a command is about.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Where {
    /// Look into the state file FILE of `trawl crawl`, not at the fleet
    #[arg(long, value_name = "FILE")]
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
    pub(crate) async fn open(global: &Global, place: &Where) -> Result<Self, Fail> {
        let settings = Global::load(&global.source())?;
        match &place.state {
            Some(file) => Self::of_file(file, settings),
            None => Self::of_fleet(settings).await,
        }
    }

    async fn of_fleet(settings: Settings) -> Result<Self, Fail> {
        let redis = redis::connect(&settings.redis).await?;
        let (frontier, hosts) = fleet::records(&settings, redis)?;
        frontier.follow_clock().await?;
        Ok(Self { frontier: frontier.clone(), control: frontier, hosts, settings, embedded: None })
    }

    fn of_file(file: &Path, settings: Settings) -> Result<Self, Fail> {
        if !file.exists() {
            return Err(Fail::usage(format!("{}: there is no such state file", file.display())));
        }
        let store = Embedded::open(file, settings.recovery.patience).map_err(Fail::usage)?;
        Ok(Self {
            frontier: store.frontier(),
            control: store.control(),
            hosts: store.host_control(),
            settings,
            embedded: Some(store),
        })
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
