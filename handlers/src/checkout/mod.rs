//! Versions of a project's code: commits that are fetched by Git, set up, and then run.
//!
//! A version has the folder `<dir>/<project>/<commit>`. It counts once its setup has ended well, which the file
//! `<commit>.taken` beside it says: a process that dies before leaves none. One process at a time takes versions of a
//! project; the others wait for its lock.

mod folder_size;
mod git;
mod run;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tracing::warn;
use trawl_common::names::ProjectName;
use trawl_common::project::{Commit, Source, Wanted};
use trawl_common::settings::Projects;

use self::git::Git;
use self::run::{Bounds, Command, Failed, run};
use crate::program::Supervisor;

/// The program at the top of a repository that sets a version up.
const SETUP: &str = "setup";

/// Time limit for setting a version up.
const SETUP_TIME: Duration = Duration::from_secs(15 * 60);

/// Number of versions of a project to keep: the latest that were taken. Older ones may still be running.
const KEPT: usize = 4;

/// The versions of projects on this machine.
#[derive(Clone, Debug)]
pub struct Checkouts {
    dir: PathBuf,
    settings: Projects,
    supervisor: Supervisor,
}

/// The reason why a version was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// It could not be fetched: another time, it may be.
    #[error("{0}")]
    Fetch(String),
    /// Its setup failed.
    #[error("its {SETUP} {0}")]
    Setup(String),
}

impl Checkouts {
    /// Returns the versions in the folder that the settings name; `None` if they name none.
    pub fn new(settings: &Projects, supervisor: Supervisor) -> Option<Self> {
        let dir = std::path::absolute(settings.dir.as_ref()?).ok()?;
        Some(Self { dir, settings: settings.clone(), supervisor })
    }

    /// Returns the folder of a version with its setup done: fetches it and sets it up, unless that was done before.
    ///
    /// # Errors
    /// If it cannot be fetched, or its setup fails; then its folder is removed.
    pub async fn take(&self, project: &ProjectName, wanted: &Wanted) -> Result<PathBuf, NotTaken> {
        let place = Place::new(self.dir.join(project.as_str()), &wanted.commit);
        if place.is_taken() {
            return Ok(place.folder);
        }
        let of_system = |error: io::Error| NotTaken::Fetch(error.to_string());
        // Released when it is dropped.
        let _lock = place.lock().await.map_err(of_system)?;
        if place.is_taken() {
            return Ok(place.folder);
        }
        place.begin().await.map_err(of_system)?;
        let taken = async {
            let git = Git::new(&self.settings, &self.supervisor, project);
            git.fetch(wanted, &place.folder).await.map_err(|failed| NotTaken::Fetch(failed.to_string()))?;
            self.set_up(project, &place.folder).await.map_err(|failed| NotTaken::Setup(failed.to_string()))
        };
        match taken.await {
            Ok(()) => {
                place.end().await.map_err(of_system)?;
                Ok(place.folder)
            }
            Err(error) => {
                let folder = place.folder;
                let _ = spawn_blocking(move || remove(&folder)).await;
                Err(error)
            }
        }
    }

    async fn set_up(&self, project: &ProjectName, folder: &Path) -> Result<(), Failed> {
        let file = folder.join(SETUP);
        if !file.exists() {
            return Ok(());
        }
        let setup = Command {
            supervisor: &self.supervisor,
            project,
            file: &file,
            arguments: Vec::new(),
            folder,
            variables: Vec::new(),
        };
        run(setup, &Bounds { time: SETUP_TIME, folder: Some(folder) }).await.map(drop)
    }
}

/// Returns the commit at the end of a branch.
///
/// # Errors
/// If the repository cannot be reached, or has no such branch.
pub async fn tip(settings: &Projects, supervisor: &Supervisor, source: &Source) -> Result<Commit, NotTaken> {
    let none = ProjectName::default();
    let git = Git::new(settings, supervisor, &none);
    git.tip(source).await.map_err(|failed| NotTaken::Fetch(failed.to_string()))
}

/// The place of a version.
struct Place {
    /// The folder of its project.
    project: PathBuf,
    folder: PathBuf,
    /// The file that says that it is taken.
    taken: PathBuf,
}

impl Place {
    fn new(project: PathBuf, commit: &Commit) -> Self {
        let (folder, taken) = (project.join(commit.as_str()), project.join(format!("{commit}.taken")));
        Self { project, folder, taken }
    }

    fn is_taken(&self) -> bool {
        self.taken.exists() && self.folder.is_dir()
    }

    /// Waits until no other process takes a version of the project.
    async fn lock(&self) -> io::Result<File> {
        let project = self.project.clone();
        let locking = move || {
            fs::create_dir_all(&project)?;
            let file =
                File::options().create(true).truncate(false).write(true).open(project.join(".lock"))?;
            file.lock()?;
            Ok(file)
        };
        spawn_blocking(locking).await.map_err(io::Error::other)?
    }

    /// Makes its folder, in place of one that a process left that died.
    async fn begin(&self) -> io::Result<()> {
        let (folder, taken) = (self.folder.clone(), self.taken.clone());
        let making = move || {
            let _ = fs::remove_file(taken);
            match remove(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => fs::create_dir(&folder),
            }
        };
        spawn_blocking(making).await.map_err(io::Error::other)?
    }

    /// Notes that it is taken, and removes versions that were taken long ago.
    async fn end(&self) -> io::Result<()> {
        File::create(&self.taken)?.sync_all()?;
        let project = self.project.clone();
        spawn_blocking(move || remove_old(&project)).await.map_err(io::Error::other)
    }
}

/// Removes a folder, whatever permissions its folders have: `setup` may have made them.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Lets this process write to a folder and all below it. Follows no links.
fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

fn remove_old(project: &Path) {
    let Ok(entries) = fs::read_dir(project) else { return };
    let mut taken: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "taken"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    taken.sort_unstable();
    for (_, path) in taken.iter().rev().skip(KEPT) {
        // The mark first: without it, the rest is no version.
        if fs::remove_file(path).is_ok()
            && let Err(error) = remove(&path.with_extension(""))
        {
            warn!(%error, folder = %path.display(), "an old version of a project is not removed");
        }
    }
}
