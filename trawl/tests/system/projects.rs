//! A project whose code is in Git, and a runner that reaches nothing but the API: real processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{Fleet, LIMIT, ends_well};

/// A program that says which version it is, and what it was given.
fn program(version: u32) -> String {
    format!(
        "#!/usr/bin/env python3\nimport json, sys\nsecret = json.loads(sys.argv[2])\n\
         print(json.dumps({{'result': 0, 'items': [{{'version': {version}, 'secret': secret}}]}}))\n"
    )
}

const FILE: &str = "[handler]\nrun = ['./run']\n";

/// A fleet, an API with a key, and the repository of a project.
struct Fixture {
    fleet: Fleet,
    repository: PathBuf,
    address: String,
    _api: Child,
}

impl Fixture {
    async fn new() -> Self {
        let fleet = Fleet::new().await;
        let folder = fleet.folder.path();
        fs::write(folder.join("spiders").join(format!("{}.toml", fleet.name)), FILE).unwrap();
        fs::write(folder.join("key"), "12".repeat(32)).unwrap();
        let repository = folder.join("repository");
        fs::create_dir(&repository).unwrap();
        let mut api = fleet.command(&["api", "--listen", "127.0.0.1:0"]);
        let mut api = with_key(&mut api).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(api.stderr.take().unwrap()).lines();
        let address = loop {
            let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
            if let Some(rest) = line.split_once("http://").map(|(_, rest)| rest) {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        // It goes on when nobody reads any more.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let fixture = Self { fleet, repository, address, _api: api };
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@a.example", "-c", "commit.gpgsign=false"];
        let mut git = std::process::Command::new("git");
        assert!(git.args(identity).args(arguments).current_dir(&self.repository).status().unwrap().success());
    }

    /// Commits executable files.
    fn commit(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = self.repository.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "x"]);
    }

    /// Runs a command that ends well, with this standard input. Returns its output.
    async fn trawl(&self, words: &[&str], input: &str) -> String {
        let mut command = self.fleet.command(words);
        let command =
            with_key(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().unwrap();
        running.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        let output = timeout(LIMIT, running.wait_with_output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts a runner, which has neither the servers' passwords nor the key, nor any file of the spider.
    fn runner(&self) -> Child {
        let folder = self.fleet.folder.path().join("runner");
        fs::create_dir(&folder).unwrap();
        let api = format!("http://{}", self.address);
        Command::new(env!("CARGO_BIN_EXE_trawl"))
            .args(["runner", "--api", &api, "--name", "desk-7", "--contexts", "2", "--projects", "code"])
            .current_dir(folder)
            .env_clear()
            .env("TRAWL__PROJECTS__PROTOCOLS", "file")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    /// Has a task done, and returns the fields of its item.
    async fn done(&self, recipe: &str) -> Value {
        let words = ["task", "submit", "--spider", &self.fleet.name, "--recipe", recipe, "--crawl", recipe];
        self.trawl(&words, "").await;
        self.trawl(&["wait", recipe], "").await;
        let mut items = self.fleet.items().await;
        items.retain(|item| item["crawl"] == recipe);
        assert_eq!(items.len(), 1, "{items:?}");
        items.remove(0)["fields"].clone()
    }

    /// Tells the API of a push, as Gitea does. Returns the status of the answer.
    async fn push(&self) -> u16 {
        let hook: Value =
            serde_json::from_str(&self.trawl(&["project", "hook", "books", "--json"], "").await).unwrap();
        let (path, secret) = (hook["path"].as_str().unwrap(), hook["secret"].as_str().unwrap());
        let body = json!({ "ref": "refs/heads/main" }).to_string();
        let signature = signature(secret, &body);
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             X-Gitea-Event: push\r\nX-Gitea-Signature: {signature}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut connection = TcpStream::connect(&self.address).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn taken(&self) -> Vec<String> {
        let folder = self.fleet.folder.path().join("runner/code/books");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "taken")).collect()
    }
}

fn with_key(command: &mut Command) -> &mut Command {
    command.env("TRAWL__SECRETS__KEY_FILE", "key").env("TRAWL__PROJECTS__PROTOCOLS", "file")
}

fn signature(secret: &str, body: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_runner_takes_what_is_pushed_within_seconds_and_its_program_is_given_the_secret() {
    let fixture = Fixture::new().await;
    let url = format!("file://{}", fixture.repository.display());
    fixture.commit(&[("spider.toml", FILE), ("run", &program(1))]);
    fixture.trawl(&["project", "create", "books", "--spider", &fixture.fleet.name], "").await;
    fixture.trawl(&["project", "secret", "set", "books"], "{\"TOKEN\": \"s3cret\"}\n").await;
    fixture.trawl(&["project", "set", "books", "--clone-url", &url, "--branch", "main"], "").await;
    fixture.trawl(&["project", "pull", "books"], "").await;
    let runner = fixture.runner();
    let approve = ["runner", "approve", "desk-7", "--project", "books"];
    // It asks first.
    timeout(LIMIT, async { while !fixture.trawl(&["runner", "list"], "").await.contains("desk-7") {} })
        .await
        .unwrap();
    fixture.trawl(&approve, "").await;
    assert_eq!(fixture.done("one").await, json!({ "version": 1, "secret": { "TOKEN": "s3cret" } }));

    fixture.commit(&[("run", &program(2)), ("setup", "#!/bin/sh\ntouch set-up\n")]);
    let pushed = Instant::now();
    assert_eq!(fixture.push().await, 200);
    timeout(LIMIT, async {
        while fixture.taken().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap();
    eprintln!("the version was taken {:?} after the push", pushed.elapsed());
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(fixture.done("two").await["version"], 2);

    fixture.commit(&[("run", &program(3)), ("setup", "#!/bin/sh\necho no such package >&2\nexit 3\n")]);
    assert_eq!(fixture.push().await, 200);
    let refused = timeout(LIMIT, async {
        loop {
            let log = fixture.trawl(&["logs"], "").await;
            if log.contains("is not taken") {
                break log;
            }
        }
    });
    let refused = refused.await.unwrap();
    assert!(refused.contains("no such package") && !refused.contains("s3cret"), "{refused}");
    assert_eq!(fixture.done("three").await["version"], 2, "the last good version goes on");
    let machine = timeout(LIMIT, async {
        loop {
            let shown = fixture.trawl(&["project", "show", "books", "--json"], "").await;
            assert!(!shown.contains("s3cret"), "{shown}");
            let shown: Value = serde_json::from_str(&shown).unwrap();
            if let Some(machine) = shown["machines"].get(0) {
                break machine.clone();
            }
        }
    });
    let machine = machine.await.unwrap();
    assert_eq!((&machine["machine"], &machine["taken"]), (&"desk-7 (runner)".into(), &false.into()));
    assert!(machine["error"].as_str().unwrap().contains("status 3:\nno such package"), "{machine}");
    let shown = fixture.trawl(&["project", "show", "books"], "").await;
    assert!(shown.contains("failed   desk-7 (runner)") && shown.contains("no such package"), "{shown}");
    ends_well(runner).await;
}
