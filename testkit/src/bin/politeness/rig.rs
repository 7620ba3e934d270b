//! The fleet that is measured.

use std::io;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use trawl_testkit::faults::fleet::{Fleet, Programs};
use trawl_testkit::faults::scenario::CRAWL;
use trawl_testkit::faults::timeline::Timeline;
use trawl_testkit::servers::{self, VirtualHost};

/// Maximum time of a measurement.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// A fleet on a virtual host and a database of its own.
pub(crate) struct Rig {
    pub(crate) fleet: Fleet,
    pub(crate) folder: TempDir,
    _broker: VirtualHost,
}

impl Rig {
    /// Starts `workers` workers.
    pub(crate) async fn start(trawl: &Path, workers: usize, settings: &[(&str, &str)]) -> io::Result<Self> {
        let folder = TempDir::with_prefix("trawl-politeness-")?;
        let broker = VirtualHost::new().await;
        let store = servers::own_database().await;
        let mut env = vec![
            ("RABBITMQ_URL".to_owned(), broker.url.reveal().to_string()),
            ("REDIS_URL".to_owned(), store.reveal().to_string()),
            ("TRAWL__FETCH__ALLOW_PRIVATE".to_owned(), "true".to_owned()),
            ("TRAWL__CACHE__TTL".to_owned(), "0s".to_owned()),
            ("TRAWL__QUEUES__BULK__TTL".to_owned(), "6h".to_owned()),
        ];
        env.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let (trawl, folder_path) = (trawl.canonicalize()?, folder.path().to_owned());
        let programs =
            Programs { trawl, folder: folder_path, env, clock: None, old: None, first: Vec::new() };
        let fleet = Fleet::start(programs, workers, Timeline::new(Instant::now(), false))?;
        Ok(Self { fleet, folder, _broker: broker })
    }

    /// Has the producer read a list of URLs.
    pub(crate) fn produce(&mut self, urls: &[String]) -> io::Result<()> {
        let list = self.folder.path().join("urls.txt");
        std::fs::write(&list, urls.join("\n"))?;
        let list = list.display().to_string();
        self.fleet.produce(["producer", &list, "--crawl", CRAWL].map(str::to_owned).to_vec());
        Ok(())
    }

    /// Waits until the producer has queued everything.
    pub(crate) async fn produced(&self) {
        while self.fleet.producer().is_some() || !self.fleet.has_produced() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Starts a worker.
    pub(crate) fn worker(&self) -> io::Result<Fleet> {
        Fleet::start(self.fleet.programs().clone(), 1, Timeline::new(Instant::now(), false))
    }
}
