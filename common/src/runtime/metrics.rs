//! Metrics of a process, under the names that Prometheus gets (<https://prometheus.io/docs/practices/naming/>). Without
//! `[metrics] listen` nothing is recorded, and a call costs next to nothing.
//!
//! Labels have few values, none of them taken from a page, so a crawl of a million hosts creates no more series than one of
//! ten. Kinds of items may be a program's to name: the first thousand have their names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use parking_lot::Mutex;

use crate::frontier::outcome::{Class, Terminal};
use crate::ports::Browsers;

const URLS_ENDED: &str = "trawl_urls_ended_total";
const URLS_RETRIED: &str = "trawl_urls_retried_total";
const URLS_PARKED: &str = "trawl_urls_parked_total";
const URLS_IN_FLIGHT: &str = "trawl_urls_in_flight";
const ITEMS: &str = "trawl_items_total";
const SESSIONS: &str = "trawl_sessions";
const LOGINS: &str = "trawl_logins_total";
const FETCHES: &str = "trawl_fetches_total";
const FETCH_SECONDS: &str = "trawl_fetch_duration_seconds";
const PAGE_BYTES: &str = "trawl_page_size_bytes";
const SLOT_WAIT: &str = "trawl_slot_wait_seconds";
const QUEUE_WAIT: &str = "trawl_queue_wait_seconds";
const CACHE_LOOKUPS: &str = "trawl_cache_lookups_total";
const URLS_ADMITTED: &str = "trawl_urls_admitted_total";
const PUBLISHED: &str = "trawl_messages_confirmed_total";
const ACKED: &str = "trawl_messages_acked_total";
const CONNECTED: &str = "trawl_broker_connections_total";
const FAILING: &str = "trawl_failing";
const BROWSERS: &str = "trawl_browsers";
const BROWSER_PAGES: &str = "trawl_browser_pages";
const BROWSER_MEMORY: &str = "trawl_browser_memory_bytes";
const BROWSER_CPU: &str = "trawl_browser_cpu_seconds_total";
const PAGES_RENDERED: &str = "trawl_pages_rendered_total";
const BROWSERS_DIED: &str = "trawl_browsers_died_total";
const BUILD: &str = "trawl_build_info";

/// Status classes; `none` is for requests without a response.
const STATUSES: [&str; 6] = ["2xx", "3xx", "4xx", "5xx", "other", "none"];
/// Label values for the result of a cache lookup.
const HIT: &str = "hit";
const MISS: &str = "miss";

/// Maximum number of names of kinds of items.
const MAX_KINDS: usize = 1000;

/// The kinds of items that have their names.
static ITEM_KINDS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Buckets of histograms of times, in seconds: a page takes from some milliseconds to a minute.
pub const SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0];

/// Buckets of histograms of sizes, in bytes.
pub const BYTES: &[f64] =
    &[1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0, 67_108_864.0];

/// Describes each metric, and records that this process runs. Called once, after a recorder was installed.
pub fn describe(version: &'static str) {
    describe_counter!(URLS_ENDED, "URLs that reached their final state, by what that is");
    describe_counter!(URLS_RETRIED, "Failed attempts after which a URL is tried again, by class of error");
    describe_counter!(URLS_PARKED, "URLs put aside until their host may be asked");
    describe_gauge!(URLS_IN_FLIGHT, "URLs in the hands of this worker");
    describe_counter!(ITEMS, "Items that pages and tasks gave, by spider and kind");
    describe_gauge!(
        SESSIONS,
        "Sessions of spiders that this worker uses, by whose they are and whether they are ready"
    );
    describe_counter!(LOGINS, "Log-ins that ended, by spider and outcome");
    describe_counter!(FETCHES, "Requests to hosts that ended, by class of status, or none");
    describe_histogram!(FETCH_SECONDS, Unit::Seconds, "How long a request to a host took, its body included");
    describe_histogram!(PAGE_BYTES, Unit::Bytes, "Sizes of the bodies of pages, decoded");
    describe_histogram!(
        SLOT_WAIT,
        Unit::Seconds,
        "How long URLs wait for the slot that their host gave them"
    );
    describe_histogram!(
        QUEUE_WAIT,
        Unit::Seconds,
        "How long URLs waited for a worker since they were admitted, or since the time that they were put aside for"
    );
    describe_counter!(CACHE_LOOKUPS, "Looks into the response cache, by result");
    describe_counter!(URLS_ADMITTED, "URLs that were new and taken into a crawl by a producer");
    describe_counter!(PUBLISHED, "Messages that RabbitMQ confirmed");
    describe_counter!(ACKED, "Messages acknowledged to RabbitMQ");
    describe_counter!(CONNECTED, "Connections opened to RabbitMQ");
    describe_gauge!(FAILING, "1 while something keeps this process from its work");
    describe_gauge!(BROWSERS, "Browsers of this worker that run");
    describe_gauge!(BROWSER_PAGES, "Pages in browsers, and pages that wait for a place in one");
    describe_gauge!(
        BROWSER_MEMORY,
        Unit::Bytes,
        "Memory of browsers, in which what processes share counts once"
    );
    describe_counter!(BROWSER_CPU, Unit::Seconds, "Processor time of browsers");
    describe_counter!(PAGES_RENDERED, "Pages that browsers have rendered");
    describe_counter!(BROWSERS_DIED, "Browsers that have died");
    describe_gauge!(BUILD, "1, with the version of this program");
    gauge!(BUILD, "version" => version).set(1);
    begin();
    failing(false);
}

/// Initializes counters to 0: rates are right from the first event on, and dashboards have no gaps.
fn begin() {
    for terminal in Terminal::ALL {
        counter!(URLS_ENDED, "outcome" => terminal.as_str()).absolute(0);
    }
    for class in Class::ALL {
        counter!(URLS_RETRIED, "class" => class.as_str()).absolute(0);
    }
    for status in STATUSES {
        counter!(FETCHES, "status" => status).absolute(0);
    }
    for result in [HIT, MISS] {
        counter!(CACHE_LOOKUPS, "result" => result).absolute(0);
    }
    for name in [URLS_PARKED, URLS_ADMITTED, PUBLISHED, ACKED, CONNECTED] {
        counter!(name).absolute(0);
    }
    for name in [FETCH_SECONDS, PAGE_BYTES, SLOT_WAIT, QUEUE_WAIT] {
        // Naming a histogram registers it.
        let _ = histogram!(name);
    }
    in_flight(0);
    browsers(&Browsers::default());
}

/// Records that a URL reached its final state.
pub fn url_ended(terminal: Terminal) {
    counter!(URLS_ENDED, "outcome" => terminal.as_str()).increment(1);
}

/// Records the number of items of each kind that a page or a task yielded.
pub fn items(spider: &str, by_kind: &BTreeMap<String, u64>) {
    let mut names = ITEM_KINDS.lock();
    for (kind, number) in by_kind {
        if names.len() < MAX_KINDS && !names.contains(kind) {
            names.insert(kind.clone());
        }
        let kind = if names.contains(kind) { kind } else { "*" };
        counter!(ITEMS, "spider" => spider.to_owned(), "kind" => kind.to_owned()).increment(*number);
    }
}

/// Records whether a session is ready, or its URLs wait for a log-in.
pub fn session(owner: &str, is_ready: bool) {
    for (state, is_so) in [("ready", is_ready), ("waiting", !is_ready)] {
        gauge!(SESSIONS, "owner" => owner.to_owned(), "state" => state).set(u8::from(is_so));
    }
}

/// Records that a log-in of a spider ended.
pub fn logged_in(spider: &str, is_done: bool) {
    let outcome = if is_done { "done" } else { "failed" };
    counter!(LOGINS, "spider" => spider.to_owned(), "outcome" => outcome).increment(1);
}

/// Records that an attempt failed and is retried.
pub fn url_retried(class: Class) {
    counter!(URLS_RETRIED, "class" => class.as_str()).increment(1);
}

/// Records that a URL was parked.
pub fn url_parked() {
    counter!(URLS_PARKED).increment(1);
}

/// Records the number of URLs that a worker holds.
pub fn in_flight(urls: usize) {
    gauge!(URLS_IN_FLIGHT).set(urls as f64);
}

/// Records the browsers of a worker.
pub fn browsers(browsers: &Browsers) {
    let Browsers { running, pages, waiting, memory, cpu_seconds, rendered, died } = *browsers;
    gauge!(BROWSERS).set(running as f64);
    gauge!(BROWSER_PAGES, "state" => "rendering").set(pages as f64);
    gauge!(BROWSER_PAGES, "state" => "waiting").set(waiting as f64);
    gauge!(BROWSER_MEMORY).set(memory as f64);
    for (name, number) in [(BROWSER_CPU, cpu_seconds), (PAGES_RENDERED, rendered), (BROWSERS_DIED, died)] {
        counter!(name).absolute(number);
    }
}

/// Records the duration of a request to a host, with its status if it was answered.
pub fn fetched(status: Option<u16>, took: Duration) {
    counter!(FETCHES, "status" => status_class(status)).increment(1);
    histogram!(FETCH_SECONDS).record(took);
}

fn status_class(status: Option<u16>) -> &'static str {
    match status.map(|status| status / 100) {
        Some(2) => "2xx",
        Some(3) => "3xx",
        Some(4) => "4xx",
        Some(5) => "5xx",
        Some(_) => "other",
        None => "none",
    }
}

/// Records the size of a page's body in bytes.
pub fn page_read(bytes: u64) {
    histogram!(PAGE_BYTES).record(bytes as f64);
}

/// Records the time until a slot that a host gave.
pub fn slot_given(wait: Duration) {
    histogram!(SLOT_WAIT).record(wait);
}

/// Records how long a URL waited until a worker claimed it.
pub fn claimed_after(wait: Duration) {
    histogram!(QUEUE_WAIT).record(wait);
}

/// Records a lookup in the response cache.
pub fn cache_looked_up(is_hit: bool) {
    counter!(CACHE_LOOKUPS, "result" => if is_hit { HIT } else { MISS }).increment(1);
}

/// Records the number of URLs admitted to a crawl.
pub fn urls_admitted(urls: u64) {
    counter!(URLS_ADMITTED).increment(urls);
}

/// Records that RabbitMQ confirmed a message.
pub fn confirmed() {
    counter!(PUBLISHED).increment(1);
}

/// Records the number of acknowledged messages.
pub fn acked(messages: u64) {
    counter!(ACKED).increment(messages);
}

/// Records that a connection to RabbitMQ was opened.
pub fn connected() {
    counter!(CONNECTED).increment(1);
}

/// Records whether a problem keeps the process from working.
pub fn failing(is_failing: bool) {
    gauge!(FAILING).set(if is_failing { 1.0 } else { 0.0 });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_counted_by_class() {
        let classes = [Some(200), Some(304), Some(404), Some(503), Some(101), None].map(status_class);
        assert_eq!(classes, STATUSES);
    }
}
