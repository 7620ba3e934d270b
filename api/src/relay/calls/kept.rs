//! The calls about what is kept: page histories, sessions at sites, spiders' texts, items, and the log.

use std::sync::Arc;

use async_trait::async_trait;
use tracing::info;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::logs::{LogEntry, MAX_RECIPE_SHOWN, TaskEnd};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claim as HeldClaim, Error, ErrorKind, Page, StoredSession};
use trawl_common::project::{Grant, Machine, VersionReport};
use trawl_common::relay::{Log, Look, NoteVersion, Pause, Put, ReadGrants, ReadSession, Text, WriteSession};
use trawl_common::session::{SessionId, SessionOwner};
use trawl_common::spider::page_history::Visited;
use trawl_common::text::{printable, start_of};
use trawl_common::time::UnixMs;

use super::{MAX_THINGS, Result, Serve, at_most, check, may_see};
use crate::relay::guard::{self, Refusal};
use crate::relay::session::Session;
use crate::relay::spiders::CrawlSpider;

/// Maximum number of pages of one call that stores items.
const MAX_PAGES: usize = 256;

/// Maximum number of items of a page.
const MAX_ITEMS: usize = 10_000;

#[async_trait]
impl Serve for Look {
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<Option<Visited>>> {
        at_most(self.urls.len(), MAX_THINGS)?;
        match session.works_for(&self.spider) {
            true => Ok(session.engine.ports.pages.look(&self.spider, &self.urls).await?),
            false => Ok(vec![None; self.urls.len()]),
        }
    }
}

/// Checks that a session at a site is one of a spider that the runner works for. In a new session it may have to wait for
/// work of that spider.
fn check_session(session: &Session, id: &SessionId) -> Result<()> {
    let is_one = match &id.owner {
        SessionOwner::Spider(spider) => session.works_for(spider),
        SessionOwner::Shared(_) => session.holds_session(&id.owner),
    };
    let none = || Error::new(ErrorKind::Unavailable, "the runner has no work of a spider with that session");
    if is_one { Ok(()) } else { Err(none().into()) }
}

#[async_trait]
impl Serve for ReadSession {
    async fn serve(self, session: &Arc<Session>) -> Result<Option<StoredSession>> {
        check_session(session, &self.session)?;
        Ok(session.engine.ports.sessions.read(&self.session, self.known).await?)
    }
}

#[async_trait]
impl Serve for WriteSession {
    async fn serve(self, session: &Arc<Session>) -> Result<Option<u64>> {
        let Self { session: id, expected, state } = self;
        check_session(session, &id)?;
        Ok(session.engine.ports.sessions.write(&id, expected, &state).await?)
    }
}

#[async_trait]
impl Serve for Pause {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        let Self { crawl, why } = self;
        if !session.holds_of(&crawl) {
            return Err(not_its_own(&crawl).into());
        }
        let name = session.runner().name.clone();
        info!(runner = %name, crawl = %crawl.id, "a runner pauses a crawl");
        let why = format!("{} (the runner {name})", printable(&why, 1024));
        Ok(session.engine.ports.control.hold(&crawl, &why).await?)
    }
}

#[async_trait]
impl Serve for Text {
    async fn serve(self, session: &Arc<Session>) -> Result<Option<String>> {
        if !may_see(session, &self.crawl).await? {
            return Err(not_its_own(&self.crawl).into());
        }
        let spider = match session.spider_of(&self.crawl) {
            Some(spider) => spider,
            None => match session.engine.spiders.of(&self.crawl).await {
                // The runner holds nothing of it any more, and nobody works by a file that cannot be used.
                Err(error) if error.kind == ErrorKind::Refused => return Ok(None),
                spider => spider?,
            },
        };
        Ok(spider.text.clone())
    }
}

/// Returns the error for a crawl of which a runner holds nothing, or nothing any more.
fn not_its_own(crawl: &CrawlRef) -> Error {
    Error::new(ErrorKind::Stale, format_args!("the runner holds nothing of the crawl {}", crawl.id))
}

#[async_trait]
impl Serve for ReadGrants {
    /// Says what the projects of spiders grant, by the access that the runner has now.
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<Option<Grant>>> {
        at_most(self.spiders.len(), MAX_THINGS)?;
        let known = session.runner();
        let now = session.relay.runners.runner(&known.name).await?.filter(|runner| runner.key == known.key);
        let Some(runner) = now else { return Err(Refusal::Forbidden("its access was taken back")) };
        let grants = session.engine.ports.grants.grants(&self.spiders).await?;
        Ok(grants.into_iter().map(|grant| grant.map(|grant| guard::grant(&runner, grant))).collect())
    }
}

#[async_trait]
impl Serve for NoteVersion {
    /// Notes a report on the version of a project whose work the runner may do. An older report, of another project or from
    /// before a revocation, is left out.
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        let runner = session.runner();
        if !runner.is_assigned(&self.report.project) {
            return Ok(());
        }
        let report = VersionReport {
            machine: Machine::of_runner(&runner.name),
            at: self.report.at.min(UnixMs::now()),
            ..self.report
        };
        Ok(session.engine.ports.grants.note_version(&report).await?)
    }
}

#[async_trait]
impl Serve for Put {
    /// Stores pages in the sinks of their spiders. Pages that the runner holds no more are left out: another fetches them.
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        at_most(self.pages.len(), MAX_PAGES)?;
        let mut by_spider: Vec<(Arc<CrawlSpider>, Vec<Page>)> = Vec::new();
        for page in self.pages {
            at_most(page.items.len(), MAX_ITEMS)?;
            let claim = HeldClaim { crawl: page.crawl.clone(), key: page.key.clone() };
            let Some(held) = session.held(&claim) else {
                check(session.knows(&claim), "it does not hold the page of these items")?;
                continue;
            };
            let spider = Arc::clone(&held.spider);
            let page = guard::page(&held, page)?;
            match by_spider.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &spider)) {
                Some((_, pages)) => pages.push(page),
                None => by_spider.push((spider, vec![page])),
            }
        }
        for (spider, pages) in by_spider {
            for sink in &spider.sinks {
                sink.put(&pages).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Serve for Log {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        let Self { entries, are_ends } = self;
        at_most(entries.len(), MAX_THINGS)?;
        let entries: Vec<LogEntry> =
            entries.into_iter().filter_map(|entry| logged(session, entry, are_ends)).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let ports = &session.engine.ports;
        let log = if are_ends { &ports.ended_tasks } else { &ports.logs };
        Ok(log.append(&entries).await?)
    }
}

/// Returns an entry of the log as the runner may write it: in the name of its worker, about its own work.
fn logged(session: &Session, entry: LogEntry, is_end: bool) -> Option<LogEntry> {
    let LogEntry { spider, crawl, key, host, class, ended, .. } = entry;
    let spider = spider.filter(|spider| session.works_for(spider));
    let crawl = crawl.filter(|_| spider.is_some());
    let claim = || {
        Some(HeldClaim {
            crawl: CrawlRef { id: crawl.clone()?, spider: spider.clone()? },
            key: key.as_deref()?.parse().ok()?,
        })
    };
    if is_end && !claim().is_some_and(|claim| session.knows(&claim) && session.note_logged(&claim)) {
        return None;
    }
    let text = |text: String| printable(&text, 8 * 1024);
    Some(LogEntry {
        time: entry.time.min(UnixMs::now()),
        level: entry.level,
        worker: session.worker.clone(),
        spider,
        crawl,
        host: host.map(text),
        key: key.map(text),
        class: class.map(text),
        message: entry.message,
        ended: ended.filter(|_| is_end).map(end_of_task),
    })
}

/// Returns the end of a task as it is kept.
fn end_of_task(end: TaskEnd) -> TaskEnd {
    TaskEnd {
        outcome: end.outcome.parse().map_or("failed", Terminal::as_str).to_owned(),
        recipe: start_of(&end.recipe, MAX_RECIPE_SHOWN).to_owned(),
        ..end
    }
}
