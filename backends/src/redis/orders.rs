//! What people order of crawls: to be paused, to go on, to be cancelled.
//!
//! An order is carried out in Redis, which gives it an instant, and then written to the log. A Redis that has lost its last second, or a
//! replica that was behind when it took over, knows an earlier order than the log. Its data is of another run then
//! (`scripts/record.lua`), so no page of the crawl begins before the log was read.

use tracing::debug;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

use super::keys::CrawlKeys;
use super::news::LOGGED;
use super::script_calls::{corrupt, over};
use super::{Link, RedisRecords};
use crate::control_log::Record;

/// A crawl as an order has found it.
struct Ordered {
    before: String,
    /// The instant of the last order.
    at: UnixMs,
}

/// The script's reply to an order.
enum Reply {
    Done(Ordered),
    Unknown,
    /// An earlier order may be lost.
    Unsure,
}

impl RedisRecords {
    /// Orders what becomes of a crawl. It holds from then on: when this returns, the log has it.
    pub(super) async fn order(&self, crawl: &CrawlRef, status: CrawlState) -> Result<()> {
        let apart = self.redis.apart().await?;
        let Ordered { before, at } = self.carry_out(&apart, crawl, verb(status)).await?;
        // Its end may be ordered again, as an answer may have been lost.
        let is_told_again = status == CrawlState::Cancelled && before == status.as_str();
        if !is_told_again && !matches!(&*before, "running" | "paused" | "pending") {
            return Err(over(crawl, &before));
        }
        self.log(|| Record::status(crawl, status, Some(at))).await?;
        if status.is_over() {
            self.keep_noted(crawl, LOGGED, &1).await?;
        }
        apart.until_durable(&CrawlKeys::new(crawl).crawl).await;
        Ok(())
    }

    /// Whether the log has the end of a crawl; not, where somebody has written over what says so.
    pub(super) async fn has_end_written(&self, crawl: &CrawlRef) -> bool {
        let noted = redis::cmd("HEXISTS").arg(CrawlKeys::new(crawl).told).arg(LOGGED).to_owned();
        self.redis.query(&noted).await.unwrap_or_default()
    }

    /// Writes down that a crawl has ended, so that a Redis which forgets it does not begin it anew. If that fails, the sweeper does it.
    pub(super) async fn write_end_down(&self, crawl: &CrawlRef, status: CrawlState) {
        let written = async {
            self.log(|| Record::status(crawl, status, None)).await?;
            self.keep_noted(crawl, LOGGED, &1).await
        };
        if let Err(error) = written.await {
            debug!(crawl = %crawl.id, %error, "the end of a crawl is not in the stream control yet");
        }
    }

    async fn carry_out(&self, link: &Link, crawl: &CrawlRef, verb: &str) -> Result<Ordered> {
        loop {
            match self.command(link, crawl, verb, None).await? {
                Reply::Done(ordered) => return Ok(ordered),
                Reply::Unknown => return Err(over(crawl, "unknown")),
                Reply::Unsure => self.obey(crawl).await?,
            }
        }
    }

    /// Carries out the last order that the log has of a crawl, unless a later one is known here. From now on the orders of the crawl are known.
    pub(super) async fn carry_out_logged(
        &self,
        crawl: &CrawlRef,
        status: CrawlState,
        at: UnixMs,
    ) -> Result<()> {
        // Whatever is left of a crawl that had finished ends by itself.
        let verb = if at.0 == 0 { "" } else { verb(status) };
        self.command(&self.redis, crawl, verb, Some(at)).await.map(drop)
    }

    /// Takes in what the log says, if this server may have lost what was ordered of the crawl.
    pub(super) async fn obey(&self, crawl: &CrawlRef) -> Result<()> {
        let _turn = self.turn().await;
        // Whoever was first has done it for those who waited.
        if let Reply::Unsure = self.command(&self.redis, crawl, "", None).await? {
            self.recover(Some(crawl)).await?;
        }
        Ok(())
    }

    async fn command(
        &self,
        link: &Link,
        crawl: &CrawlRef,
        verb: &str,
        logged: Option<UnixMs>,
    ) -> Result<Reply> {
        let keys = CrawlKeys::new(crawl);
        let mut call = self.scripts.command.prepare_invoke();
        call.key(&keys.crawl).key(&keys.pending).key(&keys.leases).arg(verb).arg(crawl.id.as_str());
        call.arg(logged.map_or_else(|| "-".to_owned(), |at| at.0.to_string()));
        let reply: Vec<String> = link.run(&call).await?;
        match &reply[..] {
            [] => Ok(Reply::Unknown),
            [unsure] if unsure == "unsure" => Ok(Reply::Unsure),
            [before, at] => {
                let at = at.parse().map(UnixMs).map_err(|_| corrupt("command"))?;
                Ok(Reply::Done(Ordered { before: before.clone(), at }))
            }
            _ => Err(corrupt("command")),
        }
    }
}

/// What brings a crawl there.
fn verb(status: CrawlState) -> &'static str {
    match status {
        CrawlState::Paused => "pause",
        CrawlState::Running | CrawlState::Pending => "resume",
        CrawlState::Cancelled => "cancel",
        CrawlState::Finished => "",
    }
}
