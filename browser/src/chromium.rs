//! Finding Chromium.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use trawl_common::settings;

/// The programs of Debian's packages, the quickest first. The scripts of these names in `PATH` leave processes behind
/// when they are killed.
const PROGRAMS: [&str; 2] = ["/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium"];

/// The program of Chromium on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chromium {
    pub(crate) program: PathBuf,
    /// Whether it confines the processes that run scripts.
    pub(crate) sandbox: bool,
}

/// The reason why no page can be rendered on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBrowser {
    /// The settings allow no browser.
    #[error("`browser.max` is 0")]
    None,
    /// Chromium is not installed.
    #[error(
        "there is no Chromium here: `apt install chromium-headless-shell`, or name another in `browser.program`"
    )]
    Missing,
    /// The settings name something else than a program.
    #[error("`browser.program`: {} is no program", .0.display())]
    NoProgram(PathBuf),
    /// Its sandbox does not work for the user of this process.
    #[error(
        "Chromium has no sandbox as root: run this as another user, or, for pages that you trust, set `browser.sandbox = false`"
    )]
    Root,
}

impl Chromium {
    /// Finds the program that settings name, or else the one that Debian's packages install.
    ///
    /// # Errors
    /// Fails if no page can be rendered here.
    pub fn find(settings: &settings::Browser) -> Result<Self, NoBrowser> {
        let settings::Browser { program, max, sandbox, .. } = settings;
        if *max == 0 {
            return Err(NoBrowser::None);
        }
        let program = match program {
            Some(program) if is_program(program) => program.clone(),
            Some(program) => return Err(NoBrowser::NoProgram(program.clone())),
            None => PROGRAMS
                .map(PathBuf::from)
                .into_iter()
                .find(|program| is_program(program))
                .ok_or(NoBrowser::Missing)?,
        };
        if *sandbox && geteuid().is_root() {
            return Err(NoBrowser::Root);
        }
        Ok(Self { program, sandbox: *sandbox })
    }

    /// Returns the program's file.
    pub fn program(&self) -> &Path {
        &self.program
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_without_a_browser_says_what_it_lacks() {
        let find = |settings| Chromium::find(&settings).unwrap_err().to_string();
        let none = settings::Browser { max: 0, ..settings::Browser::default() };
        assert_eq!(find(none), "`browser.max` is 0");
        let file = tempfile::NamedTempFile::new().unwrap();
        let no_program =
            settings::Browser { program: Some(file.path().to_owned()), ..settings::Browser::default() };
        assert!(find(no_program).ends_with("is no program"));
    }

    #[test]
    fn a_program_that_settings_name_is_taken_in_place_of_debians() {
        let program = PathBuf::from("/bin/sh");
        let settings = settings::Browser {
            program: Some(program.clone()),
            sandbox: false,
            ..settings::Browser::default()
        };
        assert_eq!(Chromium::find(&settings), Ok(Chromium { program, sandbox: false }));
    }
}
