//! A crawl's books as people and programs read them.

use anstream::println;
use anstyle::{AnsiColor, Style};
use trawl_cli::count;
use trawl_common::crawl::{Books, CrawlState};
use trawl_common::exit::Exit;

/// One JSON object on one line.
pub(crate) fn print_json(books: &Books) {
    // Books are plain numbers and names: they always serialise.
    if let Ok(line) = serde_json::to_string(books) {
        println!("{line}");
    }
}

/// The header of a table of crawls.
pub(crate) fn print_header() {
    let dim = Style::new().dimmed();
    println!(
        "{dim}{:<24} {:<12} {:<10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>10} {:>9}{dim:#}",
        "crawl", "spider", "status", "admitted", "done", "failed", "skipped", "expired", "pending", "pages/s"
    );
}

/// One crawl as a row of the table.
pub(crate) fn print_row(books: &Books) {
    let counts = &books.counts;
    let failed = if counts.failed > 0 { coloured(AnsiColor::Red) } else { Style::new() };
    let status = match books.status {
        CrawlState::Finished => coloured(AnsiColor::Green),
        CrawlState::Running => coloured(AnsiColor::Cyan),
        CrawlState::Pending | CrawlState::Paused | CrawlState::Cancelled => coloured(AnsiColor::Yellow),
    };
    println!(
        "{:<24} {:<12} {status}{:<10}{status:#} {:>10} {:>10} {failed}{:>8}{failed:#} {:>8} {:>8} {:>10} {:>9.1}",
        books.crawl.as_str(),
        books.spider.as_str(),
        books.status.as_str(),
        count(counts.admitted),
        count(counts.done),
        count(counts.failed),
        count(counts.skipped),
        count(counts.expired),
        count(books.pending),
        pages_per_second(books),
    );
}

/// Pages a second over the whole crawl.
pub(crate) fn pages_per_second(books: &Books) -> f64 {
    books.counts.done as f64 / books.seconds.max(0.001)
}

/// The exit code that tells how a crawl ended.
pub(crate) fn exit(books: &Books) -> Exit {
    match books.status {
        CrawlState::Cancelled => Exit::Cancelled,
        _ if books.counts.failed > 0 => Exit::FailedUrls,
        _ => Exit::Ok,
    }
}

fn coloured(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(colour.into()))
}
