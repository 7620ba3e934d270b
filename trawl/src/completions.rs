//! `trawl completions` and `trawl man`: completions for shells, and manual pages.

use std::io::Write;
use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use clap_complete::env::Shells;
use trawl_cli::{Fail, Outcome};
use trawl_common::exit::Exit;

use crate::complete::VARIABLE;

/// The command-line arguments of `trawl completions`.
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// The command-line arguments of `trawl man`.
#[derive(clap::Args)]
pub(crate) struct Man {
    /// The folder, as /usr/local/share/man/man1
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Completions {
    /// Prints a script that has the program itself complete, so that it knows crawls, spiders and hosts.
    pub(crate) fn run(self) -> Outcome {
        let mut script = Vec::new();
        let shells = Shells::builtins();
        let shell = self.shell.to_string();
        let shell = shells.completer(&shell).ok_or_else(|| Fail::usage(format!("{shell}: unknown shell")))?;
        shell.write_registration(VARIABLE, "trawl", "trawl", "trawl", &mut script).map_err(Fail::run)?;
        print(&script)
    }
}

impl Man {
    pub(crate) fn run(self, command: Command) -> Outcome {
        if let Some(folder) = self.folder {
            std::fs::create_dir_all(&folder)
                .and_then(|()| clap_mangen::generate_to(command, &folder))
                .map_err(|error| Fail::run(format!("{}: {error}", folder.display())))?;
            return Ok(Exit::Ok);
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).map_err(Fail::run)?;
        print(&page)
    }
}

fn print(text: &[u8]) -> Outcome {
    std::io::stdout().write_all(text).map_err(|error| Fail::run(format!("cannot write: {error}")))?;
    Ok(Exit::Ok)
}
