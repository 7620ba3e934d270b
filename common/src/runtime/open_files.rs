//! The limit of files that this process may have open: connections are files, and so are pipes to programs.
//!
//! The system gives each file the lowest free number. So if a connection is opened only while the lowest free
//! number is below a bound, all numbers from there on are left for the servers, the sinks, the state file and
//! programs, however many connections there are.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The maximum for a process on most systems without a hard limit (macOS: `OPEN_MAX`).
const MAX_UNLIMITED: u64 = 10_240;

/// Maximum number of files that connections to hosts leave for everything else; it is a quarter of the limit, if
/// that is less.
const MAX_RESERVED: u64 = 512;

/// Any file, used to find the lowest free number.
static ANY: OnceLock<Option<OwnedFd>> = OnceLock::new();

/// Number of connections that are being opened. Each may take a number that is still free.
static OPENING: AtomicU64 = AtomicU64::new(0);

/// Raises the limit of this process to the highest possible. Call it before anything is opened.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    for current in [maximum, Some(maximum.unwrap_or(u64::MAX).min(MAX_UNLIMITED).max(current.unwrap_or(0)))] {
        if setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok() {
            break;
        }
    }
    any();
}

/// Returns the number of files that this process may have open.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns whether another connection to a host may be opened now.
pub fn has_room() -> bool {
    in_use() < bound()
}

/// Returns whether connections are to be closed after their answers, because half of the files for them are in
/// use.
pub fn is_scarce() -> bool {
    in_use() >= bound() / 2
}

/// A connection that is being opened, until it is dropped.
#[derive(Debug)]
pub struct Opening(());

impl Opening {
    /// Begins to open a connection.
    ///
    /// # Errors
    /// Fails if there is no room for it.
    pub fn begin() -> Result<Self, TooFewFiles> {
        let is_allowed = has_room();
        OPENING.fetch_add(1, Ordering::Relaxed);
        let opening = Self(());
        if is_allowed { Ok(opening) } else { Err(TooFewFiles(limit())) }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        OPENING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The error when this process has as many files open as its limit allows, except for the reserved ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "too few open files: this process may have {0}, connections among them: raise the limit (`ulimit -n`, systemd: `LimitNOFILE`, Docker: \
     `--ulimit nofile`), or lower `worker.concurrency`"
)]
pub struct TooFewFiles(u64);

impl TooFewFiles {
    /// Returns the error with the limit of this process.
    pub fn now() -> Self {
        Self(limit())
    }
}

/// Returns the number below which connections to hosts may be opened.
fn bound() -> u64 {
    let limit = limit();
    limit - (limit / 4).min(MAX_RESERVED)
}

/// Returns the lowest free number, plus the numbers that are about to be taken.
fn in_use() -> u64 {
    let Some(any) = any() else { return 0 };
    let lowest = rustix::io::fcntl_dupfd_cloexec(any, 0).map_or(u64::MAX / 2, |free| free.as_raw_fd() as u64);
    lowest + OPENING.load(Ordering::Relaxed)
}

fn any() -> Option<&'static OwnedFd> {
    ANY.get_or_init(|| File::open("/").ok().map(OwnedFd::from)).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_and_files_that_are_open_leave_less_room() {
        raise_limit();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert!(current == maximum || current.is_some_and(|current| current >= MAX_UNLIMITED), "{current:?}");
        assert!(has_room());
        // As after `ulimit -S -n`, when many files are open.
        let files: Vec<File> = (0..200).map(|_| File::open("/").unwrap()).collect();
        let limited =
            |current| setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum }).unwrap();
        limited(240);
        assert!(!has_room() && is_scarce());
        assert_eq!(Opening::begin().unwrap_err(), TooFewFiles(240));
        drop(files);
        assert!(has_room());
        let opening: Vec<Opening> = std::iter::from_fn(|| Opening::begin().ok()).collect();
        assert!((100..180).contains(&opening.len()), "{}", opening.len());
        drop(opening);
        assert!(has_room());
        limited(current.unwrap());
    }
}
