//! Responses of attackers, and the expected results. `tests/attacks.md` lists the same rows.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod addresses;
mod bodies;
mod heads;
mod proxy;
mod redirects;
mod server;
mod time;

use std::time::{Duration, Instant};

use bytes::Bytes;
use bytesize::ByteSize;
use trawl_common::frontier::message::Hop;
use trawl_common::names::SpiderName;
use trawl_common::settings::{Fetch, Items};
use trawl_common::spider::page_history::Validators;
use trawl_common::spider::{Scope, Spider};
use trawl_common::web::url::CanonicalUrl;
use trawl_testkit::attacks::Section;
use trawl_web::{Answer, Fetcher, MAX_REDIRECTS, NoPage, Trail};

use crate::server::{Script, Server};

/// `fetch.max_body` of all attacks.
const LIMIT: usize = 64 * 1024;

/// Maximum number of bytes that a server can send before it notices that nobody reads: mostly the kernel's buffers.
/// There is no such limit for attacks that only a timeout ends.
const MAX_SENT: u64 = 16 << 20;

/// Maximum real time of an attack, however busy the machine is.
const MAX_TIME: Duration = Duration::from_secs(20);

/// A response of an attacker, and the expected result: a class of failure or `page`, and a part of the message or the
/// page.
struct Attack {
    name: &'static str,
    script: Script,
    gets: &'static str,
}

fn attack(name: &'static str, script: Script, gets: &'static str) -> Attack {
    Attack { name, script, gets }
}

/// The attacker's server may be requested although its address is private; nothing else on this machine may.
fn settings() -> Fetch {
    Fetch {
        allow_networks: vec!["127.0.0.1".parse().unwrap()],
        max_body: ByteSize(LIMIT as u64),
        ..Fetch::default()
    }
}

fn fetcher(settings: &Fetch) -> Fetcher {
    // Every test of the process tries to install it; the first one succeeds.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Fetcher::new(settings).unwrap()
}

/// Fetches `url` as a worker does: one request at a time, with only the hop kept between them. Returns the body of the
/// page, which is empty for a content type that is not read.
async fn page(fetcher: &Fetcher, url: &CanonicalUrl) -> Result<Bytes, NoPage> {
    let scope = Scope::new(&Spider::without_file(SpiderName::default(), &Items::default())).unwrap();
    let mut hop: Option<Hop> = None;
    loop {
        let mut trail = Trail::at(url.clone(), hop, MAX_REDIRECTS);
        match fetcher.ask(trail.last(), &Validators::default()).await? {
            Answer::Page(page) => return Ok(page.body),
            Answer::Unread { .. } => return Ok(Bytes::new()),
            Answer::Redirect(next) => trail.follow(next, &scope)?,
            Answer::NotModified => unreachable!("it was not asked whether it has changed"),
        }
        hop = trail.into_hop();
    }
}

/// Tries `attacks` one after the other, and compares the document with them.
async fn try_all(title: &'static str, settings: &Fetch, attacks: Vec<Attack>) {
    let fetcher = fetcher(settings);
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), title);
    for Attack { name, script, gets } in attacks {
        let server = Server::start(script).await;
        let start = Instant::now();
        let got = page(&fetcher, &server.url()).await;
        assert!(start.elapsed() < MAX_TIME, "{name}: took {:?}", start.elapsed());
        let sent = server.sent();
        assert!(sent < MAX_SENT || gets.starts_with("timeout"), "{name}: {sent} bytes were taken");
        section.tried(name, gets, &shown(got));
    }
    section.check();
}

/// A result in the form of the rows.
fn shown(got: Result<Bytes, NoPage>) -> String {
    match got {
        Ok(body) => format!("page: {}", String::from_utf8_lossy(&body)),
        Err(reason) => reason.to_string(),
    }
}
