//! The session of a runner, and what was handed out in it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use trawl_common::clock::{self, ClockReading};
use trawl_common::frontier::message::Message;
use trawl_common::ports::{BeatReply, Claim, Claimed, Error, ErrorKind, Heartbeat, Result};
use trawl_common::relay::{Beat, Beaten, Call, JoinFleet, JoinedFleet, Leave, Register, Registered};

use crate::api::{Api, CallError};

/// A runner's connection to the API. It joins when it makes its first call, and joins anew when its session is lost.
pub struct Link {
    api: Api,
    /// A number that tells this process from others with the same key.
    process: u64,
    /// The present session.
    present: Mutex<Option<Arc<Session>>>,
    /// Held while a session is begun.
    joining: tokio::sync::Mutex<()>,
    /// Maximum number of URLs and of tasks to hold.
    room: Mutex<(u16, u16)>,
    /// The number of the last call whose reply the API keeps.
    calls: AtomicU64,
    /// Cancelled when the runner's access was taken back.
    revoked: CancellationToken,
    why_revoked: Mutex<Option<String>>,
    left: AtomicBool,
    /// Whether the last claim gave nothing, and nothing is held.
    is_idle: watch::Sender<bool>,
}

/// A session.
pub(crate) struct Session {
    id: String,
    /// The work that was handed out in it and has no outcome.
    held: Mutex<HashSet<Claim>>,
}

impl Session {
    /// Notes what was handed out.
    pub(crate) fn take(&self, claimed: &[Claimed]) {
        self.held.lock().extend(claimed.iter().map(|claimed| Claim::new(&claimed.message)));
    }

    /// Returns whether it has handed this out.
    pub(crate) fn holds(&self, claim: &Claim) -> bool {
        self.held.lock().contains(claim)
    }

    /// Forgets what has an outcome.
    pub(crate) fn settle<'a>(&self, settled: impl IntoIterator<Item = &'a Message>) {
        let mut held = self.held.lock();
        for message in settled {
            held.remove(&Claim::new(message));
        }
    }
}

impl Link {
    /// Returns a link that has no session yet.
    pub fn new(api: Api) -> Self {
        let (present, joining, calls, revoked, why_revoked, left) = Default::default();
        let is_idle = watch::Sender::new(false);
        Self {
            api,
            process: rand::random(),
            present,
            joining,
            room: Mutex::new((1, 0)),
            calls,
            revoked,
            why_revoked,
            left,
            is_idle,
        }
    }

    /// Asks for access, and returns the access that there is.
    ///
    /// # Errors
    /// Returns why there is no answer.
    pub async fn register(&self) -> std::result::Result<Registered, CallError> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.api.call(&Register { version }, None, None).await
    }

    /// Returns the API.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Waits until the runner's access was taken back.
    pub async fn revoked(&self) {
        self.revoked.cancelled().await;
    }

    /// Returns whether the runner's access was taken back.
    pub fn is_revoked(&self) -> bool {
        self.revoked.is_cancelled()
    }

    /// Returns the reason that the API gave when it let the runner do no more.
    pub fn why_revoked(&self) -> Option<String> {
        self.why_revoked.lock().clone()
    }

    fn revoke(&self, why: &str) {
        self.why_revoked.lock().get_or_insert_with(|| why.to_owned());
        self.revoked.cancel();
    }

    /// Waits until the API has no work, and nothing is held.
    pub async fn idle(&self) {
        let mut is_idle = self.is_idle.subscribe();
        // The sender is as old as this.
        let _ = is_idle.wait_for(|is_idle| *is_idle).await;
    }

    /// Waits until there is work.
    pub async fn busy(&self) {
        let mut is_idle = self.is_idle.subscribe();
        let _ = is_idle.wait_for(|is_idle| !is_idle).await;
    }

    /// Notes the reply to a claim.
    pub(crate) fn note_claimed(&self, count: usize) {
        self.is_idle.send_replace(count == 0 && self.in_flight() == 0);
    }

    /// Sets how many URLs and tasks the runner may hold.
    pub(crate) fn make_room(&self, urls: u16, tasks: u16) {
        *self.room.lock() = (urls, tasks);
    }

    /// Returns the number for a call whose reply the API keeps.
    pub(crate) fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of URLs and tasks that the runner holds.
    pub(crate) fn in_flight(&self) -> usize {
        self.present.lock().as_ref().map_or(0, |session| session.held.lock().len())
    }

    /// Makes a call in the present session.
    pub(crate) async fn call<C: Call>(&self, call: &C) -> Result<C::Reply> {
        let session = self.session().await?;
        self.call_in(&session, call, None).await
    }

    /// Makes a call in a session. If that is lost, the next call joins anew.
    pub(crate) async fn call_in<C: Call>(
        &self,
        session: &Arc<Session>,
        call: &C,
        number: Option<u64>,
    ) -> Result<C::Reply> {
        let result = self.api.call(call, Some(&session.id), number).await;
        match &result {
            Err(CallError::NoSession) => self.forget(session),
            Err(CallError::NotAllowed(why)) => self.revoke(why),
            _ => {}
        }
        result.map_err(Error::from)
    }

    /// Returns the present session, or begins one.
    pub(crate) async fn session(&self) -> Result<Arc<Session>> {
        let _joining = self.joining.lock().await;
        if let Some(session) = &*self.present.lock() {
            return Ok(Arc::clone(session));
        }
        if self.revoked.is_cancelled() {
            return Err(Error::new(ErrorKind::Refused, "the runner has no access any more"));
        }
        let (prefetch, tasks) = *self.room.lock();
        let joining = JoinFleet { process: self.process, prefetch, tasks };
        let JoinedFleet { session: id, worker, .. } =
            self.api.call(&joining, None, None).await.map_err(|error| {
                if let CallError::NotAllowed(why) = &error {
                    self.revoke(why);
                }
                Error::from(error)
            })?;
        info!(%worker, "joined");
        let session = Arc::new(Session { id, held: Mutex::default() });
        *self.present.lock() = Some(Arc::clone(&session));
        Ok(session)
    }

    fn forget(&self, lost: &Arc<Session>) {
        let mut present = self.present.lock();
        if present.as_ref().is_some_and(|session| Arc::ptr_eq(session, lost)) {
            warn!("the API has lost the session: what was in hand is handed out again");
            *present = None;
        }
    }

    /// Sends a heartbeat, and follows the clock of the engine.
    pub(crate) async fn beat(&self, beat: &Heartbeat) -> Result<BeatReply> {
        let asked = Instant::now();
        let Beaten { reply, now_micros } = self.call(&Beat { beat: beat.clone() }).await?;
        clock::follow(ClockReading { micros: now_micros, asked, answered: Instant::now() });
        Ok(reply)
    }

    /// Returns whether the runner has given back everything at its end.
    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }

    /// Ends the session, if there is one.
    pub(crate) async fn leave(&self) -> Result<()> {
        self.left.store(true, Ordering::Relaxed);
        let Some(session) = self.present.lock().take() else { return Ok(()) };
        match self.api.call(&Leave {}, Some(&session.id), None).await {
            // Then nothing is held in it either.
            Err(CallError::NoSession | CallError::NotAllowed(_)) => Ok(()),
            result => result.map_err(Error::from),
        }
    }
}
