//! `trawl init`: writes a project, and what a fleet of it runs on.

mod image;
mod templates;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use data_encoding::HEXLOWER;
use serde_json::json;
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;

use crate::spider::new::EXAMPLE;

/// The command-line arguments of `trawl init`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The project's folder
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Also write what runs a fleet, with secrets, and an image made of this program
    #[arg(long, value_name = "PLACE")]
    fleet: Option<Fleet>,
    /// Print the names of the files as one JSON object
    #[arg(long)]
    json: bool,
}

/// The place of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Fleet {
    /// RabbitMQ, Redis, workers and a console on this machine, by Docker Compose
    Compose,
    /// Workers and a console in a cluster that has RabbitMQ and Redis
    Kubernetes,
}

/// A file of a project.
struct File {
    path: PathBuf,
    content: Vec<u8>,
    mode: u32,
}

impl File {
    fn new(path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), content: content.into(), mode: 0o666 }
    }

    /// Returns a file that only its owner may read.
    fn secret(path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o600, ..Self::new(path, content) }
    }

    fn program(path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o777, ..Self::new(path, content) }
    }
}

impl Args {
    /// Writes the files, none of which may be there.
    pub(crate) fn run(self, global: &Global) -> Outcome {
        let files = files(self.fleet)?;
        write(&self.folder, &files)?;
        global.say(format_args!("{}", next_steps(&self.folder, self.fleet)));
        if self.json {
            let paths: Vec<_> = files.iter().map(|file| &file.path).collect();
            print_json(&json!({ "folder": self.folder, "files": paths }));
        }
        Ok(Exit::Ok)
    }
}

fn files(fleet: Option<Fleet>) -> Result<Vec<File>, Fail> {
    let mut files = vec![File::new(".gitignore", templates::GIT_IGNORES)];
    if fleet != Some(Fleet::Kubernetes) {
        files.extend([File::new("trawl.toml", templates::SETTINGS), File::new("spiders/shop.toml", EXAMPLE)]);
    }
    match fleet {
        None => {}
        Some(Fleet::Compose) => files.extend(image::files()?.into_iter().chain(compose())),
        Some(Fleet::Kubernetes) => files.extend(image::files()?.into_iter().chain(kubernetes())),
    }
    Ok(files)
}

fn compose() -> impl Iterator<Item = File> {
    let environment = templates::ENVIRONMENT.lines().map(|line| {
        // A secret that is not set.
        let secret = if !line.starts_with('#') && line.ends_with('=') { secret() } else { String::new() };
        format!("{line}{secret}\n")
    });
    let files = templates::COMPOSE.iter().map(|(path, text)| File::new(*path, *text));
    files.chain([File::secret(".env", environment.collect::<String>())])
}

/// Returns the folders of deploy/kubernetes, with the example, which has settings and a spider, as the project's own. Of
/// its secrets only its owner knows the addresses of RabbitMQ and Redis.
fn kubernetes() -> impl Iterator<Item = File> {
    let own = |path: &str| path.replace("/example/", "/mine/");
    let files = templates::KUBERNETES.iter().map(move |(path, text)| File::new(own(path), *text));
    let secrets = ["key", "operator-token", "prometheus-token"];
    files.chain(secrets.map(|name| File::secret(format!("deploy/kubernetes/mine/secrets/{name}"), secret())))
}

fn secret() -> String {
    HEXLOWER.encode(&rand::random::<[u8; 32]>())
}

/// Writes all files, or none if one of them is there.
fn write(folder: &Path, files: &[File]) -> Result<(), Fail> {
    if let Some(file) = files.iter().find(|file| folder.join(&file.path).symlink_metadata().is_ok()) {
        return Err(Fail::usage(format!("{} is there already", folder.join(&file.path).display())));
    }
    for file in files {
        let path = folder.join(&file.path);
        write_file(&path, file).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Fail::usage(format!("{} is there already", path.display())),
            _ => Fail::run(format!("{}: {error}", path.display())),
        })?;
    }
    Ok(())
}

fn write_file(path: &Path, file: &File) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(file.mode).open(path)?.write_all(&file.content)
}

fn next_steps(folder: &Path, fleet: Option<Fleet>) -> String {
    let (change, then) = match fleet {
        None => ("spiders/shop.toml", "  trawl crawl --spider spiders/shop.toml"),
        Some(Fleet::Compose) => (
            "spiders/shop.toml",
            "  docker compose up -d --build --scale worker=4\n  docker compose run --rm producer --spider shop\n\
             the console is at http://127.0.0.1:8080; log in with CONSOLE_TOKEN of .env",
        ),
        Some(Fleet::Kubernetes) => (
            "kustomization.yaml and spiders/shop.toml in deploy/kubernetes/mine, and write the URLs of RabbitMQ and Redis \
             to secrets/rabbitmq-url and secrets/redis-url there",
            "  docker build -t registry.example.com/trawl:0.1.0 . && docker push registry.example.com/trawl:0.1.0\n  \
             kubectl apply -k deploy/kubernetes/mine",
        ),
    };
    format!("change {change}; then:\n  cd {}\n{then}", folder.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Returns the text of a file of a new project.
    fn text(files: &[File], path: &str) -> String {
        let file = files.iter().find(|file| file.path == Path::new(path)).unwrap();
        String::from_utf8(file.content.clone()).unwrap()
    }

    #[test]
    fn a_project_is_written_once_and_never_over_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let (project, files) = (folder.path().join("new"), files(None).unwrap());
        write(&project, &files).unwrap();
        fs::write(project.join("trawl.toml"), "mine").unwrap();
        fs::remove_file(project.join(".gitignore")).unwrap();
        assert!(write(&project, &files).is_err());
        assert_eq!(fs::read_to_string(project.join("trawl.toml")).unwrap(), "mine");
        assert!(!project.join(".gitignore").exists());
    }

    #[test]
    fn every_secret_of_a_fleet_is_made_anew_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| files(Some(Fleet::Compose)).unwrap());
        let unset = |text: &str| text.lines().any(|line| !line.starts_with('#') && line.ends_with('='));
        assert!(unset(templates::ENVIRONMENT) && !unset(&text(&one, ".env")));
        assert_ne!(text(&one, ".env"), text(&other, ".env"));
        write(folder.path(), &one).unwrap();
        let mode = |name| folder.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(".env"), mode("trawl") & 0o100), (0o600, 0o100));
    }

    #[test]
    fn compose_finds_all_that_it_mounts() {
        let files = files(Some(Fleet::Compose)).unwrap();
        let compose = text(&files, "docker-compose.yml");
        let mounted: Vec<_> =
            compose.lines().filter_map(|line| line.trim().strip_prefix("- ./")?.split(':').next()).collect();
        assert!(mounted.len() > 4, "{mounted:?}");
        for path in mounted {
            assert!(files.iter().any(|file| file.path.starts_with(path)), "{path}");
        }
    }

    #[test]
    fn an_image_takes_the_program_and_compiles_nothing() {
        let dockerfile = text(&files(Some(Fleet::Kubernetes)).unwrap(), "Dockerfile");
        assert!(dockerfile.contains("\nCOPY trawl ") && !dockerfile.contains("--from"), "{dockerfile}");
        assert_eq!(dockerfile.matches("\nFROM ").count(), 1);
    }

    #[test]
    fn kustomize_finds_all_but_the_addresses_of_the_servers() {
        let files = files(Some(Fleet::Kubernetes)).unwrap();
        let mine = text(&files, "deploy/kubernetes/mine/kustomization.yaml");
        let named = mine.lines().filter_map(|line| line.trim().strip_prefix("- secrets/"));
        let missing: Vec<_> = named
            .filter(|name| {
                !files.iter().any(|file| file.path.ends_with(Path::new("mine/secrets").join(name)))
            })
            .collect();
        assert_eq!(missing, ["rabbitmq-url", "redis-url"]);
    }
}
