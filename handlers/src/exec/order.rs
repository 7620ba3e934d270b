//! What a supervisor is to do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a worker asks of a supervisor, before the program and its arguments.
pub(crate) struct Order<'a> {
    /// The id of this run.
    pub(crate) token: &'a str,
    /// The process that asks: without it the program ends.
    pub(crate) parent: u32,
    /// How many bytes of memory the program and all its descendants may take.
    pub(crate) memory: u64,
    /// How many bytes the folder may hold.
    pub(crate) disk: u64,
    /// The folder that is removed at the end.
    pub(crate) folder: &'a Path,
}

impl Order<'_> {
    pub(crate) fn to_arguments(&self) -> [OsString; 5] {
        let Self { token, parent, memory, disk, folder } = self;
        let numbers = [parent.to_string(), memory.to_string(), disk.to_string()].map(OsString::from);
        let [parent, memory, disk] = numbers;
        [(*token).into(), parent, memory, disk, folder.as_os_str().into()]
    }
}

/// The same as a supervisor receives it.
pub(super) struct Received {
    pub(super) token: String,
    pub(super) parent: i32,
    pub(super) memory: u64,
    pub(super) disk: u64,
    pub(super) folder: PathBuf,
    /// The program and its arguments.
    pub(super) run: Vec<OsString>,
}

impl Received {
    pub(super) fn of(arguments: Vec<OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let received = Self {
            token: arguments.next()?.into_string().ok()?,
            parent: arguments.next()?.to_str()?.parse().ok()?,
            memory: arguments.next()?.to_str()?.parse().ok()?,
            disk: arguments.next()?.to_str()?.parse().ok()?,
            folder: arguments.next()?.into(),
            run: arguments.collect(),
        };
        (!received.run.is_empty()).then_some(received)
    }
}
