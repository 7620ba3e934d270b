//! The commands of Git: they ask nobody, run nothing that the repository brings, and use only the protocols of the settings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trawl_common::names::ProjectName;
use trawl_common::project::{CloneUrl, Commit, Source, Wanted};
use trawl_common::settings::Projects;

use super::run::{Bounds, Command, Failed, run};
use crate::locate::locate;
use crate::program::{Supervisor, USUAL_PATH, variable};

/// Time limit for a command.
const TIME: Duration = Duration::from_secs(5 * 60);

/// Time limit for asking for the end of a branch, which somebody waits for.
const ASKING_TIME: Duration = Duration::from_secs(30);

/// The settings of every command.
const SETTINGS: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "submodule.recurse=false",
    "protocol.version=2",
    "advice.detachedHead=false",
];

/// The commands for one project.
pub(super) struct Git<'a> {
    settings: &'a Projects,
    supervisor: &'a Supervisor,
    project: &'a ProjectName,
}

impl<'a> Git<'a> {
    pub(super) fn new(settings: &'a Projects, supervisor: &'a Supervisor, project: &'a ProjectName) -> Self {
        Self { settings, supervisor, project }
    }

    /// Fetches a commit, and nothing before it, into an empty folder.
    pub(super) async fn fetch(
        &self,
        Wanted { clone_url, commit }: &Wanted,
        folder: &Path,
    ) -> Result<(), Failed> {
        self.check(clone_url)?;
        let bounds = Bounds { time: TIME, folder: Some(folder) };
        let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--"];
        let commands: [&[&str]; 3] = [
            &["init", "--quiet", "--template="],
            &[&fetch[..], &[clone_url.as_str(), commit.as_str()]].concat(),
            &["checkout", "--quiet", "--detach", commit.as_str()],
        ];
        for command in commands {
            self.run(command, folder, &bounds).await?;
        }
        Ok(())
    }

    /// Returns the commit at the end of a branch.
    pub(super) async fn tip(&self, Source { clone_url, branch }: &Source) -> Result<Commit, Failed> {
        self.check(clone_url)?;
        let name = format!("refs/heads/{branch}");
        let command = ["ls-remote", "--exit-code", "--", clone_url.as_str(), &name];
        // No folder of a repository, whose settings would count.
        let bounds = Bounds { time: ASKING_TIME, folder: None };
        let listed = self.run(&command, Path::new("/"), &bounds).await?;
        let listed = String::from_utf8_lossy(&listed);
        let commit = listed.lines().find_map(|line| {
            let (commit, found) = line.split_once('\t')?;
            if found == name { commit.parse().ok() } else { None }
        });
        commit.ok_or_else(|| Failed::new(format!("{clone_url} has no branch {branch}")))
    }

    fn check(&self, url: &CloneUrl) -> Result<(), Failed> {
        match self.settings.allows(url) {
            true => Ok(()),
            false => {
                Err(Failed::new(format!("{url}: projects.protocols of this machine lack {}", url.scheme())))
            }
        }
    }

    async fn run(&self, command: &[&str], folder: &Path, bounds: &Bounds<'_>) -> Result<Vec<u8>, Failed> {
        let file = program(folder)?;
        let mut variables = vec![
            ("GIT_ALLOW_PROTOCOL", OsString::from(self.settings.as_list())),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_ASKPASS", "/bin/false".into()),
            ("SSH_ASKPASS", "/bin/false".into()),
            ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes".into()),
            ("GIT_LFS_SKIP_SMUDGE", "1".into()),
        ];
        variables.extend(std::env::var_os("SSH_AUTH_SOCK").map(|socket| ("SSH_AUTH_SOCK", socket)));
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        let git = Command {
            supervisor: self.supervisor,
            project: self.project,
            file: &file,
            arguments: settings.chain(command.iter().copied()).map(OsString::from).collect(),
            folder,
            variables,
        };
        let told = |failed| Failed::within(&format!("git {}", command[0]), failed);
        run(git, bounds).await.map_err(told)
    }
}

fn program(folder: &Path) -> Result<PathBuf, Failed> {
    let path = variable("PATH", USUAL_PATH);
    locate("git", folder, &path.to_string_lossy()).map_err(|error| Failed::new(error.to_string()))
}
