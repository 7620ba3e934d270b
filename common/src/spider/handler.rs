//! `[handler]` of a spider: the program that does its tasks, or reads its pages.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytesize::ByteSize;

use super::secret::Secret;
use crate::duration::minutes;

/// A spider's program and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The program and its arguments. A program with a `/` in its name is relative to the folder of the spider's
    /// file; any other is searched in `PATH`.
    pub run: Vec<String>,
    /// The protocol between worker and program.
    pub mode: Mode,
    /// Maximum time for one task or page.
    pub timeout: Duration,
    /// Maximum number of tasks or pages that one worker gives it at once; `None` for the limit in the worker's
    /// settings.
    pub concurrency: Option<NonZeroUsize>,
    /// Maximum memory of the program and its children together.
    pub memory: ByteSize,
    /// Maximum size of its folder `TRAWL_TMP`.
    pub disk: ByteSize,
    /// Maximum number of retries of a task that has no limit of its own; `None` for the limit in the settings.
    pub retries: Option<u32>,
    /// A JSON object with secrets that is passed to it.
    pub secret: Secret,
    /// The way in which it gets the proxy of its worker.
    pub proxy: ProxyUse,
}

/// The protocol between worker and program.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::Display, strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum Mode {
    /// The program is started for each task, and its answer is the last thing it writes.
    #[default]
    Once,
    /// The program keeps running, and gets tasks and pages line by line.
    Stream,
}

/// The way in which a program gets the proxy of its worker, through which hosts are requested politely.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::Display, strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum ProxyUse {
    /// By `TRAWL_PROXY`, which the program may use.
    #[default]
    Offer,
    /// Also by the variables that HTTP clients obey.
    All,
    /// Not at all.
    None,
}

impl Handler {
    /// Maximum timeout of a task.
    pub(crate) const MAX_TIMEOUT: Duration = minutes(7 * 24 * 60);

    /// Creates a program that is run in a mode, with the default limits.
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

    /// Returns whether it reads the pages of its spider, in place of `[fields]`.
    pub(crate) fn reads_pages(&self) -> bool {
        self.mode == Mode::Stream
    }
}
