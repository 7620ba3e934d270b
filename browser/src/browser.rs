//! One browser, from its start to its end.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};
use trawl_common::settings;
use trawl_handlers::{Launch, Supervised, Supervisor};

use crate::Chromium;
use crate::arguments::{arguments, script};
use crate::connection::{CallError, Connection};
use crate::counts::{CountedBrowser, Counts};
use crate::deaths::Deaths;

/// Maximum time until a browser that was started answers.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum time until a browser answers a command of its own; one of a page may take as long as the page's scripts.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of pages and age after which a browser is replaced: its processes never give back all that they take.
const MAX_PAGES: u32 = 500;
const MAX_AGE: Duration = Duration::from_secs(3_600);

/// Time between two looks at what a browser uses.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum size of a browser's own folder: its profile, and the memory that its processes share.
const MAX_DISK: u64 = 2_000_000_000;

/// A running browser. It ends when this is dropped.
pub(crate) struct Browser {
    pub(crate) connection: Connection,
    leases: AtomicUsize,
    pages: AtomicU32,
    since: Instant,
    _retires: DropGuard,
}

/// The reason why a browser did not start.
pub(crate) type NotStarted = String;

/// The parts of a browser's start that are the same for all.
pub(crate) struct Launcher {
    pub(crate) settings: settings::Browser,
    /// The hash of the key whose certificates it trusts.
    pub(crate) spki: String,
    pub(crate) supervisor: Supervisor,
    /// Maximum size of a message of the browser, in bytes.
    pub(crate) max_message: usize,
    pub(crate) deaths: Arc<Deaths>,
    pub(crate) counts: Arc<Counts>,
}

impl Launcher {
    /// Starts a browser, and waits until it answers. Its later death is to be among `deaths`.
    pub(crate) async fn start(&self, deaths: &Arc<Deaths>) -> Result<Browser, NotStarted> {
        let chromium = Chromium::find(&self.settings).map_err(|error| error.to_string())?;
        let own = arguments(&chromium, &self.spki).into_iter().map(OsString::from);
        let memory = self.settings.memory.as_u64();
        let program: [OsString; 3] = ["-c".into(), script(memory).into(), chromium.program.into()];
        let launch = Launch {
            supervisor: &self.supervisor,
            name: "chromium",
            file: Path::new("/bin/sh"),
            arguments: program.into_iter().chain(own).collect(),
            folder: Path::new("/"),
            variables: vec![("PATH", OsStr::new("/usr/bin:/bin")), ("LANG", OsStr::new("C.UTF-8"))],
            memory,
            disk: MAX_DISK,
            shows_stderr: false,
        };
        let (mut running, to, from) =
            launch.start().map_err(|error| format!("Chromium cannot be started: {error}"))?;
        let connection = Connection::start(from, to, self.max_message);
        let asked = connection.call(None, "Browser.getVersion", json!({}));
        let how = match timeout(START_TIMEOUT, asked).await {
            Ok(Ok(version)) => {
                debug!(version = version.get(), "a browser has started");
                return Ok(self.attended(running, connection, Arc::clone(deaths)));
            }
            Ok(Err(_)) => "ended at its start".to_owned(),
            Err(_) => format!("did not answer within {START_TIMEOUT:?} of its start"),
        };
        connection.close();
        let said = running.stop().await.last_words();
        let why = format!("Chromium {how}{}", said.map(|said| format!(": {said}")).unwrap_or_default());
        self.deaths.note(&why);
        self.counts.add_died();
        Err(why)
    }

    /// Returns a browser that has started.
    fn attended(&self, running: Supervised, connection: Connection, deaths: Arc<Deaths>) -> Browser {
        let retired = CancellationToken::new();
        let (leases, pages) = Default::default();
        let browser = Browser {
            connection: connection.clone(),
            leases,
            pages,
            since: Instant::now(),
            _retires: retired.clone().drop_guard(),
        };
        let ends = (retired, deaths, Arc::clone(&self.counts));
        tokio::spawn(attend(running, connection, ends));
        browser
    }
}

impl Browser {
    /// Sends it a command, and returns the result. Without one in time, the browser is lost.
    ///
    /// # Errors
    /// Fails if the browser is lost, or refuses.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        match timeout(ANSWER_TIMEOUT, self.connection.call(None, method, params)).await {
            Ok(answer) => answer.map(|answer| serde_json::from_str(answer.get()).unwrap_or_default()),
            Err(_) => {
                warn!(method, "a browser does not answer: it is ended");
                self.connection.close();
                Err(CallError::Closed)
            }
        }
    }

    /// Whether it may be given another page, beside less than `most`.
    pub(crate) fn has_place(&self, most: usize) -> bool {
        !self.is_over() && !self.is_worn() && self.leases.load(Ordering::Relaxed) < most
    }

    /// Whether nobody will use it again.
    pub(crate) fn is_done(&self) -> bool {
        self.is_over() || self.is_worn() && !self.is_used()
    }

    /// Whether it has pages.
    pub(crate) fn is_used(&self) -> bool {
        self.leases.load(Ordering::Relaxed) > 0
    }

    fn is_over(&self) -> bool {
        self.connection.is_closed()
    }

    fn is_worn(&self) -> bool {
        self.pages.load(Ordering::Relaxed) >= MAX_PAGES || self.since.elapsed() >= MAX_AGE
    }

    /// Counts a page that it is given.
    pub(crate) fn enter(&self) {
        self.pages.fetch_add(1, Ordering::Relaxed);
        self.leases.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a page that is over.
    pub(crate) fn leave(&self) {
        self.leases.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Stays with a browser until it has died, or is no longer used, and then ends it with all that it started.
async fn attend(
    mut running: Supervised,
    connection: Connection,
    (retired, deaths, counts): (CancellationToken, Arc<Deaths>, Arc<Counts>),
) {
    let mut counted = counts.browser();
    let has_died = tokio::select! {
        () = retired.cancelled() => false,
        () = connection.closed() => !retired.is_cancelled(),
        never = look(&running, &mut counted) => match never {},
    };
    if has_died {
        deaths.note("Chromium died");
        counts.add_died();
    }
    connection.close();
    let end = running.stop().await;
    if has_died {
        warn!("a browser {}", end.how());
    }
}

/// Looks again and again at what a browser uses.
async fn look(running: &Supervised, counted: &mut CountedBrowser) -> Infallible {
    loop {
        sleep(LOOK_INTERVAL).await;
        counted.set_usage(running.usage().await);
    }
}
