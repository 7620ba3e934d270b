//! The Lua scripts, each one transition of a record. Redis runs a script alone and whole.
//!
//! The line `#!lua` has Redis refuse a script before its first command when memory is full, so that none stops
//! half-way. Finishing and clearing free memory, and are let through.

use redis::Script;
use trawl_common::settings::Dedup;

macro_rules! script {
    ($file:literal) => {
        Script::new(concat!(
            "#!lua\n",
            include_str!("scripts/record.lua"),
            include_str!(concat!("scripts/", $file))
        ))
    };
}

/// A script that asks who reads sources.
macro_rules! leasing {
    ($file:literal) => {
        Script::new(concat!(
            "#!lua\n",
            include_str!("scripts/record.lua"),
            include_str!("scripts/leases.lua"),
            include_str!(concat!("scripts/", $file))
        ))
    };
}

/// A script that looks into what was seen. A set that it begins has the form `dedup`.
fn seeing(dedup: Dedup, head: &str, body: &str) -> Script {
    let begins_packed = dedup == Dedup::Packed;
    let (record, seen) = (include_str!("scripts/record.lua"), include_str!("scripts/seen.lua"));
    let requests = include_str!("scripts/requests.lua");
    Script::new(&format!("{head}\nlocal BEGINS_PACKED = {begins_packed}\n{record}{seen}{requests}{body}"))
}

/// The script that packs a plain set.
pub(super) fn pack() -> Script {
    seeing(Dedup::Packed, "#!lua", include_str!("scripts/pack.lua"))
}

/// Every script of the frontier.
pub(super) struct Scripts {
    pub(super) open: Script,
    pub(super) renew: Script,
    pub(super) admit: Script,
    pub(super) follow: Script,
    pub(super) confirm: Script,
    pub(super) close: Script,
    pub(super) hear: Script,
    pub(super) start: Script,
    pub(super) park: Script,
    pub(super) release: Script,
    pub(super) finish: Script,
    pub(super) hold: Script,
    pub(super) sweep: Script,
    pub(super) tend: Script,
    pub(super) wait: Script,
    pub(super) clear: Script,
    pub(super) tide: Script,
    pub(super) command: Script,
    pub(super) replay: Script,
    pub(super) has_seen: Script,
    pub(super) forget: Script,
}

impl Scripts {
    /// A set of URLs that a script begins has the form `dedup`.
    pub(super) fn new(dedup: Dedup) -> Self {
        let admission =
            |body| seeing(dedup, "#!lua", &[include_str!("scripts/admission.lua"), body].concat());
        Self {
            open: leasing!("open.lua"),
            renew: leasing!("renew.lua"),
            admit: admission(concat!(include_str!("scripts/leases.lua"), include_str!("scripts/admit.lua"))),
            follow: admission(include_str!("scripts/follow.lua")),
            confirm: script!("confirm.lua"),
            close: leasing!("close.lua"),
            hear: seeing(dedup, "#!lua", include_str!("scripts/hear.lua")),
            start: script!("start.lua"),
            park: script!("park.lua"),
            release: script!("release.lua"),
            finish: seeing(dedup, "#!lua flags=allow-oom", include_str!("scripts/finish.lua")),
            hold: script!("hold.lua"),
            sweep: script!("sweep.lua"),
            tend: leasing!("tend.lua"),
            wait: script!("await.lua"),
            clear: seeing(dedup, "#!lua flags=allow-oom", include_str!("scripts/clear.lua")),
            tide: script!("tide.lua"),
            command: script!("command.lua"),
            replay: seeing(dedup, "#!lua", include_str!("scripts/replay.lua")),
            has_seen: seeing(dedup, "#!lua flags=no-writes", include_str!("scripts/has_seen.lua")),
            forget: seeing(dedup, "#!lua flags=allow-oom", include_str!("scripts/forget.lua")),
        }
    }
}

/// Every script of the host schedules.
pub(super) struct HostScripts {
    pub(super) reserve: Script,
    pub(super) stay: Script,
    pub(super) leave: Script,
    pub(super) push: Script,
    pub(super) block: Script,
}

impl HostScripts {
    pub(super) fn new() -> Self {
        let script = |head, body| {
            Script::new(&format!("{head}\n{}{}{body}", host_constants(), include_str!("scripts/host.lua")))
        };
        Self {
            reserve: script("#!lua", include_str!("scripts/reserve.lua")),
            stay: script("#!lua", include_str!("scripts/stay.lua")),
            leave: script("#!lua flags=allow-oom", include_str!("scripts/leave.lua")),
            push: script("#!lua", include_str!("scripts/push.lua")),
            block: script("#!lua", include_str!("scripts/block.lua")),
        }
    }
}

/// The constants that both engines share; times are in microseconds.
fn host_constants() -> String {
    use trawl_common::gcra::{
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
