//! Finding the executable of a program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The reason why a program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotRun {
    /// The spider has no program.
    #[error("the spider has no [handler]")]
    None,
    /// There is no such file.
    #[error("there is no program {}", .0.display())]
    Missing(PathBuf),
    /// It is a folder, or something else that is not a regular file.
    #[error("{} is no file", .0.display())]
    NoFile(PathBuf),
    /// No user may execute it.
    #[error("{path} is not executable: `chmod +x {path}`, or name its interpreter before it", path = .0.display())]
    NotExecutable(PathBuf),
    /// `PATH` has no program of that name.
    #[error("there is no program `{name}` in PATH: {}", way_out(.name, *.is_in_folder))]
    NotInPath {
        /// The name.
        name: String,
        /// Whether the folder of the spider has a file of that name.
        is_in_folder: bool,
    },
}

fn way_out(name: &str, is_in_folder: bool) -> String {
    match is_in_folder {
        true => format!("write `./{name}` for the one beside the spider"),
        false => "is it installed on this machine?".to_owned(),
    }
}

/// Returns the file of a program that is run in `folder`. A name with a `/` is relative to `folder`; any other is
/// looked up in the folders of `search`, a list in the format of `PATH`.
pub(crate) fn locate(program: &str, folder: &Path, search: &str) -> Result<PathBuf, CannotRun> {
    if program.contains('/') {
        return executable(folder.join(program));
    }
    let candidates = search.split(':').filter(|folder| !folder.is_empty());
    let found = candidates
        .map(|folder| Path::new(folder).join(program))
        .find(|file| executable(file.clone()).is_ok());
    found.ok_or_else(|| CannotRun::NotInPath {
        name: program.to_owned(),
        is_in_folder: folder.join(program).is_file(),
    })
}

fn executable(file: PathBuf) -> Result<PathBuf, CannotRun> {
    match fs::metadata(&file) {
        Err(_) => Err(CannotRun::Missing(file)),
        Ok(metadata) if !metadata.is_file() => Err(CannotRun::NoFile(file)),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Err(CannotRun::NotExecutable(file)),
        Ok(_) => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_beside_its_spider_or_in_path_and_else_the_error_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("run"), "").unwrap();
        let find = |program| locate(program, folder.path(), "/nowhere:/bin:/usr/bin");
        let error = |program| find(program).unwrap_err().to_string();
        assert!(find("sh").unwrap().ends_with("bin/sh"));
        assert!(error("run").contains("write `./run`"));
        assert!(error("no-such-program").contains("is it installed"));
        assert!(error("./run").contains("chmod +x"));
        assert!(error("./none").contains("there is no program"));
        assert!(error("../.").contains("is no file"));
        fs::set_permissions(folder.path().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("./run"), Ok(folder.path().join("./run")));
    }
}
