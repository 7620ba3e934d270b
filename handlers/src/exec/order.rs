//! The command line that a worker starts a supervisor with.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A worker's request to a supervisor. Its arguments come before the program and the program's arguments.
pub(crate) struct Order<'a> {
    /// The id of this run.
    pub(crate) token: &'a str,
    /// The id of the worker's process. The program is ended when that process is gone.
    pub(crate) parent: u32,
    /// Maximum memory in bytes of the program and all its descendants.
    pub(crate) memory: u64,
    /// Maximum size in bytes of the folder's contents.
    pub(crate) disk: u64,
    /// The program's folder, which is removed at the end.
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

/// An [`Order`] as the supervisor receives it, with the program to run.
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
    pub(super) fn from_arguments(arguments: Vec<OsString>) -> Option<Self> {
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
