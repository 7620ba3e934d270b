//! The sessions of spiders: their cookies go along with requests and are written back now and then, and one worker of
//! the fleet logs in while the URLs of the session wait. [`SessionState`] decides who and when.

mod entry;
pub(crate) mod login;
mod visit;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Reason};
use trawl_common::health::of_spider;
use trawl_common::logs::LogLevel;
use trawl_common::metrics;
use trawl_common::politeness::waiting::SOON;
use trawl_common::ports::{Error, HoldCrawl, Sessions as Store};
use trawl_common::session::{BeginLogin, LEASE, LoginResult, SessionId, SessionState};
use trawl_common::time::UnixMs;

use self::entry::Entry;
use self::login::{LogIn, NoLogin};
pub(crate) use self::visit::Visit;
use crate::claimed::ClaimedUrl;
use crate::context::Context;
use crate::parse::Parser;
use crate::schedule::Scheduling;
use crate::schedule::polite::{AsSpider, PoliteClient};
use crate::spiders::{LoadedSpider, SpiderSession};
use crate::telemetry::idle_reasons::{IdleReasons, Why};

/// Interval at which sessions in use are looked after.
const TICK_INTERVAL: Duration = Duration::from_millis(50);

/// The time for which a URL waits here before it asks again whether its session is ready.
const CHECK_INTERVAL: Duration = Duration::from_millis(150);

/// Longest time for which a URL is put aside before it asks again: a person may have seen to the log-in.
const MAX_SNOOZE: Duration = Duration::from_secs(10);

/// Maximum number of log-ins on behalf of a page that looks each time as if the session had lapsed.
const MAX_LAPSES: u16 = 2;

/// A log-in that fails is repeated after this many times the setting `retry.backoff`.
const PAUSES: u32 = 3;

/// The time for which a problem of a session is shown after it was met last.
const PROBLEM_TTL: Duration = Duration::from_secs(30);

/// Time for the last changes to be written when the worker ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a URL waits for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Here, for this time: the session is about to be ready.
    Here(Duration),
    /// At the broker, until this instant.
    Away(UnixMs),
}

impl Hold {
    /// Returns until when it waits at the broker.
    pub(crate) fn away(self) -> Option<UnixMs> {
        if let Self::Away(until) = self { Some(until) } else { None }
    }
}

/// The sessions of the spiders that this worker works for.
pub(crate) struct Sessions {
    context: Arc<Context>,
    store: Arc<dyn Store>,
    control: Arc<dyn HoldCrawl>,
    asker: PoliteClient,
    parser: Arc<Parser>,
    idle_reasons: Arc<IdleReasons>,
    known: Mutex<HashMap<SessionId, Arc<Entry>>>,
    /// Notified when there is a session to look after.
    begun: Notify,
}

impl Sessions {
    pub(crate) fn new(
        scheduling: &Scheduling,
        (store, control): (Arc<dyn Store>, Arc<dyn HoldCrawl>),
        parser: Arc<Parser>,
    ) -> Self {
        let Scheduling { context, asker, idle_reasons, .. } = scheduling;
        let (context, idle_reasons) = (Arc::clone(context), Arc::clone(idle_reasons));
        let (known, begun) = Default::default();
        Self { context, store, control, asker: asker.clone(), parser, idle_reasons, known, begun }
    }

    /// Returns where a URL waits for its session, which is here only if there is room; `None` if its spider keeps no
    /// session, or that is ready.
    pub(crate) fn hold(&self, claimed: &ClaimedUrl, has_room: impl FnOnce() -> bool) -> Option<Hold> {
        let session = claimed.spider.session.as_ref()?;
        let now = UnixMs::now();
        let next = self.ready_at(session, claimed, now)?;
        let key = claimed.spider.politeness.host_policy(&claimed.target().host()).key;
        let hold = match next {
            next if next > now => Hold::Away(next.min(now.plus(MAX_SNOOZE))),
            _ if has_room() => Hold::Here(CHECK_INTERVAL),
            _ => Hold::Away(now.plus(SOON)),
        };
        self.idle_reasons.note_wait(&key, hold.away().unwrap_or(now.plus(CHECK_INTERVAL)), Why::LogIn);
        Some(hold)
    }

    /// Returns when the next log-in of a session may begin, as far as it needs one; `None` if it is ready.
    fn ready_at(&self, session: &SpiderSession, claimed: &ClaimedUrl, now: UnixMs) -> Option<UnixMs> {
        let entry = self.entry(&session.id);
        let mut inner = entry.inner.lock();
        inner.mark_used();
        let Some(state) = &inner.state else { return Some(now) };
        session.login.as_ref()?;
        let is_lacking = state.lacks_login(now) || inner.lapsed == Some(state.logins);
        let is_held = state.held_until(now).is_some();
        if !is_lacking && !is_held {
            inner.waiting.clear();
            // A page that shows the log-in form whatever happens must not keep the others waiting.
            return (claimed.message.lapses > 0 && inner.is_on_trial()).then_some(now);
        }
        let next = state.waits_until(now).filter(|_| is_lacking && !is_held);
        inner.waiting.insert(claimed.message.crawl.clone());
        if is_lacking {
            inner.wanted_by = Some(Arc::clone(&claimed.spider));
        }
        Some(next.unwrap_or(now))
    }

    /// Returns the visit of a page that is fetched now; `None` if its spider keeps no session.
    pub(crate) fn visit(&self, spider: &Arc<LoadedSpider>) -> Option<Arc<Visit>> {
        let entry = self.entry(&spider.session.as_ref()?.id);
        let logins = entry.inner.lock().state.as_ref().map_or(0, |state| state.logins);
        Some(Arc::new(Visit { entry, spider: Arc::clone(spider), logins }))
    }

    /// Returns the outcome of a URL whose page shows that its session has lapsed, by this sign: it is asked for again
    /// after a log-in, unless it looked so again and again.
    pub(crate) fn lapsed(&self, claimed: &mut ClaimedUrl, visit: &Visit, sign: &str) -> Outcome {
        let message = &mut claimed.message;
        (message.hop, message.slot, message.turn) = (None, None, None);
        let mut inner = visit.entry.inner.lock();
        inner.look_again();
        if inner.state.as_ref().is_some_and(|state| state.logins == visit.logins) {
            // If no page is well, the log-in may be to blame.
            let is_to_blame = inner.state.as_ref().is_some_and(SessionState::blames_pages);
            if count_lapse(message, is_to_blame) > MAX_LAPSES {
                let why = format_args!("it looks as if the session had lapsed, also after log-ins: {sign}");
                return Outcome::Failed(Failure::new(Class::Banned, why), Reason::Final);
            }
            if inner.lapsed != Some(visit.logins) {
                info!(session = %visit.entry.id, url = %claimed.url, "the session has lapsed: {sign}");
            }
            inner.lapsed = Some(visit.logins);
        }
        Outcome::Snooze { until: UnixMs::now().plus(CHECK_INTERVAL) }
    }

    fn entry(&self, id: &SessionId) -> Arc<Entry> {
        let mut known = self.known.lock();
        if let Some(entry) = known.get(id) {
            return Arc::clone(entry);
        }
        self.begun.notify_one();
        Arc::clone(known.entry(id.clone()).or_insert_with(|| Arc::new(Entry::new(id.clone()))))
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.known.lock().values().cloned().collect()
    }

    /// Reads and writes sessions, and logs in, until the future is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut logins = JoinSet::new();
        loop {
            let entries = self.entries();
            if entries.is_empty() {
                self.begun.notified().await;
                continue;
            }
            while logins.try_join_next().is_some() {}
            join_all(entries.iter().map(|entry| self.look_after(entry))).await;
            for entry in entries {
                metrics::session(entry.id.owner.as_str(), entry.inner.lock().waiting.is_empty());
                if let Some((spider, lapsed)) = wants_login(&entry) {
                    logins.spawn(Arc::clone(&self).log_in(entry, spider, lapsed));
                }
            }
            sleep(TICK_INTERVAL).await;
        }
    }

    /// Writes what is left, and leaves log-ins to other workers.
    pub(crate) async fn close(&self) {
        let closing = self.entries().into_iter().map(async |entry| {
            let is_busy = entry.inner.lock().is_busy;
            let worker = &self.context.id;
            let give_back = |state: &mut SessionState| is_busy && state.put_off_login(worker, UnixMs::now());
            let _ = self.update(&entry, |state| (give_back(state), ())).await;
        });
        let _ = timeout(FLUSH_TIMEOUT, join_all(closing)).await;
    }

    async fn look_after(&self, entry: &Entry) {
        let (is_dirty, is_stale) = {
            let inner = entry.inner.lock();
            (inner.is_dirty(), inner.is_stale())
        };
        let result = async {
            if is_dirty {
                self.update(entry, |_| (false, ())).await?;
            }
            if is_stale {
                self.read(entry).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = result.await {
            self.report(entry, &error);
        }
    }

    fn report(&self, entry: &Entry, error: &Error) {
        let what = format!("looking after the session {}", entry.id);
        self.context.health.report_recent_failure(&what, error, PROBLEM_TTL);
    }

    async fn read(&self, entry: &Entry) -> Result<(), Error> {
        let known = entry.inner.lock().revision();
        let read = self.store.read(&entry.id, known).await?;
        entry.inner.lock().read(read, UnixMs::now());
        Ok(())
    }

    /// Writes the changes of a session, together with another one, which returns whether it changed anything.
    async fn update<T>(
        &self,
        entry: &Entry,
        mut change: impl FnMut(&mut SessionState) -> (bool, T),
    ) -> Result<T, Error> {
        loop {
            let now = UnixMs::now();
            let (revision, mut state, changes) = entry.inner.lock().proposal(now);
            let (is_changed, result) = change(&mut state);
            if !is_changed && changes.is_empty() {
                return Ok(result);
            }
            match self.store.write(&entry.id, revision, &state).await {
                Ok(Some(revision)) => {
                    entry.inner.lock().written(revision, state, now);
                    return Ok(result);
                }
                Ok(None) => {
                    entry.inner.lock().take_back(changes);
                    self.read(entry).await?;
                }
                Err(error) => {
                    entry.inner.lock().take_back(changes);
                    return Err(error);
                }
            }
        }
    }

    /// Logs in in place of log-in number `lapsed`, unless somebody else does or has.
    async fn log_in(self: Arc<Self>, entry: Arc<Entry>, spider: Arc<LoadedSpider>, lapsed: u64) {
        let worker = &self.context.id;
        let begin = |state: &mut SessionState| {
            let begun = state.begin_login(worker, lapsed, UnixMs::now());
            (matches!(begun, BeginLogin::Begun | BeginLogin::GivenUp(_)), begun)
        };
        match self.update(&entry, begin).await {
            Ok(BeginLogin::Begun) => self.log_in_as_holder(&entry, &spider).await,
            Ok(BeginLogin::GivenUp(why)) => self.give_up(&entry, &spider, &why).await,
            Ok(BeginLogin::Done | BeginLogin::Held(_) | BeginLogin::Later(_)) => {}
            Err(error) => self.report(&entry, &error),
        }
        let mut inner = entry.inner.lock();
        inner.is_busy = false;
        inner.look_again();
    }

    async fn log_in_as_holder(&self, entry: &Entry, spider: &Arc<LoadedSpider>) {
        let Some(plan) = spider.session.as_ref().and_then(|session| session.login.as_ref()) else { return };
        let own = AsSpider {
            fetcher: spider.fetcher.clone(),
            politeness: spider.politeness.clone(),
            robots_name: spider.robots_name.clone(),
        };
        let begun = Instant::now();
        let log_in = LogIn::new(&self.asker, &self.parser, (&spider.spider, plan, &spider.bans), own);
        let end = tokio::select! {
            end = log_in.run() => end,
            () = self.keep_lease(entry) => return,
        };
        let name = &spider.spider.name;
        let result = match end {
            Ok(result) => {
                info!(spider = %name, took = ?begun.elapsed(), "logged in");
                Ok(result)
            }
            Err(NoLogin::Failed(why)) => {
                warn!(spider = %name, "the log-in failed: {why}");
                let log = &self.context.log;
                log.write(log.entry(LogLevel::Warn, format!("the log-in of spider {name} failed: {why}")));
                Err(why)
            }
            Err(NoLogin::Later(until)) => {
                let worker = &self.context.id;
                let put_off = |state: &mut SessionState| (state.put_off_login(worker, until), ());
                self.insist(entry, put_off).await;
                return;
            }
        };
        metrics::logged_in(name.as_str(), result.is_ok());
        self.end(entry, result).await;
    }

    /// Ends a log-in of this worker.
    async fn end(&self, entry: &Entry, result: Result<LoginResult, String>) {
        let is_done = result.is_ok();
        let pause = self.context.settings.retry.backoff * PAUSES;
        self.insist(entry, |state| {
            (state.end_login(&self.context.id, result.clone(), pause, UnixMs::now()), ())
        })
        .await;
        if is_done {
            entry.inner.lock().waiting.clear();
        }
    }

    /// Updates a session, and tries again until that has worked: as long as it is this worker's, nobody else can.
    async fn insist(&self, entry: &Entry, mut change: impl FnMut(&mut SessionState) -> (bool, ())) {
        let deadline = Instant::now() + LEASE;
        while let Err(error) = self.update(entry, &mut change).await {
            self.report(entry, &error);
            if Instant::now() > deadline {
                return;
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Extends the lease of a log-in of this worker, until it is lost.
    async fn keep_lease(&self, entry: &Entry) {
        loop {
            sleep(LEASE / 4).await;
            let renew = |state: &mut SessionState| {
                let is_mine = state.renew(&self.context.id, UnixMs::now());
                (is_mine, is_mine)
            };
            match self.update(entry, renew).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => self.report(entry, &error),
            }
        }
    }

    /// Pauses the crawls that wait for a session whose log-in keeps failing.
    async fn give_up(&self, entry: &Entry, spider: &LoadedSpider, why: &str) {
        let crawls = std::mem::take(&mut entry.inner.lock().waiting);
        let name = &spider.spider.name;
        error!(spider = %name, "the log-in keeps failing, and the crawls that need it are paused: {why}");
        let log = &self.context.log;
        log.write(log.entry(LogLevel::Error, format!("the log-in of spider {name} keeps failing: {why}")));
        for crawl in crawls {
            let held = self
                .control
                .hold(&crawl, &format!("the log-in of the spider {name} keeps failing: {why}"))
                .await;
            if let Err(error) = held {
                self.context.health.report_recent_failure(
                    &of_spider(name, "pausing its crawl"),
                    &error,
                    PROBLEM_TTL,
                );
            }
        }
    }
}

/// Returns the spider that wants a log-in of this worker, and the number of the log-in that it is to replace.
fn wants_login(entry: &Entry) -> Option<(Arc<LoadedSpider>, u64)> {
    let now = UnixMs::now();
    let mut inner = entry.inner.lock();
    let spider = inner.wanted_by.take()?;
    let state = inner.state.as_ref()?;
    let lapsed = state.logins;
    let is_lacking = state.lacks_login(now) || inner.lapsed == Some(lapsed);
    let may_begin = state.held_until(now).is_none() && state.waits_until(now).is_none();
    if inner.is_busy || !is_lacking || !may_begin {
        return None;
    }
    inner.is_busy = true;
    Some((spider, lapsed))
}

/// Counts that a page looks as if its session had lapsed. While no other page shows that the log-in is well, that is
/// counted once: the log-in may be to blame. Returns the number.
fn count_lapse(message: &mut Message, is_to_blame: bool) -> u16 {
    message.lapses = if is_to_blame { message.lapses.saturating_add(1) } else { message.lapses.max(1) };
    message.lapses
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::lane::Lane;
    use trawl_common::names::CrawlRef;
    use trawl_common::web::url::CanonicalUrl;

    use super::*;

    #[test]
    fn a_page_is_given_up_after_three_lapses_however_often_its_host_has_refused_it() {
        let url = CanonicalUrl::recorded("https://shop.example/").unwrap();
        let mut message = Message::seed(url, CrawlRef::adhoc(), Lane::default());
        message.refusals = 10;
        let lapses = [false, false, true].map(|is_to_blame| count_lapse(&mut message, is_to_blame));
        assert_eq!(lapses, [1, 1, 2]);
        assert!(lapses.iter().all(|lapses| *lapses <= MAX_LAPSES));
        assert!(count_lapse(&mut message, true) > MAX_LAPSES);
    }
}
