//! Crawls by a spider that renders its pages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use trawl_testkit::script_site::ScriptSite;

use crate::support::items_in;

/// Longer than any crawl of a test.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// A spider that reads what scripts make.
pub(crate) const SPIDER: &str = "render = 'always'\n[follow]\n[fields]\nname = 'h1::text'\n";

/// A folder with a spider, and a site that it may ask: no other address of this machine.
pub(crate) struct Workspace<'a> {
    folder: TempDir,
    site: &'a ScriptSite,
}

impl<'a> Workspace<'a> {
    pub(crate) fn new(site: &'a ScriptSite) -> Self {
        let workspace = Self { folder: tempfile::tempdir().unwrap(), site };
        workspace.write("shop.toml", SPIDER);
        workspace
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Writes a program, and returns its path.
    pub(crate) fn program(&self, name: &str, text: &str) -> String {
        self.write(name, text);
        let path = self.folder.path().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command with the settings of this workspace.
    fn prepared(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command
            .args(words)
            .current_dir(self.path())
            .env_clear()
            // A test may run as root, or where the system denies Chromium its sandbox.
            .env("TRAWL__BROWSER__SANDBOX", "false")
            // The folders of its browsers are here, so that these are known.
            .env("TMPDIR", self.path())
            .env("TRAWL__FETCH__ALLOW_NETWORKS", "127.0.0.1/32")
            .envs(self.site.certificate().map(|file| ("SSL_CERT_FILE", file)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn command(&self, words: &[&str]) -> Output {
        timeout(LIMIT, self.prepared(words).output()).await.unwrap().unwrap()
    }

    /// Starts a crawl from the site's first page.
    pub(crate) fn start(&self, words: &[&str], settings: &[(&str, &str)]) -> Child {
        let url = format!("{}/", self.site.origin);
        let crawl = ["crawl", &url, "--spider", "shop.toml", "--json"];
        let mut command = self.prepared(&[&crawl[..], words].concat());
        command.env("TRAWL__POLITENESS__RATE", "unlimited").envs(settings.iter().copied());
        command.spawn().unwrap()
    }

    pub(crate) async fn crawl_with(&self, words: &[&str], settings: &[(&str, &str)]) -> Output {
        timeout(LIMIT, self.start(words, settings).wait_with_output()).await.unwrap().unwrap()
    }

    /// Crawls from the site's first page, and returns the stats.
    pub(crate) async fn crawl(&self, words: &[&str]) -> Value {
        stats(&self.crawl_with(words, &[]).await)
    }

    pub(crate) fn items(&self) -> Vec<Value> {
        items_in(self.path())
    }
}

pub(crate) fn stats(output: &Output) -> Value {
    let stats = serde_json::from_slice(&output.stdout);
    stats.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Makes the site a shop of so many hats: a script asks for the list, and for each hat.
pub(crate) fn shop(site: &ScriptSite, hats: usize) {
    let document = "<!doctype html><html lang=en><link rel=stylesheet href=/style.css><div id=app></div>\
                    <img src=/picture.png><script src=/app.js></script></html>";
    site.script(
        "/app.js",
        "const app = document.getElementById('app');\
         const path = location.pathname === '/' ? '/api/list' : '/api' + location.pathname;\
         fetch(path).then(answer => answer.json()).then(data => {\
           if (data.name) app.innerHTML = `<h1>${data.name}</h1>`;\
           else for (const hat of data.hats) {\
             const link = document.createElement('a');\
             link.href = `/hat/${hat}`;\
             app.append(link);\
           }\
         });",
    );
    site.file(
        "/style.css",
        200,
        &[("content-type", "text/css")],
        "@font-face { font-family: x; src: url(/font.woff2) }\
         body { font-family: x; background: url(/background.png) }",
    );
    let numbers: Vec<usize> = (0..hats).collect();
    site.page("/", document);
    site.json("/api/list", serde_json::json!({ "hats": numbers }).to_string());
    for hat in 0..hats {
        site.page(&format!("/hat/{hat}"), document);
        site.json(&format!("/api/hat/{hat}"), format!("{{\"name\": \"Hat {hat} \u{e4}\"}}"));
    }
}
