//! The program under its three names.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

const TRAWL: &str = env!("CARGO_BIN_EXE_trawl");

fn run(program: impl AsRef<Path>, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    Command::new(program.as_ref()).args(args).current_dir(folder.path()).env_clear().output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the output of the command `trawl NAME` as the program NAME would print it.
fn as_program(name: &str, output: &[u8]) -> String {
    text(output).replace(&format!("trawl {name}"), name)
}

/// Returns the usage lines, except `--version`, which commands do not have.
fn usage(help: &str) -> Vec<&str> {
    help[help.find("Usage: ").unwrap()..].lines().filter(|line| !line.contains("--version")).collect()
}

#[test]
fn by_a_link_named_producer_or_worker_trawl_is_that_program() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sources) in [("producer", ["http://a.example/"].as_slice()), ("worker", &[])] {
        let link = folder.path().join(name);
        symlink(TRAWL, &link).unwrap();
        assert_eq!(text(&run(&link, &["-V"]).stdout), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
        let of_trawl = text(&run(TRAWL, &["--version"]).stdout);
        assert_eq!(text(&run(&link, &["--version"]).stdout), of_trawl.replacen("trawl", name, 1));
        assert!(of_trawl.starts_with(&format!("trawl {} (", env!("CARGO_PKG_VERSION"))), "{of_trawl}");

        let (own, command) = (run(&link, &["--help"]), run(TRAWL, &[name, "--help"]));
        assert_eq!(own.status.code(), Some(0));
        assert_eq!(usage(&text(&own.stdout)), usage(&as_program(name, &command.stdout)));

        let (own, command) = (run(&link, &["--nonsense"]), run(TRAWL, &[name, "--nonsense"]));
        assert_eq!(own.status.code(), Some(2));
        assert_eq!(text(&own.stderr), as_program(name, &command.stderr));

        let own = run(&link, &[&["--config", "nowhere.toml"], sources].concat());
        let complaint = text(&own.stderr);
        assert_eq!(own.status.code(), Some(2));
        assert!(
            complaint.starts_with(&format!("{name}: ")) && complaint.contains("nowhere.toml"),
            "{complaint}"
        );
    }
}

#[test]
fn by_a_link_of_another_name_it_is_trawl() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("crawler");
    symlink(TRAWL, &link).unwrap();
    assert!(text(&run(&link, &["--version"]).stdout).starts_with("trawl "));
}
