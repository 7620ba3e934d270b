//! Operators' commands for crawls: pause, resume, cancel.
//!
//! A command is carried out in Redis, which gives it an instant, and then written to the log. A Redis that has
//! lost its last second, or a replica that was behind when it took over, knows an older command than the log. In
//! that case its data is of another run (`scripts/record.lua`), so no page of the crawl begins before the log was
//! read.

use tracing::debug;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::CrawlRef;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

use crate::control_log::Record;
use crate::redis::crawls::news::LOGGED;
use crate::redis::keys::CrawlKeys;
use crate::redis::script_calls::{corrupt, over};
use crate::redis::server::durability::IN_LOG;
use crate::redis::{Link, RedisRecords};

/// Field of a crawl's marks: when an order was given last that is in no log, in ms.
const ORDERED: &str = "ordered";

/// The state in which a command found a crawl.
struct Ordered {
    before: String,
    /// The instant of the last command.
    at: UnixMs,
}

/// The script's reply to a command.
enum Reply {
    Done(Ordered),
    Unknown,
    /// An earlier command may be lost.
    Unsure,
}

impl RedisRecords {
    /// Sets the status of a crawl. When this returns, the log has the command.
    pub(crate) async fn order(&self, crawl: &CrawlRef, status: CrawlState) -> Result<()> {
        let apart = self.redis.apart().await?;
        let Ordered { before, at } = self.carry_out(&apart, crawl, verb(status)).await?;
        // The cancellation may be repeated, because an answer may have been lost.
        let is_told_again = status == CrawlState::Cancelled && before == status.as_str();
        if !is_told_again && !matches!(&*before, "running" | "paused" | "pending") {
            return Err(over(crawl, &before));
        }
        self.log(|| Record::status(crawl, status, Some(at))).await?;
        if status.is_over() {
            self.keep_noted(crawl, LOGGED, &1).await?;
        }
        apart.until_durable(&CrawlKeys::new(crawl).crawl, IN_LOG).await;
        Ok(())
    }

    /// Waits until everything ordered for a crawl so far survives a loss of the server's last second. Such a server
    /// learns pauses and ends from the log, and other orders from nobody.
    pub(crate) async fn await_orders(&self, crawl: &CrawlRef) -> Result<()> {
        let (apart, told) = (self.redis.apart().await?, CrawlKeys::new(crawl).told);
        // A connection can only wait for writes of its own; the server keeps them in order with those of others.
        let mark = redis::cmd("HSET").arg(&told).arg(ORDERED).arg(UnixMs::now().0).to_owned();
        let () = apart.query(&mark).await?;
        apart.until_durable(&told, "if it loses its last second, the order has to be repeated").await;
        Ok(())
    }

    /// Returns whether the log has the end of a crawl; `false` if somebody has overwritten the mark.
    pub(crate) async fn has_logged_end(&self, crawl: &CrawlRef) -> bool {
        let noted = redis::cmd("HEXISTS").arg(CrawlKeys::new(crawl).told).arg(LOGGED).to_owned();
        self.redis.query(&noted).await.unwrap_or_default()
    }

    /// Writes to the log that a crawl has ended, so that a Redis that forgets it does not begin it anew. If that
    /// fails, the sweeper does it.
    pub(crate) async fn log_end(&self, crawl: &CrawlRef, status: CrawlState) {
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

    /// Carries out the last command that the log has for a crawl, unless a later one is known here. From now on
    /// the commands for the crawl are known.
    pub(crate) async fn carry_out_logged(
        &self,
        crawl: &CrawlRef,
        status: CrawlState,
        at: UnixMs,
    ) -> Result<()> {
        // A crawl that had finished ends by itself, whatever is left of it.
        let verb = if at.0 == 0 { "" } else { verb(status) };
        self.command(&self.redis, crawl, verb, Some(at)).await.map(drop)
    }

    /// Reads the log, if this server may have lost commands for the crawl.
    pub(crate) async fn obey(&self, crawl: &CrawlRef) -> Result<()> {
        let _turn = self.turn().await;
        // The first caller has done it for those that waited.
        if let Reply::Unsure = self.command(&self.redis, crawl, "", None).await? {
            self.apply_log(Some(crawl)).await?;
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
        let mut call = self.scripts.command.on(&CrawlKeys::new(crawl));
        call.arg(verb).arg(crawl.id.as_str());
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

/// Returns the command that sets this status.
fn verb(status: CrawlState) -> &'static str {
    match status {
        CrawlState::Paused => "pause",
        CrawlState::Running | CrawlState::Pending => "resume",
        CrawlState::Cancelled => "cancel",
        CrawlState::Finished => "",
    }
}
