//! Responses that arrive slowly, or never become complete.

use std::time::Duration;

use trawl_common::settings::Fetch;

use crate::server::{Script, head};
use crate::{Attack, attack, settings, try_all};

/// The clock is paused, and advances whenever all tasks wait for it.
#[tokio::test(start_paused = true)]
async fn what_drips_ends_when_its_time_is_up() {
    let drip = |name, start: &str, again: &str| {
        let gets = "timeout: no complete answer within 30s (`fetch.timeout`)";
        attack(name, Script::drip(start, again), gets)
    };
    let open = head(200, "").trim_end().to_owned() + "\r\n";
    let attacks = vec![
        drip("silence", "", ""),
        drip("a status line, a byte a second", "HTTP/1.1 200 ", "x"),
        drip("headers, one a second", &open, "x: y\r\n"),
        drip("a header, a byte a second", &format!("{open}x: "), "y"),
        drip("interim answers, one a second", "", "HTTP/1.1 100 Continue\r\n\r\n"),
        drip("a body without length, a byte a second", &head(200, ""), "x"),
        drip("a body of a length, a byte a second", &head(200, "content-length: 60000"), "x"),
        drip("chunks, one a second", &head(200, "transfer-encoding: chunked"), "1\r\nx\r\n"),
        drip("a chunk's size, a digit a second", &head(200, "transfer-encoding: chunked"), "0"),
        drip("a body that stops", &head(200, "content-length: 10"), ""),
    ];
    try_all("Drips", &settings(), attacks).await;
}

/// These servers are never idle, so a paused clock would not advance.
#[tokio::test]
async fn a_flood_of_nothing_ends_when_its_time_is_up() {
    let flood = |name, start: &str, again: &str| -> Attack {
        let gets = "timeout: no complete answer within 300ms (`fetch.timeout`)";
        attack(name, Script::endless(start, again.repeat(1000)), gets)
    };
    let settings = Fetch { timeout: Duration::from_millis(300), ..settings() };
    let attacks = vec![
        flood("interim answers without end", "", "HTTP/1.1 100 Continue\r\n\r\n"),
        flood("a chunk's size with zeros without end", &head(200, "transfer-encoding: chunked"), "0"),
    ];
    try_all("Floods", &settings, attacks).await;
}
