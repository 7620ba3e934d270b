//! Hosts' schedules and robots.txt files in memory. The table `hosts` stores what outlasts the process: blocks,
//! back-offs, and the next time for each host by the requests sent to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use moka::sync::Cache as Memory;
use parking_lot::Mutex;
use rusqlite::{Connection, Row, params};
use tracing::error;
use trawl_common::clock::now_micros as now;
use trawl_common::politeness::gcra::{Backoff, Pace, Schedule, Slot};
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{
    BackoffRequest, Ended, Error, HostBackoff, HostControl, HostSlotRequest, HostState, Hosts,
    InFlightRequest, Result, RobotsEntry, SentLate,
};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use crate::embedded::store::Store;
use crate::embedded::store::error;
use crate::embedded::store::fields::{Fields, sql_ms};

/// Maximum length of a back-off in the file; trawl writes no longer one.
const MAX_BACKOFF: Duration = Duration::from_secs(31 * 24 * 3600);

/// Number of schedules below which they are not searched for old ones.
const MIN_SCHEDULES: usize = 1024;

/// Maximum size of all robots.txt files together, in bytes.
const MAX_ROBOTS_BYTES: u64 = 32 << 20;

/// The schedules of this process, which are not shared with others.
pub(super) struct MemoryHosts {
    store: Arc<Store>,
    schedules: Mutex<Schedules>,
    robots: Memory<RobotsKey, (RobotsEntry, Instant)>,
}

/// The state of one host.
#[derive(Clone, Debug, Default)]
struct Host {
    schedule: Schedule,
    interval: Option<Duration>,
    /// The last minute in which a request was permitted, and the number of requests in it.
    requests: (u64, u64),
    /// The status of the host's answer at its last back-off.
    status: u16,
    /// The time when a person blocked it, if so.
    blocked: Option<UnixMs>,
    /// The theoretical arrival time of the next request by the sent ones, in microseconds. That of its schedule
    /// also counts reserved slots, which mean nothing to a new process.
    next: u64,
    /// Whether its schedule is from an earlier process.
    is_resumed: bool,
}

impl Host {
    /// Reserves a slot. The first one of a process uses the pace of this process: the earlier one may have been
    /// slower.
    fn reserve(&mut self, ask: &HostSlotRequest, now: u64) -> Slot {
        let Pace { interval, burst, .. } = ask.request.pace;
        let interval_us = interval.as_micros() as u64;
        if std::mem::take(&mut self.is_resumed) {
            let latest = now + interval_us * u64::from(burst.max(1));
            self.schedule.next = self.schedule.next.min(latest).max(self.schedule.backoff.until);
        }
        self.interval = Some(interval);
        let slot = self.schedule.reserve(&ask.request, now);
        if slot == Slot::Now {
            self.requests = (minute(now), self.requests_at(now) + 1);
            self.next = self.next.max(now) + interval_us;
        }
        slot
    }

    /// Returns the number of requests permitted in the current minute.
    fn requests_at(&self, now: u64) -> u64 {
        if self.requests.0 == minute(now) { self.requests.1 } else { 0 }
    }
}

struct Schedules {
    by_key: HashMap<HostKey, Host>,
    /// Rows of the file that cannot be read. These hosts count as blocked: they may have been, or may have asked
    /// for a pause.
    unreadable: HashMap<HostKey, Error>,
    /// Number of schedules at which to search for old ones: twice as many as the last search left.
    full: usize,
}

impl MemoryHosts {
    /// Creates the hosts with the state that `store` has from earlier processes.
    pub(super) fn new(store: Arc<Store>, known: Known) -> Self {
        let weigh = |key: &RobotsKey, (entry, _): &(RobotsEntry, Instant)| {
            let body = if let RobotsEntry::Known(file) = entry { file.body.len() } else { 0 };
            u32::try_from(key.as_str().len() + body + 100).unwrap_or(u32::MAX)
        };
        Self {
            store,
            schedules: Mutex::new(Schedules::from_known(known)),
            robots: Memory::builder().max_capacity(MAX_ROBOTS_BYTES).weigher(weigh).build(),
        }
    }

    /// Changes the state of a host, and stores it beyond the process.
    async fn change<T>(&self, key: &HostKey, change: impl FnOnce(&mut Host) -> T) -> Result<T> {
        let (result, host) = {
            let mut schedules = self.schedules.lock();
            if let Some(error) = schedules.unreadable.get(key) {
                return Err(error.clone());
            }
            let host = schedules.by_key.entry(key.clone()).or_default();
            (change(host), host.clone())
        };
        let key = key.clone();
        self.store.call(move |db, _| write(db, &key, &host)).await?;
        Ok(result)
    }
}

impl Schedules {
    fn from_known(Known { by_key, unreadable, .. }: Known) -> Self {
        Self { full: MIN_SCHEDULES.max(2 * by_key.len()), by_key, unreadable }
    }

    fn reserve(&mut self, ask: &HostSlotRequest, now: u64) -> Slot {
        if self.unreadable.contains_key(&ask.key) {
            return Slot::Blocked;
        }
        if self.by_key.len() >= self.full && !self.by_key.contains_key(&ask.key) {
            // A schedule in the past is equivalent to none.
            self.by_key.retain(|_, host| !host.schedule.is_past(now));
            self.full = MIN_SCHEDULES.max(2 * self.by_key.len());
        }
        self.by_key.entry(ask.key.clone()).or_default().reserve(ask, now)
    }

    /// Returns the hosts that get a request by these slots, if the next request has to wait for it.
    fn asked_by(&self, asks: &[HostSlotRequest], slots: &[Slot]) -> Vec<(HostKey, Host)> {
        let is_sent =
            |ask: &HostSlotRequest, slot: &Slot| *slot == Slot::Now && !ask.request.pace.interval.is_zero();
        let asked = asks.iter().zip(slots).filter(|(ask, slot)| is_sent(ask, slot));
        asked.filter_map(|(ask, _)| Some((ask.key.clone(), self.by_key.get(&ask.key)?.clone()))).collect()
    }
}

#[async_trait]
impl Hosts for MemoryHosts {
    /// A permitted request is written to the file before its start is, so that the next process knows of it.
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        let (slots, asked) = {
            let (now, mut schedules) = (now(), self.schedules.lock());
            let slots: Vec<Slot> = asks.iter().map(|ask| schedules.reserve(ask, now)).collect();
            let asked = schedules.asked_by(asks, &slots);
            (slots, asked)
        };
        if !asked.is_empty() {
            // If this fails, as on a full disk, so does the start.
            drop(
                self.store.submit(move |db, _| asked.iter().try_for_each(|(key, host)| write(db, key, host))),
            );
        }
        Ok(slots)
    }

    async fn stay(&self, visits: &[InFlightRequest], lapse: Duration) -> Result<()> {
        let now = now();
        let mut schedules = self.schedules.lock();
        for InFlightRequest { key, token } in visits {
            if let Some(host) = schedules.by_key.get_mut(key) {
                host.schedule.stay(*token, lapse, now);
            }
        }
        Ok(())
    }

    async fn leave(&self, ended: &[Ended]) -> Result<()> {
        let now = now();
        let mut schedules = self.schedules.lock();
        for Ended { visit: InFlightRequest { key, token }, is_welcome } in ended {
            if let Some(host) = schedules.by_key.get_mut(key) {
                host.schedule.leave(*token, *is_welcome, now);
            }
        }
        Ok(())
    }

    async fn sent_late(&self, sent: &[SentLate]) -> Result<()> {
        let now = now();
        let mut schedules = self.schedules.lock();
        for SentLate { key, next_after } in sent {
            if let Some(host) = schedules.by_key.get_mut(key) {
                host.schedule.sent_late(*next_after, now);
            }
        }
        Ok(())
    }

    async fn push_back(&self, key: &HostKey, refusal: &BackoffRequest) -> Result<UnixMs> {
        let push = |host: &mut Host| {
            host.status = refusal.status;
            host.schedule.push_back(&refusal.terms, now())
        };
        Ok(ms(self.change(key, push).await?))
    }

    async fn robots(&self, key: &RobotsKey, lease: Duration) -> Result<RobotsEntry> {
        let now = Instant::now();
        let kept = self.robots.get(key).filter(|(_, until)| *until > now);
        Ok(kept.map_or_else(
            || {
                self.robots.insert(key.clone(), (RobotsEntry::Awaited, now + lease));
                RobotsEntry::Yours
            },
            |(entry, _)| entry,
        ))
    }

    async fn keep_robots(&self, key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()> {
        self.robots.insert(key.clone(), (RobotsEntry::Known(file.clone()), Instant::now() + ttl));
        Ok(())
    }

    async fn give_up_robots(&self, key: &RobotsKey) -> Result<()> {
        self.robots.invalidate(key);
        Ok(())
    }
}

#[async_trait]
impl HostControl for MemoryHosts {
    async fn hosts(&self) -> Result<Vec<HostState>> {
        let mut states: Vec<_> =
            self.schedules.lock().by_key.iter().map(|(key, host)| state(key, host)).collect();
        states.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(states)
    }

    async fn host(&self, key: &HostKey) -> Result<Option<HostState>> {
        Ok(self.schedules.lock().by_key.get(key).map(|host| state(key, host)))
    }

    async fn known_robots(&self, key: &RobotsKey) -> Result<Option<RobotsFile>> {
        Ok(match self.robots.get(key) {
            Some((RobotsEntry::Known(file), until)) if until > Instant::now() => Some(file),
            _ => None,
        })
    }

    async fn block(&self, key: &HostKey) -> Result<()> {
        let block = |host: &mut Host| {
            host.blocked = host.blocked.or(Some(UnixMs::now()));
            host.schedule.block(now());
        };
        self.change(key, block).await
    }

    async fn unblock(&self, key: &HostKey) -> Result<bool> {
        let unblock = |host: &mut Host| {
            host.blocked = None;
            host.schedule.unblock(now())
        };
        self.change(key, unblock).await
    }
}

fn state(key: &HostKey, host: &Host) -> HostState {
    let Schedule { next, line, latency, backoff, in_flight, .. } = &host.schedule;
    let now = now();
    HostState {
        key: key.clone(),
        interval: host.interval,
        next: ms(*next),
        line: ms(*line),
        requests: host.requests_at(now),
        under_way: in_flight.iter().filter(|sent| sent.until > now).count() as u64,
        latency: (*latency > 0).then(|| Duration::from_micros(*latency)),
        backoff: (backoff.until > 0).then(|| HostBackoff {
            since: ms(backoff.since),
            until: ms(backoff.until),
            strikes: backoff.strikes,
            status: host.status,
        }),
        blocked: host.blocked,
    }
}

/// Returns the minute of an instant in microseconds.
fn minute(now: u64) -> u64 {
    now / 60_000_000
}

fn ms(micros: u64) -> UnixMs {
    UnixMs(micros / 1_000)
}

/// The state of hosts from earlier processes.
#[derive(Default)]
pub(super) struct Known {
    by_key: HashMap<HostKey, Host>,
    unreadable: HashMap<HostKey, Error>,
    /// The hosts whose state has expired.
    past: Vec<HostKey>,
}

impl Known {
    /// Reads the state of hosts from earlier processes. Rows that cannot be read are logged.
    pub(super) fn read(db: &Connection) -> error::Result<Self> {
        let mut all =
            db.prepare("SELECT key, since, until, strikes, status, blocked, next, at FROM hosts")?;
        let mut rows = all.query([])?;
        let (mut known, now) = (Self::default(), now());
        while let Some(row) = rows.next()? {
            let key = HostKey::from_text(&row.get::<_, String>("key")?);
            match host(row) {
                Ok(host) if host.schedule.is_past(now) => known.past.push(key),
                Ok(host) => {
                    known.by_key.insert(key, host);
                }
                Err(fault) => {
                    let error = Error::from(fault);
                    error!(%error, "a host counts as blocked until that is set right");
                    known.unreadable.insert(key, error);
                }
            }
        }
        Ok(known)
    }

    /// Deletes expired rows.
    pub(super) fn forget_past(&mut self, db: &Connection) -> error::Result<()> {
        for key in self.past.drain(..) {
            db.execute("DELETE FROM hosts WHERE key = ?1", [key.as_str()])?;
        }
        Ok(())
    }
}

fn host(row: &Row<'_>) -> error::Result<Host> {
    let fields = Fields::new(row, "host", "key");
    let (until, blocked) = (fields.number("until")?, fields.optional_instant("blocked")?);
    let backoff = Backoff { since: fields.number("since")?, until, strikes: fields.number("strikes")? };
    if until.saturating_sub(backoff.since.max(now())) > MAX_BACKOFF.as_micros() as u64 {
        return Err(fields.unreadable("until"));
    }
    let (next, at) = (fields.number("next")?, backoff.since.max(fields.number("at")?));
    let is_blocked = blocked.is_some();
    let schedule = Schedule { next: until.max(next), backoff, is_blocked, at, ..Schedule::default() };
    Ok(Host {
        schedule,
        status: fields.number("status")?,
        blocked,
        next,
        is_resumed: true,
        ..Host::default()
    })
}

fn write(db: &Connection, key: &HostKey, host: &Host) -> error::Result<()> {
    let Backoff { since, until, strikes } = host.schedule.backoff;
    db.prepare_cached(
        "INSERT OR REPLACE INTO hosts (key, since, until, strikes, status, blocked, next, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        key.as_str(),
        since as i64,
        until as i64,
        strikes,
        host.status,
        host.blocked.map(sql_ms),
        host.next as i64,
        host.schedule.at as i64,
    ])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use trawl_common::politeness::gcra::{Pace, SlotRequest, Standing};

    use super::*;

    #[test]
    fn schedules_of_the_past_are_forgotten_and_others_kept() {
        let mut schedules = Schedules::from_known(Known::default());
        let pace = Pace { interval: Duration::from_secs(1), ..Pace::UNLIMITED };
        let ask = |name: u64| HostSlotRequest {
            key: HostKey::from_text(&format!("h{name}.example")),
            request: SlotRequest {
                pace,
                held: None,
                standing: Standing::New,
                deadline: None,
                token: 0,
                lapse: Duration::ZERO,
            },
        };
        for name in 0..10 * MIN_SCHEDULES as u64 {
            schedules.reserve(&ask(name), 1_000_000 * name);
        }
        assert!(schedules.by_key.len() <= MIN_SCHEDULES);
        let last = 10 * MIN_SCHEDULES as u64 - 1;
        let Slot::Reserved { wait, .. } = schedules.reserve(&ask(last), 1_000_000 * last) else { panic!() };
        assert_eq!(wait, Duration::from_secs(1));
    }
}
