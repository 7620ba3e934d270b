//! The calls, each by the ports of the engine: about `work` that is handed out, about `hosts`, and about what is `kept`.

mod hosts;
mod kept;
mod work;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use trawl_common::names::CrawlRef;
use trawl_common::relay::Call;

use super::done;
use super::guard::Refusal;
use super::replies;
use super::session::Session;
use crate::problem::Problem;

/// Maximum number of things that one call is about.
const MAX_THINGS: usize = 1000;

type Result<T> = std::result::Result<T, Refusal>;

/// A call that the API serves.
#[async_trait]
pub(super) trait Serve: Call {
    /// Carries the call out.
    async fn serve(self, session: &Arc<Session>) -> Result<Self::Reply>;

    /// Returns where its reply is kept, if it is.
    fn slot(&self) -> Option<replies::Slot> {
        None
    }

    /// Returns the body of the response.
    async fn answer(self, session: Arc<Session>) -> std::result::Result<Bytes, Problem> {
        match self.serve(&session).await {
            Ok(reply) => Ok(done(Ok(reply))),
            Err(Refusal::Port(error)) => Ok(done::<Self::Reply>(Err(error))),
            Err(Refusal::Forbidden(why)) => {
                session.log_refusal(Self::NAME, why);
                Err(Problem::malformed(format_args!("{}: {why}", Self::NAME)))
            }
        }
    }
}

/// Checks that a call is about no more than it may be.
fn at_most(count: usize, most: usize) -> Result<()> {
    if count <= most { Ok(()) } else { Err(Refusal::Forbidden("it is about too much at once")) }
}

fn check(may: bool, why: &'static str) -> Result<()> {
    if may { Ok(()) } else { Err(Refusal::Forbidden(why)) }
}

/// Whether a runner may read what a crawl has: it holds work of it, or may be given some.
async fn may_see(session: &Session, crawl: &CrawlRef) -> Result<bool> {
    Ok(session.holds_of(crawl) || session.runner().is_assigned(&session.engine.projects.of(crawl).await?))
}
