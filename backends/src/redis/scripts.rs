//! The Lua scripts, each one transition of a record. Redis runs a script alone and whole.
//!
//! The line `#!lua` makes Redis refuse a script before its first command when memory is full, so that none stops
//! half-way. Scripts that admit URLs or crawls are refused so; all others are let through, because they bring URLs
//! to their end (`full.rs`).

pub(crate) mod codes;
mod crawl_script;

use redis::Script;
use trawl_common::format::FORMAT;
use trawl_common::settings::Dedup;

use crate::redis::scripts::codes::{closing, ended, parked, reply, seen, sender, slot, start, taken};
pub(crate) use crate::redis::scripts::crawl_script::CrawlScript;
use crate::redis::scripts::crawl_script::Key;

/// The head of a script that a full server refuses.
const TAKES_IN: &str = "#!lua";
/// The head of a script that only reads.
const READS: &str = "#!lua flags=no-writes";
/// The head of a script that a full server runs.
const GOES_ON: &str = "#!lua flags=allow-oom";

/// The source of a script's clock: code for the function `now_us`.
#[derive(Clone, Copy)]
pub(crate) struct Clock(pub(crate) &'static str);

impl Clock {
    /// The server's clock.
    pub(crate) const SERVER: Self = Self(include_str!("scripts/clock.lua"));

    /// Returns the script that reads this clock.
    pub(crate) fn script(self) -> Script {
        self.compose(READS, &[include_str!("scripts/time.lua")])
    }

    fn compose(self, head: &str, parts: &[&str]) -> Script {
        let run = include_str!("scripts/run.lua");
        Script::new(&format!("{head}\nlocal FORMAT = {FORMAT}\n{}{run}{}", self.0, parts.concat()))
    }

    /// Composes a script on these keys of a crawl, which it knows by their names.
    fn on_crawl(self, head: &str, keys: &'static [Key], parts: &[&str]) -> CrawlScript {
        let names: Vec<&str> = keys.iter().map(|key| (*key).into()).collect();
        CrawlScript { script: self.named(head, &names.join(", "), parts), keys }
    }

    fn named(self, head: &str, names: &str, parts: &[&str]) -> Script {
        self.compose(head, &[&format!("local {names} = unpack(KEYS)\n"), RECORD, &parts.concat()])
    }

    fn plain(self, keys: &'static [Key], body: &str) -> CrawlScript {
        self.on_crawl(GOES_ON, keys, &[body])
    }

    /// Composes a script that uses the list of urgent tasks.
    fn urgent(self, head: &str, keys: &'static [Key], parts: &[&str]) -> CrawlScript {
        self.on_crawl(head, keys, &[include_str!("claim/urgent.lua"), &parts.concat()])
    }

    /// Composes a script that uses the leases of discovery.
    fn leasing(self, head: &str, keys: &'static [Key], body: &str) -> CrawlScript {
        self.on_crawl(head, keys, &[include_str!("admission/leases.lua"), body])
    }

    /// Composes a script that uses the seen URLs. A set that it creates has the form `dedup`.
    fn seeing(self, dedup: Dedup, head: &str, keys: &'static [Key], body: &str) -> CrawlScript {
        self.on_crawl(head, keys, &[&seen_urls(dedup), body])
    }
}

const RECORD: &str = include_str!("scripts/record.lua");

/// Returns the functions on seen URLs.
fn seen_urls(dedup: Dedup) -> String {
    let begins_packed = dedup == Dedup::Packed;
    let (seen, requests) = (include_str!("seen/seen.lua"), include_str!("admission/requests.lua"));
    format!("local BEGINS_PACKED = {begins_packed}\n{seen}{requests}")
}

/// Returns the script that packs a plain set.
pub(crate) fn pack() -> Script {
    Clock::SERVER.seeing(Dedup::Packed, TAKES_IN, &[Key::Seen], include_str!("seen/pack.lua")).script
}

/// Returns the script that writes a session.
pub(crate) fn session() -> Script {
    Clock::SERVER.compose(GOES_ON, &[include_str!("sessions/write.lua")])
}

/// Returns the script by which a runner asks for access.
pub(crate) fn ask_runner() -> Script {
    Clock::SERVER.compose(GOES_ON, &[include_str!("runners/ask.lua")])
}

/// Returns the script that gives a runner access.
pub(crate) fn allow_runner() -> Script {
    Clock::SERVER.compose(GOES_ON, &[include_str!("runners/allow.lua")])
}

/// Declares a struct of scripts, each with the code that composes it, and its constructor.
macro_rules! scripts {
    (
        $(#[$meta:meta])*
        struct $name:ident($($argument:ident: $type:ty),*) { $($common:tt)* }
        $($(#[$doc:meta])* $script:ident: $kind:ty = $composed:expr,)*
    ) => {
        $(#[$meta])*
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $script: $kind,)*
        }

        impl $name {
            /// Composes the scripts.
            pub(crate) fn new($($argument: $type),*) -> Self {
                $($common)*
                Self { $($script: $composed,)* }
            }
        }
    };
}

scripts! {
    /// Every script of the frontier.
    struct Scripts(clock: Clock, dedup: Dedup) {
        use Key::{
            Begun, Corrupt, Crawl, Failed, Gone, Hosts, Invalid, Leases, Outbox, Own, Pending, Recipes, Seen,
            Told, Urgent,
        };
        let plain = |keys, body| clock.plain(keys, body);
        let reading = |keys, body| clock.on_crawl(READS, keys, &[body]);
        let leasing = |head, keys, body| clock.leasing(head, keys, body);
        let seeing = |head, keys, body: &str| clock.seeing(dedup, head, keys, body);
        let admission = |keys, parts: &[&str]| {
            let admission = include_str!("admission/admission.lua");
            seeing(TAKES_IN, keys, &[taken::LUA, admission, &parts.concat()].concat())
        };
        let claiming = |head, takes_new: bool| {
            let (takes_new, claim) =
                (format!("local TAKES_NEW = {takes_new}\n"), include_str!("claim/claim.lua"));
            let keys = &[Crawl, Seen, Own, Pending, Hosts, Outbox];
            seeing(head, keys, &[&*takes_new, reply::LUA, sender::LUA, claim].concat())
        };
        let start = [start::LUA, include_str!("claim/start.lua")].concat();
        let anew =
            "FROM, CRAWL, FAILED, PENDING, OUTBOX, SEEN_PLAIN, SEEN_PACKED, OWN_PLAIN, OWN_PACKED, GONE, HOSTS";
    }

    time: Script = clock.script(),
    run: CrawlScript = reading(&[Crawl], "return run_id()\n"),
    backlog: CrawlScript = reading(&[Pending, Recipes], include_str!("admission/backlog.lua")),
    places: CrawlScript = reading(&[Pending], include_str!("crawls/places.lua")),
    seen_urls: Script = seeing(GOES_ON, &[Seen], &[seen::LUA, include_str!("seen/seen_urls.lua")].concat())
        .script,
    forget_all: Script = seeing(GOES_ON, &[Seen], include_str!("crawls/forget_all.lua")).script,
    stats: CrawlScript = reading(&[Crawl, Pending, Told], include_str!("crawls/stats.lua")),
    create: CrawlScript = plain(&[Crawl], include_str!("admission/create.lua")),
    open: CrawlScript = leasing(TAKES_IN, &[Leases, Crawl], include_str!("admission/open.lua")),
    renew: CrawlScript = leasing(GOES_ON, &[Leases], include_str!("admission/renew.lua")),
    admit: CrawlScript = admission(
        &[Leases, Crawl, Seen, Own, Pending, Outbox, Hosts],
        &[include_str!("admission/leases.lua"), include_str!("admission/admit.lua")],
    ),
    follow: CrawlScript = admission(
        &[Crawl, Seen, Own, Pending, Outbox, Hosts],
        &[include_str!("admission/follow.lua")],
    ),
    take_in: CrawlScript = admission(
        &[Crawl, Seen, Own, Pending, Outbox, Hosts],
        &[include_str!("admission/take_in.lua")],
    ),
    confirm: CrawlScript = plain(&[Pending, Outbox], include_str!("admission/confirm.lua")),
    close: CrawlScript = leasing(
        GOES_ON,
        &[Leases, Crawl, Pending],
        &[closing::LUA, include_str!("admission/close.lua")].concat(),
    ),
    claim: CrawlScript = claiming(TAKES_IN, true),
    /// Like `claim`, but does not admit URLs without a record.
    claim_known: CrawlScript = claiming(GOES_ON, false),
    extend: CrawlScript = claiming(GOES_ON, true),
    start: CrawlScript = plain(&[Pending, Crawl, Begun], &start),
    /// Like `start`, for one task: not if a more urgent one waits.
    start_task: CrawlScript = clock.urgent(
        GOES_ON,
        &[Pending, Crawl, Begun, Urgent],
        &[include_str!("claim/start_task.lua"), &start],
    ),
    list_urgent: CrawlScript = clock.urgent(TAKES_IN, &[Urgent], &[include_str!("claim/list_urgent.lua")]),
    park: CrawlScript =
        plain(&[Pending, Outbox, Begun], &[parked::LUA, include_str!("settle/park.lua")].concat()),
    release: CrawlScript = plain(&[Pending, Begun], include_str!("settle/release.lua")),
    finish: CrawlScript = seeing(
        GOES_ON,
        &[Crawl, Pending, Failed, Outbox, Gone, Seen, Own, Begun, Hosts, Told],
        include_str!("settle/finish.lua"),
    ),
    hold: Script = clock.compose(GOES_ON, &[include_str!("recovery/hold.lua")]),
    sweep: CrawlScript = plain(&[Pending, Outbox], include_str!("recovery/sweep.lua")),
    quarantine: CrawlScript = plain(&[Pending], include_str!("recovery/quarantine.lua")),
    end: CrawlScript = leasing(GOES_ON, &[Crawl, Pending, Leases], include_str!("recovery/end.lua")),
    wait: CrawlScript = plain(&[Crawl], include_str!("recovery/await.lua")),
    clear: CrawlScript = seeing(
        GOES_ON,
        &[Crawl, Pending, Gone, Outbox, Own, Begun, Hosts, Failed, Corrupt],
        include_str!("recovery/clear.lua"),
    ),
    watermark: Script = clock.compose(GOES_ON, &[RECORD, include_str!("recovery/watermark.lua")]),
    command: CrawlScript = leasing(GOES_ON, &[Crawl, Pending, Leases], include_str!("crawls/command.lua")),
    purge: CrawlScript = plain(&[Failed, Pending], include_str!("crawls/purge.lua")),
    replay: Script = clock.named(TAKES_IN, anew, &[&seen_urls(dedup), include_str!("crawls/replay.lua")]),
    has_seen: CrawlScript = seeing(READS, &[Crawl, Seen, Own], include_str!("seen/has_seen.lua")),
    url_state: CrawlScript = seeing(
        READS,
        &[Crawl, Pending, Outbox, Begun, Seen, Own],
        include_str!("crawls/url_state.lua"),
    ),
    tasks: CrawlScript = reading(&[Pending], include_str!("crawls/tasks.lua")),
    cancel_tasks: CrawlScript = seeing(
        GOES_ON,
        &[Crawl, Pending, Outbox, Begun, Seen, Own, Gone],
        include_str!("crawls/cancel_tasks.lua"),
    ),
    invalid: CrawlScript = plain(&[Crawl, Invalid], include_str!("admission/invalid.lua")),
    forget: CrawlScript = seeing(GOES_ON, &[Gone, Seen], include_str!("crawls/forget.lua")),
    drain: Script = clock.compose(GOES_ON, &[include_str!("workers/drain.lua")]),
}

scripts! {
    /// Every script of the host schedules.
    struct HostScripts(clock: Clock) {
        let constants = host_constants();
        let script = |body: &str| clock.compose(GOES_ON, &[&constants, include_str!("hosts/host.lua"), body]);
    }

    reserve: Script = script(&[slot::LUA, include_str!("hosts/reserve.lua")].concat()),
    in_flight: Script = script(&[ended::LUA, include_str!("hosts/in_flight.lua")].concat()),
    late: Script = script(include_str!("hosts/late.lua")),
    push: Script = script(include_str!("hosts/push.lua")),
    block: Script = script(include_str!("hosts/block.lua")),
    unlist: Script = clock.compose(GOES_ON, &[include_str!("hosts/unlist.lua")]),
}

scripts! {
    /// Every script of jobs.
    struct JobScripts(clock: Clock, guard: Guard) {
        let queue = include_str!("jobs/queue.lua");
        let guard = if guard == Guard::Journal { include_str!("jobs/guard.lua") } else { "" };
        let anyway = |head, body| clock.compose(head, &[queue, body]);
        let script = |head, body| clock.compose(head, &[queue, guard, body]);
    }

    submit: Script = script(TAKES_IN, include_str!("jobs/submit.lua")),
    take: Script = script(GOES_ON, include_str!("jobs/take.lua")),
    extend: Script = script(GOES_ON, include_str!("jobs/extend.lua")),
    fed: Script = script(GOES_ON, include_str!("jobs/fed.lua")),
    put_back: Script = script(GOES_ON, include_str!("jobs/put_back.lua")),
    end: Script = script(GOES_ON, include_str!("jobs/end.lua")),
    cancel: Script = script(GOES_ON, include_str!("jobs/cancel.lua")),
    look_after: Script = script(GOES_ON, include_str!("jobs/look_after.lua")),
    job: Script = script(READS, include_str!("jobs/read.lua")),
    read: Script = anyway(READS, include_str!("jobs/read.lua")),
    forget: Script = script(GOES_ON, include_str!("jobs/forget.lua")),
    kept: Script = anyway(GOES_ON, include_str!("jobs/kept.lua")),
    restore: Script = anyway(GOES_ON, include_str!("jobs/restore.lua")),
}

/// Whether scripts refuse a server that has not read the stream `journal` yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    None,
    Journal,
}

scripts! {
    /// Every script of the stream `journal`.
    struct JournalScripts() {
        let script = |head, body| Clock::SERVER.compose(head, &[body]);
    }

    behind: Script = script(READS, include_str!("journal/behind.lua")),
    taken_in: Script = script(GOES_ON, include_str!("journal/taken_in.lua")),
    give_up: Script = script(GOES_ON, include_str!("journal/give_up.lua")),
}

scripts! {
    /// Every script of versions.
    struct VersionScripts(clock: Clock) {
        let script = |head, body| clock.compose(head, &[include_str!("jobs/versions/project.lua"), body]);
    }

    add: Script = script(TAKES_IN, include_str!("jobs/versions/add.lua")),
    remove: Script = script(GOES_ON, include_str!("jobs/versions/remove.lua")),
    restore: Script = script(GOES_ON, include_str!("jobs/versions/restore.lua")),
}

scripts! {
    /// Every script of projects.
    struct ProjectScripts() {
        let script = |head, body| Clock::SERVER.compose(head, &[body]);
    }

    create: Script = script(TAKES_IN, include_str!("projects/create.lua")),
    add_spider: Script = script(TAKES_IN, include_str!("projects/add_spider.lua")),
    remove_spider: Script = script(GOES_ON, include_str!("projects/remove_spider.lua")),
    set_secret: Script = script(TAKES_IN, include_str!("projects/set_secret.lua")),
    set_source: Script = script(TAKES_IN, include_str!("projects/set_source.lua")),
    want: Script = script(TAKES_IN, include_str!("projects/want.lua")),
    note_version: Script = script(TAKES_IN, include_str!("projects/note_version.lua")),
    project: Script = script(READS, include_str!("projects/project.lua")),
    code: Script = script(READS, include_str!("projects/code.lua")),
    forget: Script = script(GOES_ON, include_str!("projects/forget.lua")),
}

scripts! {
    /// Every script of schedules.
    struct ScheduleScripts() {
        let script = |head, body| Script::new(&format!("{head}\n{body}"));
    }

    note: Script = script(GOES_ON, include_str!("jobs/schedules/note.lua")),
    resume: Script = script(GOES_ON, include_str!("jobs/schedules/resume.lua")),
    restore: Script = script(GOES_ON, include_str!("jobs/schedules/restore.lua")),
}

/// Returns the constants that both engines share; times are in microseconds.
fn host_constants() -> String {
    use trawl_common::politeness::gcra::{
        EARLY, FORGIVEN_AFTER, HONOURED, HORIZON, LEAD, MIN_STEP, QUANTUM, REACH, TOLERANCE,
    };
    let constants = [
        ("EARLY", EARLY),
        ("FORGIVEN_AFTER", FORGIVEN_AFTER),
        ("HORIZON", HORIZON),
        ("LEAD", LEAD),
        ("MIN_STEP", MIN_STEP),
        ("QUANTUM", QUANTUM),
        ("REACH", REACH),
    ];
    let times: String =
        constants.iter().map(|(name, time)| format!("local {name} = {}\n", time.as_micros())).collect();
    format!("{times}local HONOURED, TOLERANCE = {HONOURED}, {TOLERANCE}\n")
}
