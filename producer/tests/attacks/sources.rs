//! Sources that are no XML, or not yet: bombs, floods, drips, redirects, lies.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use trawl_producer::preview;

use crate::server::{Server, body, endless, redirect, with};
use crate::{Attack, MAX_BYTES, MAX_TIME, around, attack, gzip, hosts, job, serving, settings, try_all};

const TOO_LARGE: &[&str] = &["more than 4194304 bytes, after 0 entries"];
const PRIVATE: &[&str] = &["is not a public address"];

pub(crate) fn attacks() -> Vec<Attack> {
    let bomb = || gzip(vec![b'\n'; 64 << 20]);
    let honest = around("");
    let coded = |name, bytes: Vec<u8>, codings: &'static str, urls, problems| {
        let answer = move |_: &str| with(body(bytes.clone()), "content-encoding", codings);
        serving(name, Box::new(answer), urls, 0, problems)
    };
    let typed = |name, kind: &'static str| {
        let bytes = honest.clone();
        serving(name, Box::new(move |_| with(body(bytes.clone()), "content-type", kind)), 2, 0, &[])
    };
    let to = |name, location: &'static str, problems| {
        serving(name, Box::new(move |_| redirect(location)), 0, 0, problems)
    };
    let urls = |count: usize| "http://a.example/\n".repeat(count);
    vec![
        attack("a gzip bomb", bomb(), 0, 0, TOO_LARGE),
        coded("a gzip bomb by `Content-Encoding`", bomb(), "gzip", 0, TOO_LARGE),
        attack(
            "a gzip bomb behind two URLs",
            gzip(urls(2) + &"\n".repeat(64 << 20)),
            2,
            0,
            &["more than 4194304 bytes, after 2 entries"],
        ),
        attack("gzip in gzip", gzip(gzip(&honest)), 0, 0, &["compressed twice"]),
        coded("gzip by `Content-Encoding` of a gzip file: honest", gzip(gzip(&honest)), "gzip", 2, &[]),
        coded(
            "four content codings",
            gzip(&honest),
            "gzip, gzip, gzip, gzip",
            0,
            &["more than 3 content codings over each other"],
        ),
        attack("gzip files without end that hold nothing", gzip("").repeat(500_000), 0, 0, TOO_LARGE),
        attack(
            "a gzip header that never ends",
            [b"\x1f\x8b\x08\x08\0\0\0\0\0\0".to_vec(), vec![b'x'; 1 << 20]].concat(),
            0,
            0,
            &["gzip stream is corrupt"],
        ),
        attack(
            "a gzip file that breaks off",
            {
                let packed = gzip(&honest);
                packed[..packed.len() - 8].to_vec()
            },
            2,
            0,
            &[],
        ),
        attack("damaged gzip", [gzip(&honest), b"\x1f\x8b\x08\0garbage".to_vec()].concat(), 2, 0, &[]),
        serving(
            "a list without end",
            Box::new(|_| endless("", urls_of(1000), Duration::ZERO)),
            50_000,
            0,
            &["more than 50000 entries, after 50,000 entries"],
        ),
        serving(
            "blank lines without end",
            Box::new(|_| endless("", "\n".repeat(8192), Duration::ZERO)),
            0,
            0,
            TOO_LARGE,
        ),
        attack("a line of 3 MB", urls(1) + &"x".repeat(3 << 20) + "\n" + &urls(1), 2, 1, &[]),
        attack(
            "40,000 lines that are no URLs",
            urls(1) + &"x\n".repeat(40_000),
            1,
            10_000,
            &["40000 entries are no URLs, of which 10000 became dead letters"],
        ),
        attack("random bytes", noise(), 0, 10_000, &["entries are no URLs"]),
        attack(
            "a list in UTF-16 without a byte order mark",
            "h\0t\0t\0p\0:\0/\0/\0a\0.\0b\0/\0\n\0",
            0,
            2,
            &[],
        ),
        attack("NUL bytes", vec![0; 1 << 20], 0, 1, &[]),
        attack(
            "URLs of other schemes",
            "file:///etc/passwd\njavascript:alert(1)\ndata:,x\ngopher://a.example/",
            0,
            4,
            &[],
        ),
        attack("URLs with credentials", "http://user:secret@a.example/", 0, 1, &[]),
        typed("a sitemap sent as an image: honest", "image/png"),
        typed("a sitemap sent as HTML: honest", "text/html"),
        to("a redirect to itself", "/map", &["redirected in a circle"]).asked(3),
        serving(
            "redirects without end",
            Box::new(|path| redirect(&format!("{path}x"))),
            0,
            0,
            &["more than 10 redirects"],
        )
        .asked(11),
        to("a redirect to a private address", "http://10.0.0.1/", PRIVATE),
        to("a redirect to the metadata service", "http://169.254.169.254/", PRIVATE),
        to("a redirect to a file", "file:///etc/passwd", &["scheme `file` is not http or https"]),
    ]
}

/// Sources that only a time limit ends.
pub(crate) fn drips() -> Vec<Attack> {
    const LATE: &[&str] = &["not at its end within 500ms (`producer.timeout`)"];
    let drip = |name, start: &'static str, again: &'static str, urls, problems| {
        serving(name, Box::new(move |_| endless(start, again, Duration::from_millis(20))), urls, 0, problems)
    };
    vec![
        drip("a list, a byte every 20 ms", "http://a.example/\n#", "x", 1, LATE),
        drip(
            "a sitemap that goes on with spaces, one every 20 ms",
            "<urlset><url><loc>http://a.example/</loc></url>",
            " ",
            1,
            LATE,
        ),
        drip("a tag, a byte every 20 ms", "<urlset ", "x", 0, LATE),
    ]
}

fn urls_of(count: usize) -> String {
    "http://a.example/\n".repeat(count)
}

/// Bytes without a pattern, the same each time.
fn noise() -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(MAX_BYTES).collect()
}

#[tokio::test]
async fn bombs_floods_and_lies_end_in_one_line() {
    try_all(settings(), attacks()).await;
}

#[tokio::test]
async fn a_drip_ends_when_its_time_is_up() {
    let mut settings = settings();
    settings.producer.timeout = Duration::from_millis(500);
    try_all(settings, drips()).await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_drip() {
    let drip = |_: &str| endless("http://a.example/\n#", "x", Duration::from_millis(20));
    let server = Server::start(Box::new(drip)).await;
    let stop = CancellationToken::new();
    let reading = preview(Arc::new(settings()), hosts(), job([&server]), &stop, |_| {});
    let stopping = async {
        while server.asked() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(reading, stopping).0.unwrap() };
    let report = tokio::time::timeout(MAX_TIME, both).await.expect("it ends long before `producer.timeout`");
    assert!(report.stopped && report.problems.is_empty(), "{:?}", report.problems);
}

#[tokio::test]
async fn a_source_whose_server_is_slow_holds_up_no_other() {
    let drip = |_: &str| endless("http://a.example/\n#", "x", Duration::from_millis(20));
    let (slow, quick) =
        (Server::start(Box::new(drip)).await, Server::start(Box::new(|_| body(urls_of(3)))).await);
    let stop = CancellationToken::new();
    let mut found = 0;
    // The slow one ends only with the run.
    let reading = preview(Arc::new(settings()), hosts(), job([&slow, &quick]), &stop, |_| {
        found += 1;
        if found == 3 {
            stop.cancel();
        }
    });
    let report =
        tokio::time::timeout(MAX_TIME, reading).await.expect("long before `producer.timeout`").unwrap();
    assert_eq!(found, 3, "{:?}", report.problems);
}
