//! Commands for all work of a project's spiders.

use tokio::time::Instant;

use crate::dead_letters::{Filter, Replay, page};
use crate::frontier::crawl::{CrawlState, CrawlStats};
use crate::names::ProjectName;
use crate::ports::{Control, Engine, ErrorKind, Result, Stats};
use crate::project::Project;

/// Pauses the crawls of a project's spiders that are not over; what is taken in by them later waits as well. Returns their
/// number, without those that are paused already.
///
/// # Errors
/// Fails as its ports do; then some may be paused.
pub async fn pause(project: &Project, stats: &dyn Stats, control: &dyn Control) -> Result<u64> {
    let why = why(&project.name);
    let mut paused = 0;
    for crawl in open_crawls(project, stats).await? {
        if crawl.status != CrawlState::Paused {
            paused += done(control.hold(&crawl.crawl_ref(), &why).await)?;
        }
    }
    Ok(paused)
}

/// Resumes the crawls that [`pause`] paused, and no other. Returns their number.
///
/// # Errors
/// Fails as its ports do; then some may be resumed.
pub async fn resume(project: &Project, stats: &dyn Stats, control: &dyn Control) -> Result<u64> {
    let why = why(&project.name);
    let mut resumed = 0;
    for crawl in open_crawls(project, stats).await? {
        if crawl.status == CrawlState::Paused && crawl.held.as_ref() == Some(&why) {
            resumed += done(control.resume(&crawl.crawl_ref()).await)?;
        }
    }
    Ok(resumed)
}

/// The result of a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reset {
    /// Failed URLs and tasks that are pending again.
    pub sent: u64,
    /// Whether there were no more of them.
    pub is_complete: bool,
}

/// Sends the failed URLs and tasks of a project's spiders again, with no failure counted, until a time limit.
///
/// # Errors
/// Fails as its ports do; then some may be sent.
pub async fn reset(
    project: &Project,
    stats: &dyn Stats,
    control: &dyn Control,
    engine: &dyn Engine,
    until: Instant,
) -> Result<Reset> {
    let mut sent = 0;
    for crawl in stats.crawls().await?.iter().filter(|crawl| project.spiders.contains(&crawl.spider)) {
        if control.count_failed(&crawl.crawl_ref()).await? == 0 {
            continue;
        }
        let replay = Replay::new(crawl, engine, stats).await?;
        let replayed = replay_all(&replay, control, until).await;
        replay.close(control).await?;
        let Reset { sent: of_crawl, is_complete } = replayed?;
        sent += of_crawl;
        if !is_complete {
            return Ok(Reset { sent, is_complete });
        }
    }
    Ok(Reset { sent, is_complete: true })
}

async fn replay_all(replay: &Replay<'_>, control: &dyn Control, until: Instant) -> Result<Reset> {
    let (mut sent, mut cursor) = (0, Some(0));
    while let Some(at) = cursor {
        if Instant::now() >= until {
            return Ok(Reset { sent, is_complete: false });
        }
        let read = page(control, replay.source(), at, &Filter::default()).await?;
        sent += replay.send(&read.dead_letters).await?;
        cursor = read.next;
    }
    Ok(Reset { sent, is_complete: true })
}

async fn open_crawls(project: &Project, stats: &dyn Stats) -> Result<Vec<CrawlStats>> {
    let mut all = Vec::new();
    for spider in &project.spiders {
        all.extend(stats.open_crawls(spider).await?);
    }
    Ok(all)
}

/// Returns the reason why a crawl is paused, which tells these crawls from others.
fn why(project: &ProjectName) -> String {
    format!("the project {project} is paused")
}

/// Returns how many crawls a command was for: none if the crawl has ended meanwhile.
fn done(commanded: Result<()>) -> Result<u64> {
    match commanded {
        Err(error) if error.kind == ErrorKind::Stale => Ok(0),
        commanded => commanded.map(|()| 1),
    }
}
