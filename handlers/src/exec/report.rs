//! The end of a program, as reported by its supervisor on the last line of standard error, which nobody else can write
//! then.

use std::fmt;

use super::{MAX_FILES, MAX_PROCESSES};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// It exited with this status.
    Exited(i32),
    /// It was killed by this signal, which the supervisor did not send.
    Killed(i32),
    /// It exceeded its memory limit.
    Memory,
    /// It exceeded its limit of processes.
    Processes,
    /// It exceeded the limit of its folder's size.
    Disk,
    /// It was asked to end.
    Stopped,
    /// It could not be supervised, for this reason.
    Unsupervised(String),
    /// It was not started, for this reason, and was given nothing.
    NotStarted(String),
}

/// Signals that end programs, with descriptions of the end.
const SIGNALS: [(i32, &str); 9] = [
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL, as by a system or container that is short of memory"),
    (11, "SIGSEGV"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// Messages on the standard error of programs that failed to allocate memory.
const NO_MEMORY: [&str; 6] = [
    "MemoryError",
    "annot allocate memory",
    "bad_alloc",
    "memory allocation of ",
    "runtime: out of memory",
    "Fatal process out of memory",
];

impl fmt::Display for Report {
    /// Describes the end in words that follow a program's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited with status {status}"),
            Self::Killed(signal) => {
                write!(f, "was killed by signal {signal}")?;
                match SIGNALS.iter().find(|(number, _)| number == signal) {
                    Some((_, name)) => write!(f, " ({name})"),
                    None => Ok(()),
                }
            }
            Self::Memory => f.write_str("took more memory than it may ([handler] memory)"),
            Self::Processes => write!(f, "had more than {MAX_PROCESSES} processes and threads"),
            Self::Disk => {
                write!(f, "had more in TRAWL_TMP than it may ([handler] disk, and {MAX_FILES} files)")
            }
            Self::Stopped => f.write_str("was stopped"),
            Self::Unsupervised(why) => write!(f, "could not be supervised: {why}"),
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
        }
    }
}

impl Report {
    /// Whether the program failed, and its standard error says that it could not allocate memory.
    pub(crate) fn lacked_memory(&self, stderr: &[u8]) -> bool {
        let failed = matches!(self, Self::Killed(_)) || matches!(self, Self::Exited(status) if *status != 0);
        let stderr = String::from_utf8_lossy(stderr);
        failed && NO_MEMORY.iter().any(|text| stderr.contains(text))
    }

    /// Formats the report as the last line.
    pub(super) fn to_line(&self, token: &str) -> String {
        let said = match self {
            Self::Exited(status) => format!("exited {status}"),
            Self::Killed(signal) => format!("killed {signal}"),
            Self::Memory => "memory".to_owned(),
            Self::Processes => "processes".to_owned(),
            Self::Disk => "disk".to_owned(),
            Self::Stopped => "stopped".to_owned(),
            Self::Unsupervised(why) => format!("unsupervised {}", why.replace('\n', " ")),
            Self::NotStarted(why) => format!("unstarted {}", why.replace('\n', " ")),
        };
        format!("\n{token} {said}\n")
    }

    /// Splits a standard error into the report on its last line and all before it. The report is `None` if the
    /// supervisor wrote none.
    pub(crate) fn new(token: &str, mut stderr: Vec<u8>) -> (Option<Self>, Vec<u8>) {
        let Some(before) = stderr.strip_suffix(b"\n") else { return (None, stderr) };
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let line = String::from_utf8_lossy(&before[start..]);
        let Some(said) =
            line.strip_prefix(token).and_then(|rest| rest.strip_prefix(' ')).and_then(Self::read)
        else {
            return (None, stderr);
        };
        stderr.truncate(start.saturating_sub(1));
        (Some(said), stderr)
    }

    fn read(said: &str) -> Option<Self> {
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        Some(match word {
            "exited" => Self::Exited(rest.parse().ok()?),
            "killed" => Self::Killed(rest.parse().ok()?),
            "memory" => Self::Memory,
            "processes" => Self::Processes,
            "disk" => Self::Disk,
            "stopped" => Self::Stopped,
            "unsupervised" => Self::Unsupervised(rest.to_owned()),
            "unstarted" => Self::NotStarted(rest.to_owned()),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_says_how_a_program_ended_and_is_no_part_of_what_it_said() {
        let all = [
            Report::Exited(3),
            Report::Killed(9),
            Report::Memory,
            Report::Processes,
            Report::Disk,
            Report::Stopped,
            Report::Unsupervised("no\nprocess".to_owned()),
            Report::NotStarted("no\nmemory".to_owned()),
        ];
        for report in all {
            for said in ["", "one\ntwo", "ends\n"] {
                let stderr = format!("{said}{}", report.to_line("token")).into_bytes();
                let (read, before) = Report::new("token", stderr);
                assert_eq!(read.unwrap().to_string(), report.to_string().replace('\n', " "));
                assert_eq!(before, said.as_bytes());
            }
        }
        for said in ["", "x", "token exited 0", "token exited 0\nmore\n", "other exited 0\n", "token exits\n"]
        {
            assert_eq!(Report::new("token", said.into()), (None, said.into()), "{said:?}");
        }
    }
}
