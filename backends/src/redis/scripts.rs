//! The Lua scripts, each one transition of a record. Redis runs a script alone and whole.
//!
//! The line `#!lua` makes Redis refuse a script before its first command when memory is full, so that none stops
//! half-way. Scripts that admit URLs or crawls are refused so; all others are let through, because they bring URLs
//! to their end (`full.rs`).

use redis::Script;
use trawl_common::format::FORMAT;
use trawl_common::settings::Dedup;

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

    fn plain(self, body: &str) -> Script {
        self.compose(GOES_ON, &[include_str!("scripts/record.lua"), body])
    }

    /// Composes a script that uses the list of urgent tasks.
    fn urgent(self, head: &str, body: &str) -> Script {
        self.compose(head, &[include_str!("scripts/record.lua"), include_str!("claim/urgent.lua"), body])
    }

    /// Composes a script that uses the leases of discovery.
    fn leasing(self, head: &str, body: &str) -> Script {
        let (record, leases) = (include_str!("scripts/record.lua"), include_str!("admission/leases.lua"));
        self.compose(head, &[record, leases, body])
    }

    /// Composes a script that uses the seen URLs. A set that it creates has the form `dedup`.
    fn seeing(self, dedup: Dedup, head: &str, body: &str) -> Script {
        let begins_packed = format!("local BEGINS_PACKED = {}\n", dedup == Dedup::Packed);
        let (record, seen) = (include_str!("scripts/record.lua"), include_str!("seen/seen.lua"));
        self.compose(head, &[&begins_packed, record, seen, include_str!("admission/requests.lua"), body])
    }
}

/// Returns the script that packs a plain set.
pub(crate) fn pack() -> Script {
    Clock::SERVER.seeing(Dedup::Packed, TAKES_IN, include_str!("seen/pack.lua"))
}

/// Every script of the frontier.
pub(crate) struct Scripts {
    pub(crate) time: Script,
    pub(crate) stats: Script,
    pub(crate) backlog: Script,
    pub(crate) places: Script,
    pub(crate) seen_urls: Script,
    pub(crate) forget_all: Script,
    pub(crate) create: Script,
    pub(crate) open: Script,
    pub(crate) renew: Script,
    pub(crate) admit: Script,
    pub(crate) follow: Script,
    pub(crate) take_in: Script,
    pub(crate) confirm: Script,
    pub(crate) close: Script,
    pub(crate) claim: Script,
    /// Like `claim`, but does not admit URLs without a record.
    pub(crate) claim_known: Script,
    pub(crate) extend: Script,
    pub(crate) start: Script,
    /// Like `start`, for one task: not if a more urgent one waits.
    pub(crate) start_task: Script,
    pub(crate) list_urgent: Script,
    pub(crate) park: Script,
    pub(crate) release: Script,
    pub(crate) finish: Script,
    pub(crate) hold: Script,
    pub(crate) sweep: Script,
    pub(crate) quarantine: Script,
    pub(crate) tend: Script,
    pub(crate) wait: Script,
    pub(crate) clear: Script,
    pub(crate) watermark: Script,
    pub(crate) command: Script,
    pub(crate) purge: Script,
    pub(crate) replay: Script,
    pub(crate) has_seen: Script,
    pub(crate) url_state: Script,
    pub(crate) tasks: Script,
    pub(crate) cancel_tasks: Script,
    pub(crate) forget: Script,
    pub(crate) invalid: Script,
    pub(crate) drain: Script,
}

impl Scripts {
    /// Composes the scripts with `clock`. A set of URLs that a script creates has the form `dedup`.
    pub(crate) fn new(clock: Clock, dedup: Dedup) -> Self {
        let plain = |body| clock.plain(body);
        let leasing = |head, body| clock.leasing(head, body);
        let seeing = |head, body: &str| clock.seeing(dedup, head, body);
        let admission = |body| seeing(TAKES_IN, &[include_str!("admission/admission.lua"), body].concat());
        let claiming = |head, takes_new: bool| {
            seeing(head, &format!("local TAKES_NEW = {takes_new}\n{}", include_str!("claim/claim.lua")))
        };
        Self {
            time: clock.script(),
            backlog: clock.compose(READS, &[include_str!("admission/backlog.lua")]),
            places: clock
                .compose(READS, &[include_str!("scripts/record.lua"), include_str!("crawls/places.lua")]),
            seen_urls: seeing(GOES_ON, include_str!("seen/seen_urls.lua")),
            forget_all: seeing(GOES_ON, include_str!("crawls/forget_all.lua")),
            stats: clock.compose(READS, &[include_str!("crawls/stats.lua")]),
            create: plain(include_str!("admission/create.lua")),
            open: leasing(TAKES_IN, include_str!("admission/open.lua")),
            renew: leasing(GOES_ON, include_str!("admission/renew.lua")),
            admit: admission(concat!(
                include_str!("admission/leases.lua"),
                include_str!("admission/admit.lua")
            )),
            follow: admission(include_str!("admission/follow.lua")),
            take_in: admission(include_str!("admission/take_in.lua")),
            confirm: plain(include_str!("admission/confirm.lua")),
            close: leasing(GOES_ON, include_str!("admission/close.lua")),
            claim: claiming(TAKES_IN, true),
            claim_known: claiming(GOES_ON, false),
            extend: claiming(GOES_ON, true),
            start: plain(include_str!("claim/start.lua")),
            start_task: clock.urgent(
                GOES_ON,
                concat!(include_str!("claim/start_task.lua"), include_str!("claim/start.lua")),
            ),
            list_urgent: clock.urgent(TAKES_IN, include_str!("claim/list_urgent.lua")),
            park: plain(include_str!("settle/park.lua")),
            release: plain(include_str!("settle/release.lua")),
            finish: seeing(GOES_ON, include_str!("settle/finish.lua")),
            hold: plain(include_str!("recovery/hold.lua")),
            sweep: plain(include_str!("recovery/sweep.lua")),
            quarantine: plain(include_str!("recovery/quarantine.lua")),
            tend: leasing(GOES_ON, include_str!("recovery/tend.lua")),
            wait: plain(include_str!("recovery/await.lua")),
            clear: seeing(GOES_ON, include_str!("recovery/clear.lua")),
            watermark: plain(include_str!("recovery/watermark.lua")),
            command: leasing(GOES_ON, include_str!("crawls/command.lua")),
            purge: plain(include_str!("crawls/purge.lua")),
            replay: seeing(TAKES_IN, include_str!("crawls/replay.lua")),
            has_seen: seeing(READS, include_str!("seen/has_seen.lua")),
            url_state: seeing(READS, include_str!("crawls/url_state.lua")),
            tasks: clock
                .compose(READS, &[include_str!("scripts/record.lua"), include_str!("crawls/tasks.lua")]),
            cancel_tasks: seeing(GOES_ON, include_str!("crawls/cancel_tasks.lua")),
            invalid: plain(include_str!("admission/invalid.lua")),
            forget: seeing(GOES_ON, include_str!("crawls/forget.lua")),
            drain: plain(include_str!("workers/drain.lua")),
        }
    }
}

/// Every script of the host schedules.
pub(crate) struct HostScripts {
    pub(crate) reserve: Script,
    pub(crate) stay: Script,
    pub(crate) leave: Script,
    pub(crate) late: Script,
    pub(crate) push: Script,
    pub(crate) block: Script,
    pub(crate) unlist: Script,
}

impl HostScripts {
    /// Composes the scripts with `clock`.
    pub(crate) fn new(clock: Clock) -> Self {
        let constants = host_constants();
        let script = |body| clock.compose(GOES_ON, &[&constants, include_str!("hosts/host.lua"), body]);
        Self {
            reserve: script(include_str!("hosts/reserve.lua")),
            stay: script(include_str!("hosts/stay.lua")),
            leave: script(include_str!("hosts/leave.lua")),
            late: script(include_str!("hosts/late.lua")),
            push: script(include_str!("hosts/push.lua")),
            block: script(include_str!("hosts/block.lua")),
            unlist: clock.compose(GOES_ON, &[include_str!("hosts/unlist.lua")]),
        }
    }
}

/// Every script of jobs.
pub(crate) struct JobScripts {
    pub(crate) submit: Script,
    pub(crate) take: Script,
    pub(crate) extend: Script,
    pub(crate) fed: Script,
    pub(crate) put_back: Script,
    pub(crate) end: Script,
    pub(crate) cancel: Script,
    pub(crate) look_after: Script,
    pub(crate) job: Script,
    pub(crate) read: Script,
    pub(crate) forget: Script,
    pub(crate) kept: Script,
    pub(crate) restore: Script,
}

/// Whether scripts refuse a server that has not read the stream `journal` yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    None,
    Journal,
}

impl JobScripts {
    /// Composes the scripts with `clock`.
    pub(crate) fn new(clock: Clock, guard: Guard) -> Self {
        let queue = include_str!("jobs/queue.lua");
        let guard = if guard == Guard::Journal { include_str!("jobs/guard.lua") } else { "" };
        let anyway = |head, body| clock.compose(head, &[queue, body]);
        let script = |head, body| clock.compose(head, &[queue, guard, body]);
        Self {
            submit: script(TAKES_IN, include_str!("jobs/submit.lua")),
            take: script(GOES_ON, include_str!("jobs/take.lua")),
            extend: script(GOES_ON, include_str!("jobs/extend.lua")),
            fed: script(GOES_ON, include_str!("jobs/fed.lua")),
            put_back: script(GOES_ON, include_str!("jobs/put_back.lua")),
            end: script(GOES_ON, include_str!("jobs/end.lua")),
            cancel: script(GOES_ON, include_str!("jobs/cancel.lua")),
            look_after: script(GOES_ON, include_str!("jobs/look_after.lua")),
            job: script(READS, include_str!("jobs/read.lua")),
            read: anyway(READS, include_str!("jobs/read.lua")),
            forget: script(GOES_ON, include_str!("jobs/forget.lua")),
            kept: anyway(GOES_ON, include_str!("jobs/kept.lua")),
            restore: anyway(GOES_ON, include_str!("jobs/restore.lua")),
        }
    }
}

/// Every script of the stream `journal`.
pub(crate) struct JournalScripts {
    pub(crate) behind: Script,
    pub(crate) taken_in: Script,
    pub(crate) give_up: Script,
}

impl Default for JournalScripts {
    fn default() -> Self {
        let script = |head, body| Clock::SERVER.compose(head, &[body]);
        Self {
            behind: script(READS, include_str!("journal/behind.lua")),
            taken_in: script(GOES_ON, include_str!("journal/taken_in.lua")),
            give_up: script(GOES_ON, include_str!("journal/give_up.lua")),
        }
    }
}

/// Every script of versions.
pub(crate) struct VersionScripts {
    pub(crate) add: Script,
    pub(crate) remove: Script,
    pub(crate) restore: Script,
}

impl VersionScripts {
    /// Composes the scripts with `clock`.
    pub(crate) fn new(clock: Clock) -> Self {
        let script = |head, body| clock.compose(head, &[include_str!("jobs/versions/project.lua"), body]);
        Self {
            add: script(TAKES_IN, include_str!("jobs/versions/add.lua")),
            remove: script(GOES_ON, include_str!("jobs/versions/remove.lua")),
            restore: script(GOES_ON, include_str!("jobs/versions/restore.lua")),
        }
    }
}

/// Every script of schedules.
pub(crate) struct ScheduleScripts {
    pub(crate) note: Script,
    pub(crate) resume: Script,
    pub(crate) restore: Script,
}

impl Default for ScheduleScripts {
    fn default() -> Self {
        let script = |head, body| Script::new(&format!("{head}\n{body}"));
        Self {
            note: script(GOES_ON, include_str!("jobs/schedules/note.lua")),
            resume: script(GOES_ON, include_str!("jobs/schedules/resume.lua")),
            restore: script(GOES_ON, include_str!("jobs/schedules/restore.lua")),
        }
    }
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
