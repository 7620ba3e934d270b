//! The other ports of a worker over a link.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use trawl_common::logs::LogEntry;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::politeness::gcra::Slot;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{
    BackoffRequest, Cache, Ended, Error, ErrorKind, Grants, HoldCrawl, HostSlotRequest, Hosts,
    InFlightRequest, LastVisits, LogPart, LogPlace, Logs, Result, Revision, RobotsEntry, SentLate, Sessions,
    SpiderTexts, StoredSession, WorkerPorts, one_each,
};
use trawl_common::project::{Grant, VersionReport};
use trawl_common::relay::{
    GiveUpRobots, KeepRobots, Late, LeaveHosts, Log, Look, NoteVersion, Pause, PushBack, ReadGrants,
    ReadSession, Reserve, Robots, Stay, Text, WriteSession,
};
use trawl_common::session::{SessionId, SessionState};
use trawl_common::spider::SpiderText;
use trawl_common::spider::page_history::Visited;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use crate::frontier::RelayEngine;
use crate::link::Link;
use crate::sinks::RelaySinks;

/// Returns the ports of a worker that reaches nothing but the API.
pub fn ports(link: Arc<Link>) -> WorkerPorts {
    let relay = Arc::new(Relay(Arc::clone(&link)));
    WorkerPorts {
        engine: Arc::new(RelayEngine(Arc::clone(&link))),
        texts: relay.clone(),
        hosts: relay.clone(),
        cache: relay.clone(),
        pages: relay.clone(),
        sessions: relay.clone(),
        control: relay.clone(),
        grants: relay,
        sink_factory: Arc::new(RelaySinks(Arc::clone(&link))),
        logs: Arc::new(RelayLog { link: Arc::clone(&link), are_ends: false }),
        ended_tasks: Arc::new(RelayLog { link, are_ends: true }),
        // The API's side of a session keeps it.
        history: None,
    }
}

struct Relay(Arc<Link>);

#[async_trait]
impl Hosts for Relay {
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        one_each(self.0.call(&Reserve { asks: asks.to_vec() }).await?, asks.len(), "slots")
    }

    async fn stay(&self, visits: &[InFlightRequest], lapse: Duration) -> Result<()> {
        self.0.call(&Stay { visits: visits.to_vec(), lapse }).await
    }

    async fn leave(&self, ended: &[Ended]) -> Result<()> {
        self.0.call(&LeaveHosts { ended: ended.to_vec() }).await
    }

    async fn sent_late(&self, sent: &[SentLate]) -> Result<()> {
        self.0.call(&Late { sent: sent.to_vec() }).await
    }

    async fn push_back(&self, key: &HostKey, refusal: &BackoffRequest) -> Result<UnixMs> {
        let wait = self.0.call(&PushBack { key: key.clone(), refusal: refusal.clone() }).await?;
        Ok(UnixMs::now().plus(wait))
    }

    async fn robots(&self, key: &RobotsKey, lease: Duration) -> Result<RobotsEntry> {
        self.0.call(&Robots { key: key.clone(), lease }).await
    }

    async fn keep_robots(&self, key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()> {
        self.0.call(&KeepRobots { key: key.clone(), file: file.clone(), ttl }).await
    }

    async fn give_up_robots(&self, key: &RobotsKey) -> Result<()> {
        self.0.call(&GiveUpRobots { key: key.clone() }).await
    }
}

/// No responses: those of a runner would reach the pages of others, which have no reason to believe it.
#[async_trait]
impl Cache for Relay {
    async fn get(&self, _: &CanonicalUrl) -> Result<Option<Response>> {
        Ok(None)
    }

    async fn put(&self, _: &CanonicalUrl, _: &Response, _: Duration) -> Result<()> {
        Ok(())
    }
}

#[async_trait]
impl LastVisits for Relay {
    async fn look(&self, spider: &SpiderName, urls: &[CanonicalUrl]) -> Result<Vec<Option<Visited>>> {
        let call = Look { spider: spider.clone(), urls: urls.to_vec() };
        one_each(self.0.call(&call).await?, urls.len(), "pages")
    }
}

#[async_trait]
impl Sessions for Relay {
    async fn read(&self, session: &SessionId, known: Revision) -> Result<Option<StoredSession>> {
        self.0.call(&ReadSession { session: session.clone(), known }).await
    }

    async fn write(
        &self,
        session: &SessionId,
        expected: Revision,
        state: &SessionState,
    ) -> Result<Option<Revision>> {
        self.0.call(&WriteSession { session: session.clone(), expected, state: state.clone() }).await
    }
}

#[async_trait]
impl HoldCrawl for Relay {
    async fn hold(&self, crawl: &CrawlRef, why: &str) -> Result<()> {
        self.0.call(&Pause { crawl: crawl.clone(), why: why.to_owned() }).await
    }
}

#[async_trait]
impl SpiderTexts for Relay {
    async fn spider_text(&self, crawl: &CrawlRef) -> Result<Option<SpiderText>> {
        Ok(self.0.call(&Text { crawl: crawl.clone() }).await?.map(SpiderText::from))
    }
}

#[async_trait]
impl Grants for Relay {
    async fn grants(&self, spiders: &[SpiderName]) -> Result<Vec<Option<Grant>>> {
        one_each(self.0.call(&ReadGrants { spiders: spiders.to_vec() }).await?, spiders.len(), "grants")
    }

    async fn note_version(&self, report: &VersionReport) -> Result<()> {
        self.0.call(&NoteVersion { report: report.clone() }).await
    }
}

/// The log, or the list of ended tasks, to which a runner only appends.
struct RelayLog {
    link: Arc<Link>,
    are_ends: bool,
}

#[async_trait]
impl Logs for RelayLog {
    /// Entries from after its last session are in the runner's own log alone: they are no reason to join anew.
    async fn append(&self, entries: &[LogEntry]) -> Result<()> {
        if self.link.has_left() {
            return Ok(());
        }
        self.link.call(&Log { entries: entries.to_vec(), are_ends: self.are_ends }).await
    }

    async fn before(&self, _: LogPlace, _: usize) -> Result<LogPart> {
        Err(unread())
    }

    async fn after(&self, _: LogPlace, _: usize) -> Result<LogPart> {
        Err(unread())
    }
}

fn unread() -> Error {
    Error::new(ErrorKind::Refused, "a runner does not read the log")
}
