//! The calls by which a runner works: a worker on a machine that reaches nothing but the HTTP API, which relays each call
//! to its own ports.
//!
//! A call is `POST /api/v1/runner/<name>`. Its body is the call as JSON, and the response is a [`Reply`]. The headers say
//! who calls: [`RUNNER`] and `Authorization: Bearer <key>`. All calls but [`Register`] and [`JoinFleet`] also have
//! [`SESSION`]. A session is one process's part in the engine, held by one process of the API: when either is gone, so is
//! the session, and all that was held in it is handed out again.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frontier::StartReply;
use crate::frontier::message::{Hop, Message};
use crate::frontier::route::Rule;
use crate::logs::LogEntry;
use crate::names::{CrawlRef, ProjectName, SpiderName, WorkerId};
use crate::politeness::gcra::Slot;
use crate::politeness::robots::{RobotsFile, RobotsKey};
use crate::ports::{
    BackoffRequest, BeatReply, Claim as Held, Claimed, Disposition, Ended, Error, ErrorKind, Finish,
    Heartbeat, HostSlotRequest, InFlightRequest, Page, Result, Revision, RobotsEntry, SentLate,
    StoredSession,
};
use crate::project::{Grant, VersionReport};
use crate::session::{SessionId, SessionState};
use crate::settings::{Fetch, Items, Politeness, Retry, Urls};
use crate::spider::page_history::Visited;
use crate::time::UnixMs;
use crate::web::host::HostKey;
use crate::web::url::CanonicalUrl;

/// The path below which the calls are served.
pub const PATH: &str = "/api/v1/runner";

/// The header with the name of the runner.
pub const RUNNER: &str = "trawl-runner";

/// The header with the session of a call.
pub const SESSION: &str = "trawl-session";

/// The header with the number of a call whose reply is kept ([`Call::KEEPS_REPLY`]).
pub const NUMBER: &str = "trawl-call";

/// The time for which the API waits for work before it replies that there is none.
pub const POLL: Duration = Duration::from_secs(20);

/// Maximum size of the body of a call or a response in bytes: the items of a page have at most 32 MB.
pub const MAX_BODY_BYTES: usize = 64 << 20;

/// A call.
pub trait Call: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The last part of its path.
    const NAME: &'static str;

    /// Whether the API keeps the reply for a while. A runner that has lost it repeats the call with the same number, and
    /// the call is carried out once.
    const KEEPS_REPLY: bool = false;

    /// The type of the reply.
    type Reply: Serialize + DeserializeOwned + Send + Sync + 'static;
}

/// The response to a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply<T> {
    /// The result.
    Done(T),
    /// The error of the port.
    Failed {
        /// Its kind.
        kind: ErrorKind,
        /// Its text.
        text: String,
    },
}

impl<T> From<Result<T>> for Reply<T> {
    fn from(result: Result<T>) -> Self {
        match result {
            Ok(done) => Self::Done(done),
            Err(error) => Self::Failed { kind: error.kind, text: error.to_string() },
        }
    }
}

impl<T> From<Reply<T>> for Result<T> {
    fn from(reply: Reply<T>) -> Self {
        match reply {
            Reply::Done(done) => Ok(done),
            Reply::Failed { kind, text } => Err(Error::new(kind, text)),
        }
    }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident $name:literal { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? } -> $reply:ty $(, $keeps:ident)?;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Serialize, Deserialize)]
            #[serde(deny_unknown_fields)]
            pub struct $call {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl Call for $call {
                const NAME: &'static str = $name;
                $(const KEEPS_REPLY: bool = calls!(@ $keeps);)?
                type Reply = $reply;
            }
        )*
    };
    (@ keeps_reply) => { true };
}

calls! {
    /// Asks for access, and says which access there is.
    Register "register" {
        /// The version of the runner's program.
        version: String,
    } -> Registered;

    /// Begins a session: lets the runner join the engine as a worker.
    JoinFleet "join" {
        /// A number that the runner's process has chosen at its start.
        process: u64,
        /// Maximum number of URLs to hold.
        prefetch: u16,
        /// Maximum number of tasks to hold.
        tasks: u16,
    } -> JoinedFleet;

    /// Waits for work, for [`POLL`] at most; the result may be empty.
    Claim "claim" {
        /// Whether tasks are claimed, not URLs.
        tasks: bool,
        /// Maximum number to claim.
        most: usize,
    } -> Vec<Claimed>, keeps_reply;

    /// Counts starts.
    Start "start" {
        /// The work that is to start.
        claims: Vec<Held>,
    } -> Vec<StartReply>;

    /// Counts the start of a task, unless a more urgent one comes first.
    StartTask "start_task" {
        /// The task.
        claim: Held,
    } -> Option<StartReply>;

    /// Confirms that work is still the runner's.
    Extend "extend" {
        /// The work.
        claims: Vec<Held>,
    } -> Vec<bool>;

    /// Records outcomes. Work that the session does not hold is left out of the reply.
    Settle "settle" {
        /// The outcomes.
        batch: Vec<Outcome>,
    } -> Recorded, keeps_reply;

    /// Ends the session: all that it holds is handed out again.
    Leave "leave" {} -> ();

    /// Asks whether the spider of a crawl has seen a URL.
    HasSeen "has_seen" {
        /// The crawl.
        crawl: CrawlRef,
        /// The URL.
        url: CanonicalUrl,
    } -> bool;

    /// Says that the runner is alive.
    Beat "beat" {
        /// The heartbeat.
        beat: Heartbeat,
    } -> Beaten;

    /// Reserves slots of hosts.
    Reserve "reserve" {
        /// The requests.
        asks: Vec<HostSlotRequest>,
    } -> Vec<Slot>;

    /// Extends long requests.
    Stay "stay" {
        /// The requests.
        visits: Vec<InFlightRequest>,
        /// The time for which they count as in flight.
        lapse: Duration,
    } -> ();

    /// Ends requests to hosts.
    LeaveHosts "leave_hosts" {
        /// The requests.
        ended: Vec<Ended>,
    } -> ();

    /// Records requests that were sent late.
    Late "sent_late" {
        /// The requests.
        sent: Vec<SentLate>,
    } -> ();

    /// Starts a back-off of a host. The reply is the time until its end.
    PushBack "push_back" {
        /// The host.
        key: HostKey,
        /// The host's answer.
        refusal: BackoffRequest,
    } -> Duration;

    /// Asks for a robots.txt.
    Robots "robots" {
        /// Its key.
        key: RobotsKey,
        /// The time after which another caller is asked to fetch it.
        lease: Duration,
    } -> RobotsEntry;

    /// Keeps a robots.txt.
    KeepRobots "keep_robots" {
        /// Its key.
        key: RobotsKey,
        /// The file.
        file: RobotsFile,
        /// The time for which it is kept.
        ttl: Duration,
    } -> ();

    /// Lets another worker fetch a robots.txt.
    GiveUpRobots "give_up_robots" {
        /// Its key.
        key: RobotsKey,
    } -> ();

    /// Asks for what is remembered of pages.
    Look "look" {
        /// Whose pages they are.
        spider: SpiderName,
        /// The pages.
        urls: Vec<CanonicalUrl>,
    } -> Vec<Option<Visited>>;

    /// Reads a session at a site.
    ReadSession "read_session" {
        /// The session.
        session: SessionId,
        /// The revision that the runner knows.
        known: Revision,
    } -> Option<StoredSession>;

    /// Replaces a session at a site.
    WriteSession "write_session" {
        /// The session.
        session: SessionId,
        /// The revision to replace.
        expected: Revision,
        /// Its new state.
        state: SessionState,
    } -> Option<Revision>;

    /// Pauses a crawl in which something keeps failing.
    Pause "pause" {
        /// The crawl.
        crawl: CrawlRef,
        /// The reason.
        why: String,
    } -> ();

    /// Asks for the text of the file of a crawl's spider, without its sinks: these are the API's.
    Text "text" {
        /// The crawl.
        crawl: CrawlRef,
    } -> Option<String>;

    /// Asks what the projects of spiders grant to their programs. It includes the secret of a project whose work the runner
    /// may do.
    ReadGrants "read_grants" {
        /// The spiders.
        spiders: Vec<SpiderName>,
    } -> Vec<Option<Grant>>;

    /// Says what the runner has made of a version of a project's code. The machine of the report is the runner, whatever
    /// it says.
    NoteVersion "note_version" {
        /// The report.
        report: VersionReport,
    } -> ();

    /// Stores the output of pages and tasks in the sinks of their spider.
    Put "put" {
        /// The pages.
        pages: Vec<Page>,
    } -> ();

    /// Appends to the log, or to the list of ended tasks.
    Log "log" {
        /// The entries.
        entries: Vec<LogEntry>,
        /// Whether they are ends of tasks.
        are_ends: bool,
    } -> ();
}

/// The access of a runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// Number of projects that there are.
    pub projects: usize,
    /// The projects whose work it may do.
    pub assigned: Vec<ProjectName>,
    /// The settings that all workers have in common; `None` for a runner without access.
    pub shared: Option<Shared>,
}

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JoinedFleet {
    /// Its id, for [`SESSION`].
    pub session: String,
    /// The name of the worker in the fleet.
    pub worker: WorkerId,
    /// The time after which the API gives back what a silent runner holds.
    pub lease: Duration,
}

/// The settings that a runner takes over from the API, so that its pace, its name and what it counts as one URL are the
/// fleet's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    /// `[politeness]`
    pub politeness: Politeness,
    /// `[urls]`
    pub urls: Urls,
    /// `[retry]`
    pub retry: Retry,
    /// `[items]`
    pub items: Items,
    /// `[[route]]`
    pub route: Vec<Rule>,
    /// `[fetch]`, without the proxy.
    pub fetch: Fetch,
}

/// The reply to a heartbeat.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Beaten {
    /// The command for the runner.
    pub reply: BeatReply,
    /// The clock of the engine, in microseconds since 1970.
    pub now_micros: u64,
}

/// The outcome of work that a session holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The work.
    pub claim: Held,
    /// The state of the work for its next claim.
    pub progress: Progress,
    /// The decision about it.
    pub disposition: Disposition,
}

/// The part of a [`Message`] that a worker changes; the API has the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    slot: Option<UnixMs>,
    turn: Option<(UnixMs, u8)>,
    since: Option<UnixMs>,
    hop: Option<Hop>,
    refusals: u16,
    lapses: u16,
    left: u16,
}

impl Progress {
    /// Returns the progress of a message.
    pub fn new(message: &Message) -> Self {
        let Message { slot, turn, since, refusals, lapses, left, .. } = *message;
        Self { slot, turn, since, hop: message.hop.clone(), refusals, lapses, left }
    }

    /// Returns the message with this progress.
    pub fn of(self, message: Message) -> Message {
        let Self { slot, turn, since, hop, refusals, lapses, left } = self;
        Message { slot, turn, since, hop, refusals, lapses, left, ..message }
    }

    /// Returns the target of the last redirect.
    pub fn target(&self) -> Option<&CanonicalUrl> {
        self.hop.as_ref().map(|hop| &hop.url)
    }
}

/// The result of settling, by positions in the batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The outcomes that have a terminal state.
    pub ended: Vec<EndedAt>,
    /// The outcomes that have to be settled again, as the store has no room for them.
    pub not_stored: Vec<usize>,
}

/// An outcome that has a terminal state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedAt {
    /// Its position in the batch.
    pub at: usize,
    /// Its terminal state.
    pub finish: Finish,
    /// The positions of those of its links that the frontier knows.
    pub links: Vec<usize>,
}
