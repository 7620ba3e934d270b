//! Sitemaps, indexes and lists that try to keep the producer busy, fill its memory, or make it read forbidden sources.
//! `tests/attacks.md` lists the same rows.
//!
//! Each is read beside an honest source, which must be read completely. The tests check the URLs found, the requests
//! and the report.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod indexes;
mod server;
mod sources;
mod xml;

use std::io::Write;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytesize::ByteSize;
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_common::names::SpiderName;
use trawl_common::politeness::rate::Rate;
use trawl_common::ports::Hosts;
use trawl_common::settings::{Items, Settings};
use trawl_common::spider::Spider;
use trawl_producer::{Finding, Html, Report, RunPlan, Source, preview};
use trawl_testkit::attacks::Section;

use crate::server::{Answers, Server, body};

/// `producer.max_bytes` of all attacks.
const MAX_BYTES: usize = 4 << 20;

/// Maximum real time of an attack, however busy the machine is.
const MAX_TIME: Duration = Duration::from_secs(60);

/// The responses of an attacker, and the expected result.
struct Attack {
    name: &'static str,
    answers: Answers,
    /// Number of URLs found.
    urls: usize,
    /// Number of dead letters for invalid URLs.
    invalid: usize,
    /// Texts of the report's lines; each line contains one of them.
    problems: &'static [&'static str],
    /// Number of lines of the report.
    lines: usize,
    /// Maximum number of requests to the attacker's server.
    asked: usize,
}

/// An attack that gives the same response to every request.
fn attack(
    name: &'static str,
    bytes: impl Into<Vec<u8>>,
    urls: usize,
    invalid: usize,
    problems: &'static [&'static str],
) -> Attack {
    let bytes = bytes.into();
    serving(name, Box::new(move |_| body(bytes.clone())), urls, invalid, problems)
}

fn serving(
    name: &'static str,
    answers: Answers,
    urls: usize,
    invalid: usize,
    problems: &'static [&'static str],
) -> Attack {
    Attack { name, answers, urls, invalid, problems, lines: problems.len(), asked: 1 }
}

impl Attack {
    fn asked(self, asked: usize) -> Self {
        Self { asked, ..self }
    }

    fn lines(self, lines: usize) -> Self {
        Self { lines, ..self }
    }

    /// Whether these lines name the problem and the source.
    fn is_described_by(&self, lines: &[String]) -> bool {
        let is_clear = |line: &String| {
            let names_it =
                line.starts_with("http://") && line.len() < 3_000 && !line.contains(char::is_control);
            names_it && self.problems.iter().any(|words| line.contains(words))
        };
        let all_are_reported =
            self.problems.iter().all(|words| lines.iter().any(|line| line.contains(words)));
        let clear = lines.iter().filter(|line| is_clear(line) || line.ends_with(" more sources")).count();
        all_are_reported && (lines.len(), clear) == (self.lines, self.lines)
    }
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.fetch.allow_networks = vec!["127.0.0.1".parse().unwrap()];
    settings.politeness.rate = Rate::Unlimited;
    // A source that fails is asked once: each retry waits.
    settings.retry.max = 0;
    settings.producer.max_bytes = ByteSize(MAX_BYTES as u64);
    settings.producer.max_urls = 50_000;
    settings.producer.max_backlog = NonZeroU64::MIN;
    settings
}

/// The URLs found on the attacker's server, and the report.
struct Outcome {
    urls: usize,
    invalid: usize,
    report: Report,
}

/// Host schedules for one run.
fn hosts() -> Arc<dyn Hosts> {
    Embedded::in_memory().unwrap().hosts()
}

/// A job that reads `/map` of these servers.
fn job<'a>(servers: impl IntoIterator<Item = &'a Server>) -> RunPlan {
    // Every test of the process tries to install it; the first one succeeds.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let source = |server: &Server| format!("{}/map", server.origin).parse::<Source>().unwrap();
    let sources: Vec<_> = servers.into_iter().map(source).collect();
    let spider = Arc::new(Spider::without_file(SpiderName::default(), &Items::default()));
    RunPlan { spider, start: sources.into(), limit: None, html: Html::IsAnError, text: None, is_new: true }
}

/// Reads the attacker's source and, after it, an honest one.
async fn read_beside_an_honest_source(settings: Settings, attacker: &Server) -> Outcome {
    const HONEST: &str = "http://honest.example/";
    let honest = Server::start(Box::new(|_| body(HONEST))).await;
    let (mut urls, mut invalid, mut honest_urls) = (0, 0, 0);
    let count = |finding: &Finding| match finding {
        Finding::Page(found) if found.page.work.as_str() == HONEST => honest_urls += 1,
        Finding::Page(..) => urls += 1,
        Finding::Invalid { .. } => invalid += 1,
    };
    let report =
        preview(Arc::new(settings), hosts(), job([attacker, &honest]), &CancellationToken::new(), count)
            .await
            .unwrap();
    assert_eq!(honest_urls, 1, "the honest source was read");
    Outcome { urls, invalid, report }
}

/// Tries `attacks` one after the other.
async fn try_all(settings: Settings, attacks: Vec<Attack>) {
    let mut wrong = String::new();
    for mut attack in attacks {
        let name = attack.name;
        let server = Server::start(std::mem::replace(&mut attack.answers, Box::new(|_| body("")))).await;
        let start = Instant::now();
        let got = read_beside_an_honest_source(settings.clone(), &server).await;
        assert!(start.elapsed() < MAX_TIME, "{name}: took {:?}", start.elapsed());
        assert!(server.asked() <= attack.asked, "{name}: asked {} times", server.asked());
        let problems = &got.report.problems;
        if (got.urls, got.invalid) != (attack.urls, attack.invalid) || !attack.is_described_by(problems) {
            let problems = &problems[..problems.len().min(5)];
            wrong += &format!("{name}: {} URLs, {} invalid, {problems:#?}\n", got.urls, got.invalid);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns the text of a row about the expected result.
fn gets(attack: &Attack) -> String {
    let mut gets = match attack.urls {
        1 => "1 URL".to_owned(),
        urls => format!("{urls} URLs"),
    };
    if attack.invalid > 0 {
        gets += &format!(", {} invalid", attack.invalid);
    }
    for problem in attack.problems {
        gets += &format!("; {problem}");
    }
    gets
}

#[test]
fn the_document_lists_every_attack() {
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Sitemaps");
    for attack in
        [sources::attacks(), sources::drips(), xml::attacks(), indexes::attacks()].into_iter().flatten()
    {
        section.row(attack.name, &gets(&attack));
    }
    section.check();
}

/// Compresses `plain`.
fn gzip(plain: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// A sitemap with one page before `middle` and one after it.
fn around(middle: &str) -> String {
    format!(
        "<urlset><url><loc>http://a.example/1</loc></url>{middle}\
         <url><loc>http://a.example/2</loc></url></urlset>"
    )
}

/// A sitemap whose second of three pages has this entry.
fn entry(content: &str) -> String {
    around(&format!("<url>{content}</url>"))
}
