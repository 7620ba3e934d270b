//! Reports of machines on the versions of a project's code.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Wanted;
use crate::names::{ProjectName, RunnerName, WorkerId};
use crate::text::printable;
use crate::time::UnixMs;

/// Maximum number of lines of a failure, and of bytes of each, that are kept.
const MAX_FAILURE: (usize, usize) = (24, 400);

/// Maximum length of the name of a machine, in bytes.
const MAX_MACHINE: usize = 80;

/// The report of one machine on a version of a project's code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionReport {
    /// The project.
    pub project: ProjectName,
    /// The version.
    pub wanted: Wanted,
    /// The machine.
    pub machine: Machine,
    /// When the result was known.
    pub at: UnixMs,
    /// The result.
    pub result: VersionResult,
}

/// The result of taking a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionResult {
    /// The machine runs it.
    Taken,
    /// The machine runs the version before, if it has one: fetching or setting up this one failed.
    Failed(Failure),
}

/// The reason why a version was not taken, with the end of the failed command's output: at most 24 lines of 400 bytes,
/// without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Failure(String);

/// A machine, as people know it: the name of a worker's machine, or that of a runner, marked as such.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Machine(String);

impl Machine {
    /// Returns the machine of a worker of the fleet.
    pub fn of_worker(worker: &WorkerId) -> Self {
        Self(worker.machine().to_owned())
    }

    /// Returns the machine of a runner. Its name is none that a worker's machine can have.
    pub fn of_runner(name: &RunnerName) -> Self {
        Self(format!("{name} (runner)"))
    }

    /// Returns its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Machine {
    fn from(name: String) -> Self {
        Self(printable(&name, MAX_MACHINE))
    }
}

impl From<Machine> for String {
    fn from(machine: Machine) -> Self {
        machine.0
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Failure {
    /// Returns its text, of several lines.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        // The first line says how it failed, the last ones what was written.
        let left_out = lines.len().saturating_sub(MAX_FAILURE.0);
        let kept = lines.iter().take(1).chain(lines.iter().skip(1 + left_out));
        Self(kept.map(|line| printable(line, MAX_FAILURE.1)).collect::<Vec<_>>().join("\n"))
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_its_first_line_and_the_end_of_the_output_within_bounds() {
        let output: Vec<String> = (0..1_000).map(|number| format!("line {number}\u{1b}[31m")).collect();
        let text = format!("its setup ended with status 3:\n{}\n{}", output.join("\n"), "x".repeat(10_000));
        let kept: Failure = serde_json::from_value(text.into()).unwrap();
        let lines: Vec<&str> = kept.as_str().lines().collect();
        assert_eq!((lines.len(), lines[0]), (24, "its setup ended with status 3:"));
        assert_eq!((lines[22], lines[23].len()), ("line 999 [31m", 400));
        assert_eq!(Failure::from(String::from(kept.clone())), kept, "it is kept as it is");
        assert_eq!(Failure::from("one line".to_owned()).as_str(), "one line");
        assert_eq!(Failure::from(String::new()).as_str(), "");
    }

    #[test]
    fn a_runner_is_never_taken_for_the_machine_of_a_worker() {
        let runner: RunnerName = "desk-7".parse().unwrap();
        let worker: WorkerId = "desk-7-a1b2c3".parse().unwrap();
        assert_eq!(Machine::of_worker(&worker).as_str(), "desk-7");
        assert_ne!(Machine::of_worker(&worker), Machine::of_runner(&runner));
    }
}
