//! The steps of the model test, and strategies that draw them.

use proptest::prelude::*;
use trawl_common::frontier::outcome::Terminal;

/// Number of URLs in the test.
pub(in crate::conformance) const URLS: usize = 4;

/// One call, on one of a few pages, by one of two workers.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The producer opens the crawl, or opens it again.
    Open,
    /// The producer admits `.1` pages, beginning with `.0`.
    Admit(usize, usize),
    /// The producer confirms a page.
    Confirm(usize),
    /// The producer has read all sources.
    Close,
    /// A worker receives a message.
    Claim(Who, usize),
    /// A worker extends its lease on a page, whether it holds it or not.
    Extend(Who, usize),
    /// A worker is about to fetch.
    Start(Who, usize),
    /// A worker parks a page: for long or not, for a failure or not.
    Park {
        /// The worker.
        who: Who,
        /// The page.
        url: usize,
        /// Whether its wake-up is far away.
        long: bool,
        /// Whether it failed.
        failed: bool,
    },
    /// A worker releases a page.
    Release(Who, usize),
    /// A worker gives a page its terminal state, whether it holds it or not.
    Finish(Who, usize, Terminal),
    /// An operator pauses the crawl.
    Pause,
    /// An operator resumes the crawl.
    Resume,
    /// An operator cancels the crawl.
    Cancel,
    /// An operator replays a failed page in the same crawl.
    Replay(usize),
    /// A worker sweeps.
    Sweep,
    /// Every process is killed, and new ones start with the same store.
    Crash,
}

/// One of two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The first worker.
    One,
    /// The second worker.
    Two,
}

/// Draws a worker.
pub(in crate::conformance) fn who() -> impl Strategy<Value = Who> {
    prop_oneof![Just(Who::One), Just(Who::Two)]
}

/// Draws a URL, by its number.
pub(in crate::conformance) fn url() -> impl Strategy<Value = usize> {
    0..URLS
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => Just(Step::Open),
        10 => (url(), 1..=URLS).prop_map(|(first, count)| Step::Admit(first, count)),
        5 => url().prop_map(Step::Confirm),
        5 => Just(Step::Close),
        30 => (who(), url()).prop_map(|(who, url)| Step::Claim(who, url)),
        10 => (who(), url()).prop_map(|(who, url)| Step::Extend(who, url)),
        20 => (who(), url()).prop_map(|(who, url)| Step::Start(who, url)),
        15 => (who(), url(), any::<bool>(), any::<bool>())
            .prop_map(|(who, url, long, failed)| Step::Park { who, url, long, failed }),
        10 => (who(), url()).prop_map(|(who, url)| Step::Release(who, url)),
        20 => (who(), url(), prop::sample::select(&Terminal::ALL[..]))
            .prop_map(|(who, url, terminal)| Step::Finish(who, url, terminal)),
        5 => Just(Step::Pause),
        10 => Just(Step::Resume),
        1 => Just(Step::Cancel),
        10 => url().prop_map(Step::Replay),
        5 => Just(Step::Sweep),
        5 => Just(Step::Crash),
    ]
}

/// Draws up to eighty steps. Cancellations are rare, as little happens after them.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..80)
}
