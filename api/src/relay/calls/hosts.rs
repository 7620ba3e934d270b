//! The calls about hosts: their slots, back-offs and robots.txt.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use trawl_common::politeness::gcra::{BackoffTerms, Pace, Slot, SlotRequest};
use trawl_common::ports::{BackoffRequest, HostSlotRequest, RobotsEntry};
use trawl_common::relay::{GiveUpRobots, KeepRobots, Late, LeaveHosts, PushBack, Reserve, Robots, Stay};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use super::{MAX_THINGS, Result, Serve, at_most, check};
use crate::relay::session::Session;

/// Maximum time for which a request counts as in flight, or a robots.txt as being fetched.
const MAX_LAPSE: Duration = Duration::from_secs(600);

/// Maximum time for which a robots.txt is kept.
const MAX_ROBOTS_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// Maximum length of the key of a host, a group or an origin, in bytes: a name has 253, and each of its parts a port.
const MAX_KEY: usize = 300;

/// Maximum size of a robots.txt, in bytes.
const MAX_ROBOTS: usize = 600 * 1024;

/// Longest time between two requests to a host: a longer one would keep others from it.
const MAX_INTERVAL: Duration = Duration::from_secs(300);

#[async_trait]
impl Serve for Reserve {
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<Slot>> {
        at_most(self.asks.len(), MAX_THINGS)?;
        self.asks.iter().try_for_each(|ask| check_key(&ask.key))?;
        let asks: Vec<HostSlotRequest> = self.asks.into_iter().map(bounded).collect();
        Ok(session.engine.ports.hosts.reserve(&asks).await?)
    }
}

/// Checks that a key has the form of one. Settings may call a group anything.
fn check_key(key: &HostKey) -> Result<()> {
    let text = key.as_str();
    let is_one = match text.strip_prefix('@') {
        Some(group) => !group.contains(char::is_control),
        None => text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'<'),
    };
    check(is_one && text.len() <= MAX_KEY, "that is no name of a host")
}

/// Returns a request for a slot that keeps others from the host for no longer than an honest one might.
fn bounded(HostSlotRequest { key, request }: HostSlotRequest) -> HostSlotRequest {
    let pace = Pace { interval: request.pace.interval.min(MAX_INTERVAL), ..request.pace };
    HostSlotRequest { key, request: SlotRequest { pace, lapse: request.lapse.min(MAX_LAPSE), ..request } }
}

#[async_trait]
impl Serve for Stay {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        at_most(self.visits.len(), MAX_THINGS)?;
        Ok(session.engine.ports.hosts.stay(&self.visits, self.lapse.min(MAX_LAPSE)).await?)
    }
}

#[async_trait]
impl Serve for LeaveHosts {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        at_most(self.ended.len(), MAX_THINGS)?;
        Ok(session.engine.ports.hosts.leave(&self.ended).await?)
    }
}

#[async_trait]
impl Serve for Late {
    async fn serve(mut self, session: &Arc<Session>) -> Result<()> {
        at_most(self.sent.len(), MAX_THINGS)?;
        self.sent.iter_mut().for_each(|sent| sent.next_after = sent.next_after.min(MAX_INTERVAL));
        Ok(session.engine.ports.hosts.sent_late(&self.sent).await?)
    }
}

#[async_trait]
impl Serve for PushBack {
    async fn serve(self, session: &Arc<Session>) -> Result<Duration> {
        check_key(&self.key)?;
        let politeness = &session.relay.settings.politeness;
        let BackoffRequest { status, terms, crawl } = self.refusal;
        let most = politeness.max_backoff;
        let base = terms.base.min(most);
        let terms = BackoffTerms {
            asked: terms.asked.map(|asked| asked.min(most)),
            base,
            jitter: terms.jitter,
            most,
        };
        let crawl = crawl.filter(|crawl| session.holds_of(crawl));
        let refusal = BackoffRequest { status, terms, crawl };
        let until = session.engine.ports.hosts.push_back(&self.key, &refusal).await?;
        Ok(until.wait_from(UnixMs::now()))
    }
}

#[async_trait]
impl Serve for Robots {
    async fn serve(self, session: &Arc<Session>) -> Result<RobotsEntry> {
        check(self.key.as_str().len() <= MAX_KEY, "a host has a shorter name")?;
        // It could forge it for the projects of others. An honest one has lost the work that leads there.
        if !self.key.to_host().is_some_and(|host| session.may_visit(&host)) {
            return Ok(RobotsEntry::Awaited);
        }
        let entry = session.engine.ports.hosts.robots(&self.key, self.lease.min(MAX_LAPSE)).await?;
        if entry == RobotsEntry::Yours {
            session.note_robots(&self.key);
        }
        Ok(entry)
    }
}

#[async_trait]
impl Serve for KeepRobots {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        let Self { key, file, ttl } = self;
        check(file.body.len() <= MAX_ROBOTS, "a robots.txt is smaller")?;
        if !session.fetches_robots(&key) {
            return Ok(());
        }
        Ok(session.engine.ports.hosts.keep_robots(&key, &file, ttl.min(MAX_ROBOTS_TTL)).await?)
    }
}

#[async_trait]
impl Serve for GiveUpRobots {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        if !session.fetches_robots(&self.key) {
            return Ok(());
        }
        Ok(session.engine.ports.hosts.give_up_robots(&self.key).await?)
    }
}
