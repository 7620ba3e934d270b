//! Indexes that list too much, each other, or URLs that may not be requested.

use axum::response::Response;
use trawl_common::settings::Producer;

use crate::server::body;
use crate::{Attack, gzip, serving, settings, try_all};

/// Maximum number of lines of a report, including the one that counts the rest.
const MAX_LINES: usize = 1_001;

pub(crate) fn attacks() -> Vec<Attack> {
    let lead = |name, locations: &'static [&'static str], problems| {
        let answer = move |path: &str| match path {
            "/map" => index(locations.iter().map(ToString::to_string)),
            _ => body("http://a.example/"),
        };
        serving(name, Box::new(answer), 0, 0, problems)
    };
    vec![
        lead(
            "an index that names itself by seven spellings",
            &["/map", "map", "./map", "/./map", "/x/../map", "#part", "\\map#x"],
            &[],
        ),
        serving(
            "two indexes that name each other",
            Box::new(|path| match path {
                "/map" => index(["/other".to_owned()].into_iter()),
                _ => index(["/map".to_owned(), "/other".to_owned()].into_iter()),
            }),
            0,
            0,
            &[],
        )
        .asked(2),
        serving(
            "an index that names two new ones, as these do, without end",
            Box::new(|path| index([format!("{path}0"), format!("{path}1")].into_iter())),
            0,
            0,
            &["names 2 sitemaps, left out: indexes are nested deeper than 5"],
        )
        .lines(32)
        .asked(63),
        serving(
            "an index that names a new one after each redirect, without end",
            Box::new(|path| match path.strip_suffix("/to") {
                Some(start) => index([format!("{start}x")].into_iter()),
                None => crate::server::redirect(&format!("{path}/to")),
            }),
            0,
            0,
            &["indexes are nested deeper than 5"],
        )
        .asked(12),
        lead(
            "an index of files, scripts and data",
            &["file:///etc/passwd", "javascript:alert(1)", "data:,http://a.example/", "gopher://a.example/"],
            &["names 4 sitemaps that are no URLs, the first `file:///etc/passwd`"],
        ),
        lead(
            "an index of the metadata service, and a port that may not be asked",
            &["http://169.254.169.254/", "http://8.8.8.8:22/"],
            &["is not a public address", "port 22 is not among `fetch.ports`"],
        )
        .asked(1),
        lead(
            "an index of a sitemap on another host, which is asked as any other: honest",
            &["http://127.0.0.1:1/"],
            &["port 1 is not among `fetch.ports`"],
        ),
        serving(
            "an index of 300,000 sitemaps at a private address",
            Box::new(|_| index((0..300_000).map(|number| format!("http://10.0.0.1/{number}")))),
            0,
            0,
            &["names 200000 sitemaps too many, left out: 100000 are read at most", "is not a public address"],
        )
        .lines(MAX_LINES),
        serving(
            "a robots.txt of 300,000 sitemaps at a private address",
            Box::new(|_| {
                body(
                    (0..300_000)
                        .map(|number| format!("Sitemap: http://10.0.0.1/{number}\n"))
                        .collect::<String>(),
                )
            }),
            0,
            0,
            &["names 200000 sitemaps too many, left out: 100000 are read at most", "is not a public address"],
        )
        .lines(MAX_LINES),
        serving(
            "an index of 10,000 sitemaps with names of 8 KB",
            Box::new(|_| {
                index((0..10_000).map(|number| format!("http://10.0.0.1/{number}/{}", "x".repeat(8_000))))
            }),
            0,
            0,
            &["sitemaps too many, left out", "is not a public address"],
        )
        .lines(MAX_LINES),
    ]
}

fn index(locations: impl Iterator<Item = String>) -> Response {
    let entries: String = locations.map(|loc| format!("<sitemap><loc>{loc}</loc></sitemap>")).collect();
    body(gzip(format!("<sitemapindex>{entries}</sitemapindex>")))
}

/// The size limits are the defaults, so that the limit on the number ends these.
#[tokio::test]
async fn indexes_lead_to_an_end() {
    let settings = trawl_common::settings::Settings { producer: Producer::default(), ..settings() };
    try_all(settings, attacks()).await;
}
