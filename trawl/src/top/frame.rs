//! Renders a view as rows of text that fit a terminal.

use std::time::Duration;

use anstyle::{AnsiColor, Style};
use trawl_cli::{count, counted};
use trawl_common::ports::WorkerState;
use trawl_common::time::UnixMs;

use super::row::{BOLD, DIM, PLAIN, Row, coloured, fixed};
use super::view::{CrawlView, HostView, View};
use crate::stats;

/// The width of a row without a terminal.
const WIDE: usize = 160;

/// The width of a bar, in characters.
const BAR: usize = 20;

/// Renders all rows, with no limit on their number.
pub(super) fn whole(view: &View) -> Vec<String> {
    let rows = rows(view, WIDE, usize::MAX);
    rows.iter().map(ToString::to_string).collect()
}

/// Renders at most `height` rows of at most `width` characters; the first shows the trouble, if there is any.
pub(super) fn fitted(view: Option<&View>, trouble: Option<&str>, width: usize, height: usize) -> Vec<String> {
    let mut all: Vec<Row> = trouble.map(|trouble| Row::default().with(red(), trouble)).into_iter().collect();
    if let Some(view) = view {
        all.extend(rows(view, width, height.saturating_sub(all.len())));
    }
    all.truncate(height);
    all.iter().map(|row| row.cut(width).to_string()).collect()
}

/// Renders the view in `height` rows. Each part gets the rows that it needs, if they fit; otherwise each gets
/// an equal share of the remaining ones.
fn rows(view: &View, width: usize, height: usize) -> Vec<Row> {
    let mut all = vec![head(view)];
    all.extend(view.notes.iter().map(|note| Row::default().with(coloured(AnsiColor::Yellow), note)));
    all.extend(lanes(view, width));
    let name = (width / 4).clamp(12, 40);
    let parts = [
        table(crawls_head(name), view.crawls.iter().map(|crawl| crawl_row(crawl, name)).collect()),
        table(workers_head(name), view.workers.iter().map(|worker| worker_row(worker, name)).collect()),
        table(hosts_head(name), view.hosts.iter().map(|host| host_row(host, name, view.at)).collect()),
    ];
    let mut rows_left = height.saturating_sub(all.len());
    for (at, part) in parts.iter().enumerate() {
        // Later parts take what they need, but no more than an equal share.
        let share = rows_left / (parts.len() - at);
        let later: usize = parts[at + 1..].iter().map(|part| part.len().min(share)).sum();
        let part = shortened(part, rows_left.saturating_sub(later));
        rows_left = rows_left.saturating_sub(part.len());
        all.extend(part);
    }
    all
}

/// Returns a blank row, a head, and `rows`; nothing if there are no rows.
fn table(head: Row, rows: Vec<Row>) -> Vec<Row> {
    if rows.is_empty() { rows } else { [Row::default(), head].into_iter().chain(rows).collect() }
}

/// Returns as many rows as fit, the last of which shows the number of hidden ones.
fn shortened(rows: &[Row], most: usize) -> Vec<Row> {
    if rows.len() <= most {
        return rows.to_vec();
    }
    // A head alone is useless.
    if most < 4 {
        return Vec::new();
    }
    let hidden = rows.len() - (most - 1);
    let more = Row::default().with(DIM, format!("and {hidden} more"));
    rows[..most - 1].iter().cloned().chain([more]).collect()
}

fn head(view: &View) -> Row {
    let running = view.crawls.iter().filter(|crawl| !crawl.stats.status.is_over()).count();
    let held: u64 = view.workers.iter().map(|worker| worker.in_flight).sum();
    Row::default()
        .with(BOLD, format!("{:.1} pages/s", view.pages_per_second))
        .with(
            PLAIN,
            format!(
                "  {}  {}",
                counted(running as u64, "crawl"),
                counted(view.workers.len() as u64, "worker")
            ),
        )
        .with(
            PLAIN,
            format!(
                "  {} in hand  {} left alone",
                counted(held, "URL"),
                counted(view.hosts.len() as u64, "host")
            ),
        )
        .with(DIM, format!("  {}", view.at))
}

/// Renders the lanes one after the other, in as many rows as they need.
fn lanes(view: &View, width: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for lane in &view.lanes {
        let age = lane.oldest.map(|age| format!(" ({})", time(age))).unwrap_or_default();
        let nobody = if lane.consumers == Some(0) && lane.messages > 0 { " nobody takes it" } else { "" };
        let piece = Row::default()
            .with(DIM, format!("{} ", lane.lane))
            .with(PLAIN, format!("{}{age}", count(lane.messages)))
            .with(red(), nobody)
            .with(PLAIN, "  ");
        match rows.last_mut() {
            Some(last) if last.width() + piece.width() <= width => *last = last.joined(piece),
            _ => rows.push(piece),
        }
    }
    rows
}

fn crawls_head(name: usize) -> Row {
    let head = format!(
        "{} {:<10} {:<bar$} {:>5} {:>19} {:>8} {:>9} {:>8}",
        fixed("spider and crawl", name),
        "status",
        "progress",
        "",
        "ended of URLs",
        "failed",
        "pages/s",
        "to go",
        bar = BAR
    );
    Row::default().with(DIM, head)
}

fn crawl_row(CrawlView { stats, pages_per_second }: &CrawlView, name: usize) -> Row {
    let (ended, admitted) = (stats.counts.ended(), stats.counts.admitted);
    let share = if admitted == 0 { 0.0 } else { ended as f64 / admitted as f64 };
    let filled = (share * BAR as f64).floor() as usize;
    let to_go = match stats.pending as f64 / pages_per_second {
        seconds if stats.pending > 0 && seconds.is_finite() => {
            time(Duration::from_secs_f64(seconds.min(1e9)))
        }
        _ => "-".to_owned(),
    };
    let failed = if stats.counts.failed > 0 { red() } else { PLAIN };
    Row::default()
        .with(PLAIN, format!("{} ", fixed(&format!("{} {}", stats.spider, stats.crawl), name)))
        .with(stats::status_style(stats), format!("{:<10} ", stats::status_word(stats)))
        .with(coloured(AnsiColor::Green), "\u{2588}".repeat(filled.min(BAR)))
        .with(DIM, "\u{2591}".repeat(BAR - filled.min(BAR)))
        .with(
            PLAIN,
            format!(
                " {:>3} % {:>19} ",
                (share * 100.0).floor(),
                format!("{} of {}", count(ended), count(admitted))
            ),
        )
        .with(failed, format!("{:>8}", count(stats.counts.failed)))
        .with(PLAIN, format!(" {pages_per_second:>9.1} {to_go:>8}"))
}

fn workers_head(name: usize) -> Row {
    let head = format!(
        "{} {:>8} {:>9} {:>9} {:>9}  health",
        fixed("worker", name),
        "in hand",
        "pages/s",
        "p50",
        "p95"
    );
    Row::default().with(DIM, head)
}

fn worker_row(worker: &WorkerState, name: usize) -> Row {
    let ms = |of: fn(&trawl_common::ports::Latency) -> u64| {
        worker.latency.as_ref().map_or("-".to_owned(), |latency| format!("{} ms", of(latency)))
    };
    let draining = if worker.draining { "is to end; " } else { "" };
    Row::default()
        .with(PLAIN, format!("{} {:>8}", fixed(worker.worker.as_str(), name), count(worker.in_flight)))
        .with(PLAIN, format!(" {:>9.1}", worker.pages_per_second))
        .with(
            PLAIN,
            format!(" {:>9} {:>9}  {draining}", ms(|latency| latency.p50_ms), ms(|latency| latency.p95_ms)),
        )
        .with(if worker.is_well() { PLAIN } else { red() }, worker.health.clone())
}

fn hosts_head(name: usize) -> Row {
    Row::default().with(DIM, format!("{} left alone", fixed("host", name)))
}

fn host_row(HostView { host, until, status }: &HostView, name: usize, now: UnixMs) -> Row {
    let why = match (until, status) {
        (None, _) => "blocked".to_owned(),
        (Some(until), Some(status)) => format!("for {}, as it answered {status}", time(until.wait_from(now))),
        (Some(until), None) => format!("for {}, as it redirects to a ban", time(until.wait_from(now))),
    };
    let style = if until.is_some() { coloured(AnsiColor::Yellow) } else { red() };
    Row::default().with(PLAIN, format!("{} ", fixed(host, name))).with(style, why)
}

/// Formats a time with two units, which are enough for people.
fn time(time: Duration) -> String {
    let shown = humantime::format_duration(Duration::from_secs(time.as_secs())).to_string();
    shown.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

fn red() -> Style {
    coloured(AnsiColor::Red)
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats};
    use trawl_common::names::CrawlRef;
    use trawl_common::ports::{LaneName, LaneState, Latency};

    use super::*;

    const NOW: UnixMs = UnixMs(1_700_000_000_000);

    fn view(crawls: usize, workers: usize, hosts: usize) -> View {
        let crawl = |number| {
            let crawl = CrawlRef {
                id: format!("crawl-{number}").parse().unwrap(),
                spider: "default".parse().unwrap(),
            };
            let counts = Counts { admitted: 1000, done: 500, failed: 1, ..Counts::default() };
            let stats =
                CrawlStats { counts, pending: 499, ..CrawlStats::empty(crawl, CrawlState::Running, NOW) };
            CrawlView { stats, pages_per_second: 10.0 }
        };
        let worker = |number| WorkerState {
            in_flight: 7,
            pages_per_second: 10.0,
            latency: Some(Latency { p50_ms: 120, p95_ms: 480 }),
            ..WorkerState::idle(format!("worker-{number}").parse().unwrap())
        };
        let host = |number| HostView {
            host: format!("h{number}.example"),
            until: Some(NOW.plus(Duration::from_secs(90))),
            status: Some(503),
        };
        let lane = |lane, messages| LaneState {
            lane,
            messages,
            consumers: Some(1),
            oldest: (messages > 0).then_some(Duration::from_secs(35)),
        };
        View {
            at: NOW,
            pages_per_second: 10.0,
            crawls: (0..crawls).map(crawl).collect(),
            workers: (0..workers).map(worker).collect(),
            lanes: vec![lane(LaneName::Priority, 0), lane(LaneName::Bulk, 1234)],
            hosts: (0..hosts).map(host).collect(),
            notes: Vec::new(),
        }
    }

    /// Returns the text of rows without colours.
    fn plain(rows: Vec<String>) -> Vec<String> {
        rows.into_iter().map(|row| anstream::adapter::strip_str(&row).to_string()).collect()
    }

    #[test]
    fn it_shows_each_crawl_with_a_bar_each_worker_each_lane_and_each_host_that_is_left_alone() {
        let text = plain(whole(&view(1, 1, 1))).join("\n");
        for part in [
            "10.0 pages/s",
            "bulk 1,234 (35s)",
            "crawl-0",
            "\u{2588}\u{2588}\u{2591}",
            "50 %",
            "501 of 1,000",
            "49s",
            "120 ms    480 ms  ok",
            "for 1m 30s, as it answered 503",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn no_row_is_wider_and_no_more_are_drawn_than_a_terminal_has() {
        for (width, height) in [(200, 60), (80, 24), (40, 10), (10, 3), (1, 1), (0, 0)] {
            let rows = plain(fitted(Some(&view(30, 30, 30)), Some("redis is away"), width, height));
            assert!(rows.len() <= height, "{} rows in {width}x{height}", rows.len());
            assert!(rows.iter().all(|row| row.chars().count() <= width), "{width}x{height}: {rows:?}");
        }
    }

    #[test]
    fn where_not_all_fits_each_part_says_how_much_more_there_is() {
        let rows = plain(fitted(Some(&view(30, 30, 30)), None, 120, 30));
        let more: Vec<&String> = rows.iter().filter(|row| row.starts_with("and ")).collect();
        assert_eq!((more.len(), rows.len()), (3, 30), "{rows:?}");
        let rows = plain(fitted(Some(&view(2, 2, 30)), None, 120, 30));
        let names = |what: &str| rows.iter().filter(|row| row.contains(what)).count();
        assert_eq!((names("crawl-"), names("worker-")), (2, 2), "what is short is whole: {rows:?}");
    }

    #[test]
    fn before_anything_is_known_it_says_what_it_waits_for() {
        assert_eq!(plain(fitted(None, Some("redis is away"), 80, 24)), ["redis is away"]);
    }
}
