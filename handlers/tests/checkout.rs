//! Versions of projects' code, from repositories on this machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use trawl_common::names::ProjectName;
use trawl_common::project::{Commit, Source, Wanted};
use trawl_common::settings::{Projects, Protocol};
use trawl_handlers::Supervisor;
use trawl_handlers::checkout::{Checkouts, NotTaken, tip};

/// A repository, and the versions that are taken of it.
struct Fixture {
    repository: TempDir,
    dir: TempDir,
    settings: Projects,
}

fn supervisor() -> Supervisor {
    Supervisor::at(env!("CARGO_BIN_EXE_trawl-handler-exec"))
}

impl Fixture {
    fn new() -> Self {
        let (repository, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settings = Projects { dir: Some(dir.path().to_owned()), protocols: vec![Protocol::File] };
        let fixture = Self { repository, dir, settings };
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture
    }

    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@a.example", "-c", "commit.gpgsign=false"];
        let run =
            Command::new("git").args(identity).args(arguments).current_dir(self.repository.path()).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap().trim().to_owned()
    }

    /// Commits a file, and returns the commit.
    fn commit(&self, file: &str, text: &str) -> Wanted {
        let path = self.repository.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "x"]);
        Wanted {
            clone_url: self.source("main").clone_url,
            commit: self.git(&["rev-parse", "HEAD"]).parse().unwrap(),
        }
    }

    fn source(&self, branch: &str) -> Source {
        let clone_url = format!("file://{}", self.repository.path().display()).parse().unwrap();
        Source { clone_url, branch: branch.parse().unwrap() }
    }

    async fn take(&self, wanted: &Wanted) -> Result<PathBuf, NotTaken> {
        Checkouts::new(&self.settings, supervisor()).unwrap().take(&project(), wanted).await
    }

    async fn tip(&self, branch: &str) -> Result<Commit, NotTaken> {
        tip(&self.settings, &supervisor(), &self.source(branch)).await
    }

    /// Returns the names in the folder of the project.
    fn versions(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join(project().as_str())).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn project() -> ProjectName {
    "shop".parse().unwrap()
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap()
}

#[tokio::test]
async fn each_version_has_a_folder_of_its_own_and_is_set_up_once() {
    let fixture = Fixture::new();
    fixture.commit("run", "one");
    let first = fixture.commit("setup", "#!/bin/sh\nset -e\npwd >> set-up\ncat run >> set-up\n");
    let one = fixture.take(&first).await.unwrap();
    assert_eq!(read(&one, "run"), "one");
    let set_up = read(&one, "set-up");
    assert_eq!(set_up, format!("{}\none", one.display()));
    assert_eq!(fixture.take(&first).await.unwrap(), one);
    assert_eq!(read(&one, "set-up"), set_up, "it was not set up again");
    let second = fixture.commit("run", "two");
    assert_eq!(fixture.tip("main").await.unwrap(), second.commit);
    let two = fixture.take(&second).await.unwrap();
    assert_eq!((read(&one, "run"), read(&two, "run")), ("one".to_owned(), "two".to_owned()));
}

#[tokio::test]
async fn a_version_whose_setup_fails_is_not_taken_and_says_so_with_the_end_of_its_log() {
    let fixture = Fixture::new();
    let wanted = fixture.commit("setup", "#!/bin/sh\necho begun\necho no such package >&2\nexit 3\n");
    let NotTaken::Setup(why) = fixture.take(&wanted).await.unwrap_err() else { panic!("it was fetched") };
    assert!(why.contains("status 3") && why.contains("begun\nno such package"), "{why}");
    assert_eq!(fixture.versions(), [".lock"]);
}

#[tokio::test]
async fn what_a_process_left_that_died_is_taken_anew() {
    let fixture = Fixture::new();
    let wanted = fixture.commit("run", "one");
    let half = fixture.dir.path().join("shop").join(wanted.commit.as_str());
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("run"), "half").unwrap();
    fs::write(half.join("left"), "").unwrap();
    let taken = fixture.take(&wanted).await.unwrap();
    assert_eq!(taken, half);
    assert_eq!(read(&taken, "run"), "one");
    assert!(!taken.join("left").exists());
}

#[tokio::test]
async fn nothing_that_a_repository_brings_is_run_while_it_is_fetched() {
    let fixture = Fixture::new();
    fixture.commit("hooks/post-checkout", "#!/bin/sh\ntouch hooked\n");
    fixture.git(&["config", "core.hooksPath", "hooks"]);
    fixture.commit(".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = file:///nowhere\n");
    let wanted = fixture.commit(".gitattributes", "* filter=x\n");
    let taken = fixture.take(&wanted).await.unwrap();
    assert!(!taken.join("hooked").exists() && !taken.join("x").exists());
}

#[tokio::test]
async fn only_the_protocols_of_the_settings_are_used() {
    let mut fixture = Fixture::new();
    let wanted = fixture.commit("run", "one");
    fixture.settings.protocols = vec![Protocol::Https];
    let refused = fixture.take(&wanted).await.unwrap_err().to_string();
    assert!(refused.contains("projects.protocols"), "{refused}");
    assert!(fixture.tip("main").await.unwrap_err().to_string().contains("projects.protocols"));
}

#[tokio::test]
async fn what_is_not_there_is_said_by_name() {
    let fixture = Fixture::new();
    let known = fixture.commit("run", "one");
    let unknown = Wanted { commit: "1".repeat(40).parse().unwrap(), ..known };
    assert!(matches!(fixture.take(&unknown).await, Err(NotTaken::Fetch(why)) if why.contains("git fetch")));
    let none = fixture.tip("none").await.unwrap_err().to_string();
    assert!(none.contains("git ls-remote"), "{none}");
}

#[tokio::test]
async fn the_latest_versions_are_kept() {
    let fixture = Fixture::new();
    let mut all = Vec::new();
    for number in 0..6 {
        let wanted = fixture.commit("run", &number.to_string());
        fixture.take(&wanted).await.unwrap();
        all.push(wanted.commit.to_string());
    }
    let versions = fixture.versions();
    assert_eq!(versions.len(), 9, "a lock, and four of a folder and a mark: {versions:?}");
    assert!(versions.contains(&all[5]) && !versions.contains(&all[0]));
}

#[tokio::test]
async fn a_version_whose_failed_setup_left_folders_that_nobody_may_write_to_is_tried_again() {
    let fixture = Fixture::new();
    let setup = "#!/bin/sh\nmkdir -p mod/cache && touch mod/cache/x && chmod 500 mod/cache mod\n[ -e \"$0.again\" ] || exit 1\n";
    let wanted = fixture.commit("setup", setup);
    for _ in 0..2 {
        let failed = fixture.take(&wanted).await;
        assert!(matches!(failed, Err(NotTaken::Setup(_))), "{failed:?}");
    }
    assert!(fixture.versions().iter().all(|name| name == ".lock"), "{:?}", fixture.versions());
}
