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
pub(super) struct Clock(pub(super) &'static str);

impl Clock {
    /// The server's clock.
    pub(super) const SERVER: Self = Self(include_str!("scripts/clock.lua"));

    /// Returns the script that reads this clock.
    pub(super) fn script(self) -> Script {
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
        self.compose(head, &[include_str!("scripts/record.lua"), include_str!("scripts/urgent.lua"), body])
    }

    /// Composes a script that uses the leases of discovery.
    fn leasing(self, head: &str, body: &str) -> Script {
        let (record, leases) = (include_str!("scripts/record.lua"), include_str!("scripts/leases.lua"));
        self.compose(head, &[record, leases, body])
    }

    /// Composes a script that uses the seen URLs. A set that it creates has the form `dedup`.
    fn seeing(self, dedup: Dedup, head: &str, body: &str) -> Script {
        let begins_packed = format!("local BEGINS_PACKED = {}\n", dedup == Dedup::Packed);
        let (record, seen) = (include_str!("scripts/record.lua"), include_str!("scripts/seen.lua"));
        self.compose(head, &[&begins_packed, record, seen, include_str!("scripts/requests.lua"), body])
    }
}

/// Returns the script that packs a plain set.
pub(super) fn pack() -> Script {
    Clock::SERVER.seeing(Dedup::Packed, TAKES_IN, include_str!("scripts/pack.lua"))
}

/// Every script of the frontier.
pub(super) struct Scripts {
    pub(super) time: Script,
    pub(super) stats: Script,
    pub(super) backlog: Script,
    pub(super) places: Script,
    pub(super) seen_urls: Script,
    pub(super) forget_all: Script,
    pub(super) create: Script,
    pub(super) open: Script,
    pub(super) renew: Script,
    pub(super) admit: Script,
    pub(super) follow: Script,
    pub(super) take_in: Script,
    pub(super) confirm: Script,
    pub(super) close: Script,
    pub(super) claim: Script,
    /// Like `claim`, but does not admit URLs without a record.
    pub(super) claim_known: Script,
    pub(super) extend: Script,
    pub(super) start: Script,
    /// Like `start`, for one task: not if a more urgent one waits.
    pub(super) start_task: Script,
    pub(super) list_urgent: Script,
    pub(super) park: Script,
    pub(super) release: Script,
    pub(super) finish: Script,
    pub(super) hold: Script,
    pub(super) sweep: Script,
    pub(super) quarantine: Script,
    pub(super) tend: Script,
    pub(super) wait: Script,
    pub(super) clear: Script,
    pub(super) watermark: Script,
    pub(super) command: Script,
    pub(super) purge: Script,
    pub(super) replay: Script,
    pub(super) has_seen: Script,
    pub(super) url_state: Script,
    pub(super) tasks: Script,
    pub(super) cancel_tasks: Script,
    pub(super) forget: Script,
    pub(super) invalid: Script,
    pub(super) drain: Script,
}

impl Scripts {
    /// Composes the scripts with `clock`. A set of URLs that a script creates has the form `dedup`.
    pub(super) fn new(clock: Clock, dedup: Dedup) -> Self {
        let plain = |body| clock.plain(body);
        let leasing = |head, body| clock.leasing(head, body);
        let seeing = |head, body: &str| clock.seeing(dedup, head, body);
        let admission = |body| seeing(TAKES_IN, &[include_str!("scripts/admission.lua"), body].concat());
        let claiming = |head, takes_new: bool| {
            seeing(head, &format!("local TAKES_NEW = {takes_new}\n{}", include_str!("scripts/claim.lua")))
        };
        Self {
            time: clock.script(),
            backlog: clock.compose(READS, &[include_str!("scripts/backlog.lua")]),
            places: clock
                .compose(READS, &[include_str!("scripts/record.lua"), include_str!("scripts/places.lua")]),
            seen_urls: seeing(GOES_ON, include_str!("scripts/seen_urls.lua")),
            forget_all: seeing(GOES_ON, include_str!("scripts/forget_all.lua")),
            stats: clock.compose(READS, &[include_str!("scripts/stats.lua")]),
            create: plain(include_str!("scripts/create.lua")),
            open: leasing(TAKES_IN, include_str!("scripts/open.lua")),
            renew: leasing(GOES_ON, include_str!("scripts/renew.lua")),
            admit: admission(concat!(include_str!("scripts/leases.lua"), include_str!("scripts/admit.lua"))),
            follow: admission(include_str!("scripts/follow.lua")),
            take_in: admission(include_str!("scripts/take_in.lua")),
            confirm: plain(include_str!("scripts/confirm.lua")),
            close: leasing(GOES_ON, include_str!("scripts/close.lua")),
            claim: claiming(TAKES_IN, true),
            claim_known: claiming(GOES_ON, false),
            extend: claiming(GOES_ON, true),
            start: plain(include_str!("scripts/start.lua")),
            start_task: clock.urgent(
                GOES_ON,
                concat!(include_str!("scripts/start_task.lua"), include_str!("scripts/start.lua")),
            ),
            list_urgent: clock.urgent(TAKES_IN, include_str!("scripts/list_urgent.lua")),
            park: plain(include_str!("scripts/park.lua")),
            release: plain(include_str!("scripts/release.lua")),
            finish: seeing(GOES_ON, include_str!("scripts/finish.lua")),
            hold: plain(include_str!("scripts/hold.lua")),
            sweep: plain(include_str!("scripts/sweep.lua")),
            quarantine: plain(include_str!("scripts/quarantine.lua")),
            tend: leasing(GOES_ON, include_str!("scripts/tend.lua")),
            wait: plain(include_str!("scripts/await.lua")),
            clear: seeing(GOES_ON, include_str!("scripts/clear.lua")),
            watermark: plain(include_str!("scripts/watermark.lua")),
            command: leasing(GOES_ON, include_str!("scripts/command.lua")),
            purge: plain(include_str!("scripts/purge.lua")),
            replay: seeing(TAKES_IN, include_str!("scripts/replay.lua")),
            has_seen: seeing(READS, include_str!("scripts/has_seen.lua")),
            url_state: seeing(READS, include_str!("scripts/url_state.lua")),
            tasks: clock
                .compose(READS, &[include_str!("scripts/record.lua"), include_str!("scripts/tasks.lua")]),
            cancel_tasks: seeing(GOES_ON, include_str!("scripts/cancel_tasks.lua")),
            invalid: plain(include_str!("scripts/invalid.lua")),
            forget: seeing(GOES_ON, include_str!("scripts/forget.lua")),
            drain: plain(include_str!("scripts/drain.lua")),
        }
    }
}

/// Every script of the host schedules.
pub(super) struct HostScripts {
    pub(super) reserve: Script,
    pub(super) stay: Script,
    pub(super) leave: Script,
    pub(super) late: Script,
    pub(super) push: Script,
    pub(super) block: Script,
    pub(super) unlist: Script,
}

impl HostScripts {
    /// Composes the scripts with `clock`.
    pub(super) fn new(clock: Clock) -> Self {
        let constants = host_constants();
        let script = |body| clock.compose(GOES_ON, &[&constants, include_str!("scripts/host.lua"), body]);
        Self {
            reserve: script(include_str!("scripts/reserve.lua")),
            stay: script(include_str!("scripts/stay.lua")),
            leave: script(include_str!("scripts/leave.lua")),
            late: script(include_str!("scripts/late.lua")),
            push: script(include_str!("scripts/push.lua")),
            block: script(include_str!("scripts/block.lua")),
            unlist: clock.compose(GOES_ON, &[include_str!("scripts/unlist.lua")]),
        }
    }
}

/// Every script of jobs.
pub(super) struct JobScripts {
    pub(super) submit: Script,
    pub(super) take: Script,
    pub(super) extend: Script,
    pub(super) fed: Script,
    pub(super) put_back: Script,
    pub(super) end: Script,
    pub(super) cancel: Script,
    pub(super) look_after: Script,
    pub(super) job: Script,
    pub(super) read: Script,
    pub(super) forget: Script,
    pub(super) kept: Script,
    pub(super) restore: Script,
}

/// Whether scripts refuse a server that has not read the stream `journal` yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    None,
    Journal,
}

impl JobScripts {
    /// Composes the scripts with `clock`.
    pub(super) fn new(clock: Clock, guard: Guard) -> Self {
        let queue = include_str!("scripts/jobs/queue.lua");
        let guard = if guard == Guard::Journal { include_str!("scripts/jobs/guard.lua") } else { "" };
        let anyway = |head, body| clock.compose(head, &[queue, body]);
        let script = |head, body| clock.compose(head, &[queue, guard, body]);
        Self {
            submit: script(TAKES_IN, include_str!("scripts/jobs/submit.lua")),
            take: script(GOES_ON, include_str!("scripts/jobs/take.lua")),
            extend: script(GOES_ON, include_str!("scripts/jobs/extend.lua")),
            fed: script(GOES_ON, include_str!("scripts/jobs/fed.lua")),
            put_back: script(GOES_ON, include_str!("scripts/jobs/put_back.lua")),
            end: script(GOES_ON, include_str!("scripts/jobs/end.lua")),
            cancel: script(GOES_ON, include_str!("scripts/jobs/cancel.lua")),
            look_after: script(GOES_ON, include_str!("scripts/jobs/look_after.lua")),
            job: script(READS, include_str!("scripts/jobs/read.lua")),
            read: anyway(READS, include_str!("scripts/jobs/read.lua")),
            forget: script(GOES_ON, include_str!("scripts/jobs/forget.lua")),
            kept: anyway(GOES_ON, include_str!("scripts/jobs/kept.lua")),
            restore: anyway(GOES_ON, include_str!("scripts/jobs/restore.lua")),
        }
    }
}

/// Every script of the stream `journal`.
pub(super) struct JournalScripts {
    pub(super) behind: Script,
    pub(super) taken_in: Script,
    pub(super) give_up: Script,
}

impl Default for JournalScripts {
    fn default() -> Self {
        let script = |head, body| Clock::SERVER.compose(head, &[body]);
        Self {
            behind: script(READS, include_str!("scripts/journal/behind.lua")),
            taken_in: script(GOES_ON, include_str!("scripts/journal/taken_in.lua")),
            give_up: script(GOES_ON, include_str!("scripts/journal/give_up.lua")),
        }
    }
}

/// Every script of versions.
pub(super) struct VersionScripts {
    pub(super) add: Script,
    pub(super) remove: Script,
    pub(super) restore: Script,
}

impl VersionScripts {
    /// Composes the scripts with `clock`.
    pub(super) fn new(clock: Clock) -> Self {
        let script = |head, body| clock.compose(head, &[include_str!("scripts/versions/project.lua"), body]);
        Self {
            add: script(TAKES_IN, include_str!("scripts/versions/add.lua")),
            remove: script(GOES_ON, include_str!("scripts/versions/remove.lua")),
            restore: script(GOES_ON, include_str!("scripts/versions/restore.lua")),
        }
    }
}

/// Every script of schedules.
pub(super) struct ScheduleScripts {
    pub(super) note: Script,
    pub(super) resume: Script,
    pub(super) restore: Script,
}

impl Default for ScheduleScripts {
    fn default() -> Self {
        let script = |head, body| Script::new(&format!("{head}\n{body}"));
        Self {
            note: script(GOES_ON, include_str!("scripts/schedules/note.lua")),
            resume: script(GOES_ON, include_str!("scripts/schedules/resume.lua")),
            restore: script(GOES_ON, include_str!("scripts/schedules/restore.lua")),
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
