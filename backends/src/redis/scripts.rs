//! The Lua scripts, each one transition of a record. Redis runs a script alone and whole.

use redis::Script;

macro_rules! script {
    ($file:literal) => {
        Script::new(concat!(include_str!("scripts/record.lua"), include_str!(concat!("scripts/", $file))))
    };
}

/// Every script of the frontier.
pub(super) struct Scripts {
    pub(super) open: Script,
    pub(super) renew: Script,
    pub(super) admit: Script,
    pub(super) confirm: Script,
    pub(super) close: Script,
    pub(super) hear: Script,
    pub(super) start: Script,
    pub(super) park: Script,
    pub(super) release: Script,
    pub(super) finish: Script,
    pub(super) sweep: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            open: script!("open.lua"),
            renew: script!("renew.lua"),
            admit: script!("admit.lua"),
            confirm: script!("confirm.lua"),
            close: script!("close.lua"),
            hear: script!("hear.lua"),
            start: script!("start.lua"),
            park: script!("park.lua"),
            release: script!("release.lua"),
            finish: script!("finish.lua"),
            sweep: script!("sweep.lua"),
        }
    }
}

/// The script of the host schedules.
pub(super) fn reserve() -> Script {
    Script::new(include_str!("scripts/reserve.lua"))
}
