//! `trawl dlq replay` and `trawl dlq purge`.

use std::time::Duration;

use trawl_cli::{Fail, Outcome};
use trawl_common::crawl::Books;
use trawl_common::exit::Exit;
use trawl_common::names::{CrawlId, CrawlRef, WorkerId};
use trawl_common::ports::{Discovery, Queue, Terms};
use trawl_common::url::CanonicalUrl;

use super::filter::{Filter, Walk};
use super::{Failed, confirm, letters};
use crate::desk::Desk;

/// Which, and whether to ask.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Don't ask before every dead letter there is
    #[arg(short, long)]
    yes: bool,
}

/// How long a replay that dies keeps its crawl open.
const LEASE: Duration = Duration::from_secs(60);

impl Args {
    /// Each page of URLs leaves the list and becomes pending in one step, so that it can be stopped at any point.
    pub(super) async fn replay(self, desk: &Desk) -> Outcome {
        confirm("send again", &self.filter, self.yes)?;
        let queue = desk.queue().await?;
        let mut walk = Walk::new(desk, &self.filter).await?;
        let mut target: Option<Target> = None;
        let mut sent = 0;
        while let Some((crawl, page)) = walk.next().await? {
            if target.as_ref().is_none_or(|target| target.from != crawl) {
                close(desk, target.take()).await?;
            }
            if page.is_empty() {
                continue;
            }
            let into = match target.take() {
                Some(target) => target.renewed(desk).await?,
                None => Target::of(desk, crawl).await?,
            };
            sent += send(desk, &*queue, &into, &page).await?;
            target = Some(into);
        }
        close(desk, target).await?;
        let then = if desk.is_fleet() { "" } else { "; `trawl crawl` with this state file fetches them" };
        anstream::eprintln!("{} sent again{then}", letters(sent));
        Ok(Exit::Ok)
    }

    pub(super) async fn purge(self, desk: &Desk) -> Outcome {
        confirm("take out of the list", &self.filter, self.yes)?;
        let mut walk = Walk::new(desk, &self.filter).await?;
        let mut purged = 0;
        while let Some((crawl, page)) = walk.next().await? {
            let urls: Vec<CanonicalUrl> = page.iter().filter_map(Failed::canonical).collect();
            let invalid = page.into_iter().filter(|failed| failed.canonical().is_none());
            let texts: Vec<String> = invalid.map(|failed| failed.url).collect();
            if !urls.is_empty() {
                purged += desk.control.purge(&crawl, &urls).await?;
            }
            if !texts.is_empty() {
                purged += desk.control.purge_invalid(&crawl, &texts).await?;
            }
        }
        anstream::eprintln!("{} purged", letters(purged));
        Ok(Exit::Ok)
    }
}

/// Where the URLs of a crawl go: into itself, or, if it is over, into a successor that is open for as long.
struct Target {
    from: CrawlRef,
    into: CrawlRef,
    lease: Option<Discovery>,
}

impl Target {
    async fn of(desk: &Desk, from: CrawlRef) -> Result<Self, Fail> {
        let books = desk.books(&from.id).await?;
        if !books.status.is_over() {
            return Ok(Self { into: from.clone(), from, lease: None });
        }
        let into = successor(desk, &books).await?;
        anstream::eprintln!("crawl {} is {}: its URLs go into crawl {}", from.id, books.status, into.id);
        let holder = WorkerId::of_this_machine();
        let Terms { file, .. } = desk.frontier.terms(&from).await?;
        let terms = Terms { file, ..Terms::default() };
        let lease = desk.frontier.open(&into, terms, holder.as_str(), LEASE).await?;
        Ok(Self { from, into, lease: Some(lease) })
    }

    async fn renewed(self, desk: &Desk) -> Result<Self, Fail> {
        if let Some(lease) = &self.lease {
            desk.frontier.renew(lease, LEASE).await?;
        }
        Ok(self)
    }
}

/// The first of `<crawl>.r1`, `.r2` and on that is not over.
async fn successor(desk: &Desk, books: &Books) -> Result<CrawlRef, Fail> {
    for number in 1.. {
        let id: CrawlId = format!("{}.r{number}", books.crawl).parse().map_err(Fail::usage)?;
        if desk.frontier.books(&id).await?.is_none_or(|books| !books.status.is_over()) {
            return Ok(CrawlRef { id, spider: books.spider.clone() });
        }
    }
    unreachable!("numbers do not end")
}

async fn send(desk: &Desk, queue: &dyn Queue, target: &Target, page: &[Failed]) -> Result<u64, Fail> {
    let urls: Vec<CanonicalUrl> = page.iter().filter_map(Failed::canonical).collect();
    let messages = desk.control.replay(&target.from, &target.into, &urls).await?;
    queue.publish(&messages).await?;
    let sent: Vec<CanonicalUrl> = messages.into_iter().map(|message| message.url).collect();
    desk.frontier.confirm(&target.into, &sent).await?;
    Ok(sent.len() as u64)
}

async fn close(desk: &Desk, target: Option<Target>) -> Result<(), Fail> {
    if let Some(lease) = target.and_then(|target| target.lease) {
        desk.frontier.close(lease).await?;
    }
    Ok(())
}
