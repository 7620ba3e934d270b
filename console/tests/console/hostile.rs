//! Malformed and hostile requests to the console.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use reqwest::header::SET_COOKIE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trawl_common::settings::{self, SecretHash};

use crate::fixture::{Fixture, OPERATOR};

const DEPLOY: &str = "/spiders/deploy";
const TEXT: &str = "[start]\nurls = ['http://a.example/']\n";

/// A tar of these files, with any names.
pub(crate) fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// A tar whose only entry is a symbolic link with the name of a spider's file.
fn link_to(target: &str) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_path("books.toml").unwrap();
    header.set_link_name(target).unwrap();
    header.set_size(0);
    header.set_cksum();
    let mut tar = tar::Builder::new(Vec::new());
    tar.append(&header, &b""[..]).unwrap();
    tar.into_inner().unwrap()
}

#[tokio::test]
async fn an_archive_is_read_in_memory_and_its_paths_lead_nowhere() {
    let console = Fixture::open().await;
    let person = console.nobody();
    let send = async |bytes: &[u8]| person.upload(DEPLOY, DEPLOY, &[], Some(("x.tar", bytes))).await;
    // Only the last component of a path counts.
    let shown = send(&tar(&[("../../../../tmp/escaped.toml", TEXT), ("/etc/absolute.toml", TEXT)])).await;
    assert_eq!(shown.location(), "/projects/default");
    assert!(!std::path::Path::new("/etc/absolute.toml").exists());
    assert!(!std::path::Path::new("/tmp/escaped.toml").exists());
    for (bytes, says) in [
        (link_to("/etc/passwd"), "no spider"),
        (tar(&[("a/books.toml", TEXT), ("b/books.toml", TEXT)]), "two files"),
        (tar(&[("..toml/.toml", TEXT)]), ".toml"),
        (tar(&[("<script>alert(1)<.toml", TEXT)]), "alert(1)"),
        (b"\x1f\x8bnonsense".to_vec(), "unpacked"),
    ] {
        let shown = send(&bytes).await;
        assert_eq!(shown.status, 400, "{says}: {}", shown.text);
        assert!(shown.has(says) && !shown.has("<script>alert"), "{says}: {}", shown.text);
    }
}

#[tokio::test]
async fn what_unpacks_to_far_more_than_it_is_is_refused_early() {
    let console = Fixture::open().await;
    let large = "#".repeat(64 * 1024 * 1024);
    let bomb = gzip(&tar(&[("books.toml", &large)]));
    assert!(bomb.len() < 512 * 1024, "{}", bomb.len());
    let many = gzip(&vec![0; 64 * 1024 * 1024]);
    for bytes in [bomb, many] {
        let shown = console.nobody().upload(DEPLOY, DEPLOY, &[], Some(("x.tar.gz", &bytes))).await;
        assert_eq!(shown.status, 400, "{}", shown.text);
    }
    assert!(console.nobody().get("/spiders").await.has("No spider is known here"));
}

#[tokio::test]
async fn a_form_that_is_too_large_is_refused_whatever_is_in_it() {
    let console = Fixture::open().await;
    let person = console.nobody();
    let large = "x".repeat(2 * 1024 * 1024);
    let shown = person.post_unproved("/crawls/new", &[("urls", &large)]).await;
    assert_eq!(shown.status, 413, "{}", shown.text);
    let shown = person.upload_unproved(DEPLOY, &[("text", &large)], None).await;
    assert_eq!(shown.status, 413, "{}", shown.text);
    let fields: Vec<_> = (0..5_000).map(|_| ("a", "b")).collect();
    assert_eq!(person.upload(DEPLOY, DEPLOY, &fields, None).await.status, 400, "many fields are but unknown");
}

#[tokio::test]
async fn a_session_that_somebody_else_has_chosen_is_never_begun() {
    let console = Fixture::embedded().await;
    let chosen = "trawl_session=0123456789abcdef0123456789abcdef";
    let request = console.request(Method::POST, "/log-in").header("cookie", chosen);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let shown = console.nobody().send(request.body(format!("token={OPERATOR}"))).await;
    assert_eq!(shown.status, 303);
    let begun = shown.headers[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(!begun.contains("0123456789abcdef0123"), "{begun}");
    let with = |cookie: &str| console.request(Method::GET, "/").header("cookie", cookie);
    assert_eq!(console.nobody().send(with(chosen)).await.status, 303);
    // Logging in again starts a new session and ends the one before.
    let first = begun.split(';').next().unwrap();
    let again = console.request(Method::POST, "/log-in").header("cookie", first);
    let again = again.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(console.nobody().send(again.body(format!("token={OPERATOR}"))).await.status, 303);
    assert_eq!(console.nobody().send(with(first)).await.status, 303);
}

#[tokio::test]
async fn a_session_is_over_when_somebody_logs_out() {
    let console = Fixture::embedded().await;
    let anna = console.log_in(OPERATOR).await;
    assert_eq!(anna.get("/").await.status, 200);
    assert_eq!(anna.post_unproved("/log-out", &[]).await.location(), "/log-in");
    assert_eq!(anna.get("/").await.location(), "/log-in?next=%2F");
}

#[tokio::test]
async fn no_answer_repeats_a_host_that_a_request_made_up() {
    let console = Fixture::embedded().await;
    for (name, value) in
        [("host", "evil.example"), ("x-forwarded-host", "evil.example"), ("forwarded", "host=evil.example")]
    {
        let shown = console.nobody().send(console.request(Method::GET, "/crawls").header(name, value)).await;
        assert_eq!(shown.location(), "/log-in?next=%2Fcrawls");
        let shown = console.nobody().send(console.request(Method::GET, "/log-in").header(name, value)).await;
        assert!(!shown.has("evil.example"), "{name}: {}", shown.text);
    }
}

#[tokio::test]
async fn a_secret_that_the_settings_have_by_its_hash_alone_logs_in_and_guessing_it_is_slow() {
    let secret = "correct horse battery staple";
    let token = SecretHash::from_secret(secret).unwrap().as_str().to_owned().try_into().unwrap();
    let operators = [("anna".parse().unwrap(), token)].into();
    let console = Fixture::guarded_by(settings::Api { operators, ..settings::Api::default() }).await;
    let attempt = async |token: &str| console.nobody().post_unproved("/log-in", &[("token", token)]).await;
    assert_eq!(attempt("wrong").await.status, 401);
    let anna = console.log_in(secret).await;
    assert!(anna.get("/").await.has("anna"));
    let mut refused = 0;
    for _ in 0..12 {
        refused += u32::from(attempt("wrong").await.status == 429);
    }
    assert!(refused >= 2, "{refused}");
    let again = attempt(secret).await;
    assert_eq!(again.status, 303, "who has logged in from here before is not locked out: {}", again.text);
    let bearer = console.request(Method::GET, "/api/v1/crawls").bearer_auth(secret);
    assert_eq!(console.nobody().send(bearer).await.status, 200, "programs go on");
}

/// Sends these bytes on one connection, and returns the statuses of the responses and their text.
async fn raw(console: &Fixture, bytes: &str) -> (Vec<String>, String) {
    let mut stream = TcpStream::connect(console.address).await.unwrap();
    // Writing fails if the console has answered and closed the connection.
    let _ = stream.write_all(bytes.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await.unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    let statuses = text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].to_owned()).collect();
    (statuses, text)
}

#[tokio::test]
async fn a_request_that_could_be_read_in_two_ways_brings_no_second_one_along() {
    let console = Fixture::embedded().await;
    let second = "0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for length in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Content-Length: 5\r\nContent-Length: 4",
        "Content-Length: +5",
    ] {
        let head = "POST /log-in HTTP/1.1\r\nHost: localhost";
        let (statuses, text) = raw(&console, &format!("{head}\r\n{length}\r\n\r\n{second}")).await;
        assert!(statuses.len() <= 1 && !statuses.contains(&"200".to_owned()), "{length}: {text}");
    }
    let upgrade =
        "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__";
    let (statuses, text) =
        raw(&console, &format!("GET /log-in HTTP/1.1\r\nHost: localhost\r\n{upgrade}\r\n\r\n")).await;
    assert_eq!(statuses, ["200"], "HTTP/1.1 it stays: {text}");
    let (statuses, _) = raw(&console, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(statuses.iter().all(|status| status.starts_with('4')), "{statuses:?}");
}

#[tokio::test]
async fn no_header_and_no_parameter_makes_another_request_of_one() {
    let console = Fixture::open().await;
    let id = "20260101-120000-a1b2c3";
    let crawl = console.crawl(id, 1).await;
    let pause = format!("/crawls/{id}/pause?_method=POST");
    for name in ["x-http-method-override", "x-http-method", "x-method-override"] {
        let request = console.request(Method::GET, &pause).header(name, "POST");
        assert_eq!(console.nobody().send(request).await.status, 405, "{name}");
    }
    for method in [Method::TRACE, Method::OPTIONS, Method::PUT, Method::PATCH] {
        let request = console.request(method.clone(), &format!("/crawls/{id}")).header("x-secret", "echoed");
        let shown = console.nobody().send(request).await;
        assert!(shown.status == 405 && !shown.has("echoed"), "{method}: {}", shown.text);
    }
    let (statuses, _) =
        raw(&console, "CONNECT localhost:22 HTTP/1.1\r\nHost: localhost:22\r\nConnection: close\r\n\r\n")
            .await;
    assert!(statuses.iter().all(|status| status.starts_with('4')), "{statuses:?}");
    assert_eq!(console.pending(&crawl).await, 1);
}

#[tokio::test]
async fn requests_that_never_arrive_whole_hold_up_nobody() {
    let console = Fixture::open().await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(console.address).await.unwrap();
        let head = b"POST /crawls/new HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000000\r\n\r\n--x";
        stream.write_all(head).await.unwrap();
        idle.push(stream);
    }
    let shown = tokio::time::timeout(Duration::from_secs(5), console.nobody().get("/")).await.unwrap();
    assert_eq!(shown.status, 200);
}

#[tokio::test]
async fn watching_without_end_has_a_bound_and_pages_are_answered_beside_it() {
    let console = Fixture::open().await;
    let id = "20260101-120000-a1b2c3";
    console.crawl(id, 1).await;
    let mut watching = Vec::new();
    let mut refused = 0;
    for _ in 0..200 {
        let mut stream = TcpStream::connect(console.address).await.unwrap();
        let head = format!("GET /api/v1/crawls/{id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        refused += usize::from(&status[9..] == b"429");
        watching.push(stream);
    }
    assert_eq!(refused, 200 - 128, "half of the places are for others");
    assert_eq!(console.nobody().get("/crawls").await.status, 200);
}

#[tokio::test]
async fn no_page_shows_letters_of_an_address_that_turn_the_direction_or_are_unseen() {
    let console = Fixture::open().await;
    let nobody = console.nobody();
    let sent = "a%E2%80%AEb%E2%80%8Bc";
    let question = nobody.get(&format!("/hosts/block?host={sent}")).await;
    assert!(question.has("<h1>Block a b c?</h1>"), "{}", question.text);
    let crawl = "/crawls/20260101-120000-a1b2c3/url";
    let others = ["crawl", "spider", "host", "reason", "url", "older_than"];
    let of_letters = others.map(|field| format!("/dead-letters?{field}"));
    let of_logs = ["crawl", "spider", "host", "level", "task"].map(|field| format!("/logs?{field}"));
    let more = [
        "/dead-letters/purge?url",
        "/dead-letters/purge?host",
        "/hosts?host",
        "/crawls?spider",
        "/crawls?status",
        "/crawls/new?spider",
        "/crawls/new?project",
        "/spiders/deploy?project",
        &format!("{crawl}?url"),
    ];
    for path in of_letters.iter().chain(&of_logs).map(String::as_str).chain(more) {
        let shown = nobody.get(&format!("{path}={sent}")).await;
        assert!(!shown.text.contains(['\u{202e}', '\u{200b}']), "{path}: {}", shown.text);
    }
}
