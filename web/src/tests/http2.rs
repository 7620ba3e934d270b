//! Servers that misuse HTTP/2.

mod frames;
mod rows;
mod server;

use std::time::Instant;

use trawl_testkit::attacks::Section;

use self::frames::{PING, SETTINGS, frame, page};
use self::rows::Attack;
pub(super) use self::server::Identity;
use self::server::{Script, Server};
use super::*;
use crate::client::IDLE_TIME;

/// Maximum number of bytes that a server can have sent before it notices that its client does not read: mostly the
/// kernel's buffers. An attack that only a timeout ends has no such bound.
const MAX_SENT: u64 = 16 << 20;

/// Maximum real time of an attack, however busy the machine is.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Returns a fetcher that trusts `identity`.
pub(super) fn trusting(identity: &Identity, settings: &settings::Fetch) -> Fetcher {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut tls = trust::tls().unwrap();
    tls.dangerous().set_certificate_verifier(Arc::clone(&identity.verifier));
    Fetcher::with(settings, resolver::lookup, tls).unwrap()
}

/// Tries all `attacks`, one after the other. When its client goes, a server loses its connection, whatever it sends.
async fn try_all(section: &mut Section, settings: &settings::Fetch, attacks: Vec<Attack>) {
    let identity = Identity::new();
    for Attack { name, script, gets } in attacks {
        let mut server = Server::start(&identity, script).await;
        let fetcher = trusting(&identity, settings);
        let start = Instant::now();
        let got = fetcher.fetch(&server.url()).await;
        assert!(start.elapsed() < MAX_TIME, "{name}: took {:?}", start.elapsed());
        let sent = server.sent();
        assert!(sent < MAX_SENT || gets.starts_with("timeout"), "{name}: {sent} bytes were taken");
        assert_eq!(server.asked(), 1, "{name}: requests");
        drop(fetcher);
        let left = tokio::time::timeout(MAX_TIME, server.wait_until_left()).await;
        assert!(left.is_ok(), "{name}: the connection is still open");
        let got = match got {
            Ok(page) => format!("page: {}", String::from_utf8_lossy(&page.body)),
            Err(failure) => failure.to_string(),
        };
        section.tried(name, gets, &got);
    }
}

#[tokio::test]
async fn whatever_frames_a_server_sends_a_request_ends_within_its_limits() {
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "HTTP/2");
    try_all(&mut section, &settings(), rows::limited()).await;
    let hurried = settings::Fetch { timeout: Duration::from_millis(300), ..settings() };
    try_all(&mut section, &hurried, rows::floods()).await;
    // These servers wait, so the clock may jump.
    tokio::time::pause();
    try_all(&mut section, &settings(), rows::waits()).await;
    section.check();
}

#[tokio::test]
async fn a_request_of_others_is_sent_over_tls_and_its_answer_comes_back_as_one_of_http_1_1() {
    let identity = Identity::new();
    let script = Script { start: page(&[], "hello"), again: Vec::new(), reads: true };
    let server = Server::start(&identity, script).await;
    let passage = trusting(&identity, &settings()).passage().unwrap();
    let request = hyper::Request::get(server.url().as_str()).body(String::new()).unwrap();
    let answer = passage.send(request).await.unwrap().response;
    assert_eq!((answer.status().as_u16(), answer.version()), (200, hyper::Version::HTTP_11));
    assert_eq!(reqwest::Response::from(answer).text().await.unwrap(), "hello");
}

/// Serves a normal page, and then `again` without end. Returns whether the client hangs up within `limit`, although its
/// pool lives on.
async fn is_left_within(limit: Duration, again: Vec<u8>, reads: bool) -> bool {
    let identity = Identity::new();
    let again = again.repeat(1000);
    let mut server = Server::start(&identity, Script { start: page(&[], "hello"), again, reads }).await;
    let fetcher = trusting(&identity, &settings());
    assert_eq!(fetcher.fetch(&server.url()).await.unwrap().body, "hello");
    tokio::time::timeout(limit, server.wait_until_left()).await.is_ok()
}

/// The server is never idle, so a paused clock would stand still.
#[tokio::test]
async fn a_connection_that_no_request_uses_is_closed_whatever_comes_on_it() {
    assert!(is_left_within(MAX_TIME, frame(PING, 0, 0, [0; 8]), true).await);
}

/// The clock is paused, and jumps whenever all wait for it.
#[tokio::test(start_paused = true)]
async fn a_connection_that_no_request_uses_is_closed_even_if_its_server_reads_no_answers() {
    let limit = 2 * IDLE_TIME + settings().timeout;
    assert!(is_left_within(limit, frame(PING, 0, 0, [0; 8]), false).await, "PING");
    assert!(is_left_within(limit, frame(SETTINGS, 0, 0, []), false).await, "SETTINGS");
}
