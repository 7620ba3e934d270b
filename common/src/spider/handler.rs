//! `[handler]` of a spider: the program that does its tasks, or reads its pages.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytesize::ByteSize;

use super::secret::Secret;
use crate::duration::minutes;

/// A spider's program, and what it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The program and its arguments. A program with a `/` in its name is relative to the folder of the spider's file, any other is
    /// looked for in `PATH`.
    pub run: Vec<String>,
    /// How it is spoken to.
    pub mode: Mode,
    /// How long it may take for one task or page.
    pub timeout: Duration,
    /// How many tasks or pages it is given at once by one worker; `None` for as many as the worker's settings allow.
    pub concurrency: Option<NonZeroUsize>,
    /// How much memory it and its children may take together.
    pub memory: ByteSize,
    /// How much its folder `TRAWL_TMP` may hold.
    pub disk: ByteSize,
    /// How often a task is tried again that does not say so itself; `None` for as often as the settings say.
    pub retries: Option<u32>,
    /// A JSON object that it is given.
    pub secret: Secret,
    /// How it is given the proxy of its worker.
    pub proxy: ProxyUse,
}

/// How a program is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Mode {
    /// It is started for each task, and its answer is what it writes last.
    #[default]
    Once,
    /// It lives, and is given tasks and pages line by line.
    Stream,
}

/// How a program is given the proxy of its worker, through which hosts are asked politely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum ProxyUse {
    /// By `TRAWL_PROXY`, which it may use.
    #[default]
    Offer,
    /// Also by the variables that HTTP clients obey.
    All,
    /// Not at all.
    None,
}

impl ProxyUse {
    /// Every way, by its name.
    pub const ALL: [(&'static str, Self); 3] =
        [("offer", Self::Offer), ("all", Self::All), ("none", Self::None)];
}

impl Mode {
    /// Every mode, by its name.
    pub const ALL: [(&'static str, Self); 2] = [("once", Self::Once), ("stream", Self::Stream)];
}

impl Handler {
    /// The longest time that a task may take.
    pub const MAX_TIMEOUT: Duration = minutes(7 * 24 * 60);

    /// A program that is run in a mode, with the usual limits.
    pub fn new(run: Vec<String>, mode: Mode) -> Self {
        Self {
            run,
            mode,
            timeout: minutes(10),
            concurrency: None,
            memory: ByteSize::gb(1),
            disk: ByteSize::gb(4),
            retries: None,
            secret: Secret::new("{}"),
            proxy: ProxyUse::default(),
        }
    }

    /// Whether it reads the pages of its spider, in place of `[fields]`.
    pub fn reads_pages(&self) -> bool {
        self.mode == Mode::Stream
    }
}
