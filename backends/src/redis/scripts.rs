//! The Lua scripts, each one transition of a record. Redis runs a script alone and whole.
//!
//! The line `#!lua` has Redis refuse a script before its first command when memory is full, so that none stops
//! half-way. Finishing and clearing free memory, and are let through.

use redis::Script;

macro_rules! script {
    ($file:literal) => {
        script!("#!lua\n", $file)
    };
    ($head:literal, $file:literal) => {
        Script::new(concat!(
            $head,
            include_str!("scripts/record.lua"),
            include_str!(concat!("scripts/", $file))
        ))
    };
}

macro_rules! admission {
    ($file:literal) => {
        Script::new(concat!(
            "#!lua\n",
            include_str!("scripts/record.lua"),
            include_str!("scripts/admission.lua"),
            include_str!(concat!("scripts/", $file))
        ))
    };
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
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            open: script!("open.lua"),
            renew: script!("renew.lua"),
            admit: admission!("admit.lua"),
            follow: admission!("follow.lua"),
            confirm: script!("confirm.lua"),
            close: script!("close.lua"),
            hear: script!("hear.lua"),
            start: script!("start.lua"),
            park: script!("park.lua"),
            release: script!("release.lua"),
            finish: script!("#!lua flags=allow-oom\n", "finish.lua"),
            hold: script!("hold.lua"),
            sweep: script!("sweep.lua"),
            tend: script!("tend.lua"),
            wait: script!("await.lua"),
            clear: script!("#!lua flags=allow-oom\n", "clear.lua"),
            tide: script!("tide.lua"),
            command: script!("command.lua"),
            replay: script!("replay.lua"),
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
    use trawl_common::gcra::{EARLY, FORGIVEN_AFTER, HONOURED, HORIZON, LEAD, MAX_BACKOFF, MIN_STEP, REACH};
    let constants = [
        ("EARLY", EARLY),
        ("FORGIVEN_AFTER", FORGIVEN_AFTER),
        ("HORIZON", HORIZON),
        ("LEAD", LEAD),
        ("MAX_BACKOFF", MAX_BACKOFF),
        ("MIN_STEP", MIN_STEP),
        ("REACH", REACH),
    ];
    let times: String =
        constants.iter().map(|(name, time)| format!("local {name} = {}\n", time.as_micros())).collect();
    format!("{times}local HONOURED = {HONOURED}\n")
}
