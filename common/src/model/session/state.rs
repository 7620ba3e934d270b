//! The state of a session, and its transitions: pure, so that every store keeps to the same ones. A store replaces a
//! state only if nobody else has done so since it was read.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::names::WorkerId;
use crate::time::UnixMs;
use crate::web::cookies::{CookieJar, SetCookie};

/// The time after which a log-in whose worker says nothing any more may be begun by another.
pub const LEASE: Duration = Duration::from_secs(20);

/// Maximum number of log-ins in a row that fail, or after which no page shows that they have succeeded.
pub(crate) const MAX_UNPROVEN: u32 = 3;

/// Longest wait between two such log-ins.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The time after a session was given up until somebody may log in again: by then its crawls are paused everywhere.
const GIVEN_UP: Duration = Duration::from_secs(5);

/// The state of a session. Its cookies and values may be secrets.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// Number of log-ins that have succeeded: the version of the session, by which pages know whether they were fetched
    /// with the present one.
    #[serde(default)]
    pub logins: u64,
    /// Its cookies.
    #[serde(default)]
    pub cookies: CookieJar,
    /// The values that the last log-in took from responses, such as tokens.
    #[serde(default)]
    pub values: Map<String, Value>,
    /// When these expire; `None` if that is not known.
    #[serde(default)]
    pub expires: Option<UnixMs>,
    /// Whether the last log-in itself has checked that it has succeeded.
    #[serde(default)]
    checked: bool,
    /// Number of log-ins in a row that were begun, and of which no page has shown that they succeeded.
    #[serde(default)]
    unproven: u32,
    /// When the next log-in may begin.
    #[serde(default)]
    next: UnixMs,
    /// The worker that logs in, until the end of its lease.
    #[serde(default)]
    holder: Option<(WorkerId, UnixMs)>,
    /// The reason why the last log-in failed; `None` if it succeeded.
    #[serde(default)]
    pub problem: Option<String>,
}

/// Shows no cookie and no value.
impl fmt::Debug for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SessionState");
        shown.field("logins", &self.logins).field("cookies", &self.cookies.cookies().len());
        shown.field("expires", &self.expires).field("unproven", &self.unproven).field("next", &self.next);
        shown.field("holder", &self.holder).field("problem", &self.problem).finish_non_exhaustive()
    }
}

/// The result of a successful log-in.
#[derive(Clone, Default, PartialEq)]
pub struct LoginResult {
    /// The cookies that were set.
    pub cookies: CookieJar,
    /// The values that were taken.
    pub values: Map<String, Value>,
    /// When these expire.
    pub expires: Option<UnixMs>,
    /// Whether its last answer was what was expected.
    pub checked: bool,
}

/// The reply to a worker that wants to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeginLogin {
    /// It is to log in, and holds the session until its lease lapses.
    Begun,
    /// Somebody has logged in since.
    Done,
    /// Another worker logs in, and holds the session until this instant.
    Held(UnixMs),
    /// No log-in may begin before this instant, as the last one failed or helped nothing.
    Later(UnixMs),
    /// Several log-ins in a row failed, or helped nothing, for this reason: a person has to see to it.
    GivenUp(String),
}

impl SessionState {
    /// Returns it as JSON, the form in which it is stored.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("text, numbers and JSON are JSON")
    }

    /// Begins a log-in in place of the one with the number `lapsed`, 0 for none. A worker that has begun goes on.
    pub fn begin_login(&mut self, worker: &WorkerId, lapsed: u64, now: UnixMs) -> BeginLogin {
        if self.logins > lapsed {
            return BeginLogin::Done;
        }
        if self.renew(worker, now) {
            return BeginLogin::Begun;
        }
        if let Some(until) = self.held_until(now) {
            return BeginLogin::Held(until);
        }
        if let Some(next) = self.waits_until(now) {
            return BeginLogin::Later(next);
        }
        if self.unproven >= MAX_UNPROVEN {
            (self.unproven, self.next, self.holder) = (0, now.plus(GIVEN_UP), None);
            let in_vain = || {
                "the log-in seems to succeed, but the next page looks as if the session had lapsed: see `lapsed` in [login]"
                    .to_owned()
            };
            return BeginLogin::GivenUp(self.problem.clone().unwrap_or_else(in_vain));
        }
        self.unproven += 1;
        self.holder = Some((worker.clone(), now.plus(LEASE)));
        BeginLogin::Begun
    }

    /// Extends the lease of a worker that logs in. Returns whether it has it still.
    pub fn renew(&mut self, worker: &WorkerId, now: UnixMs) -> bool {
        let is_mine = self.holder.as_ref().is_some_and(|(holder, _)| holder == worker);
        if is_mine {
            self.holder = Some((worker.clone(), now.plus(LEASE)));
        }
        is_mine
    }

    /// Ends a log-in. A next one that follows before a page has shown that this one succeeded waits for `pause`, which
    /// doubles each time. Returns whether the worker held the session.
    pub fn end_login(
        &mut self,
        worker: &WorkerId,
        result: Result<LoginResult, String>,
        pause: Duration,
        now: UnixMs,
    ) -> bool {
        if self.holder.as_ref().is_none_or(|(holder, _)| holder != worker) {
            return false;
        }
        self.holder = None;
        let pause = pause.saturating_mul(1 << self.unproven.saturating_sub(1).min(16)).min(MAX_WAIT);
        self.next = now.plus(pause);
        match result {
            Ok(LoginResult { cookies, values, expires, checked }) => {
                (self.logins, self.checked) = (self.logins + 1, checked);
                (self.cookies, self.values, self.expires, self.problem) = (cookies, values, expires, None);
            }
            Err(problem) => self.problem = Some(problem),
        }
        true
    }

    /// Gives a session back without a log-in, which may begin again at `next` and counts for nothing.
    pub fn put_off_login(&mut self, worker: &WorkerId, next: UnixMs) -> bool {
        if self.holder.as_ref().is_none_or(|(holder, _)| holder != worker) {
            return false;
        }
        (self.holder, self.next, self.unproven) = (None, next, self.unproven.saturating_sub(1));
        true
    }

    /// Notes that a page was fetched well with log-in number `logins`. Returns whether that was not known.
    pub fn prove(&mut self, logins: u64) -> bool {
        let is_news = self.logins == logins && self.unproven > 0 && self.holder.is_none();
        if is_news {
            (self.unproven, self.next) = (0, UnixMs(0));
        }
        is_news
    }

    /// Whether a page was fetched well since the last log-in.
    pub fn is_proven(&self) -> bool {
        self.unproven == 0
    }

    /// Whether a page that looks as if the session had lapsed may be to blame for that itself.
    pub fn blames_pages(&self) -> bool {
        self.is_proven() || self.checked
    }

    /// Takes in a cookie of a response to a request with log-in number `logins`. Returns whether that changes anything:
    /// an answer to an earlier session says nothing of this one.
    pub fn set_cookie(&mut self, logins: u64, set: SetCookie, now: UnixMs) -> bool {
        self.logins == logins && self.cookies.set(set, now)
    }

    /// Whether log-in number `logins` is still to be made: none was made, or what it took has expired.
    pub fn lacks_login(&self, now: UnixMs) -> bool {
        self.logins == 0 || self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns until when another worker logs in, as far as is known.
    pub fn held_until(&self, now: UnixMs) -> Option<UnixMs> {
        self.holder.as_ref().map(|(_, until)| *until).filter(|until| *until > now)
    }

    /// Returns when the next log-in may begin, or be given up, if that is later.
    pub fn waits_until(&self, now: UnixMs) -> Option<UnixMs> {
        let has_failed = self.unproven >= MAX_UNPROVEN && self.problem.is_some();
        Some(self.next).filter(|next| *next > now && !has_failed)
    }
}
