//! What may be done, and how to draw it.

use proptest::prelude::*;
use trawl_common::frontier::outcome::Terminal;

/// How many URLs the steps are about.
pub(in crate::conformance) const URLS: usize = 4;

/// One call, on one of a few pages, by one of two workers.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// The producer opens the crawl, or opens it again.
    Open,
    /// It admits pages from `.0` on, `.1` of them.
    Admit(usize, usize),
    /// It confirms a page.
    Confirm(usize),
    /// It has read all sources.
    Close,
    /// A worker receives a message.
    Claim(Who, usize),
    /// A worker goes on holding a page, or thinks so.
    Extend(Who, usize),
    /// A worker is about to fetch.
    Start(Who, usize),
    /// A worker puts a page aside: for long or not, for a failure or not.
    Park {
        /// Which worker.
        who: Who,
        /// Which page.
        url: usize,
        /// Whether its instant is far away.
        long: bool,
        /// Whether it failed.
        failed: bool,
    },
    /// A worker gives a page back.
    Release(Who, usize),
    /// A worker gives a page its terminal state, or thinks so.
    Finish(Who, usize, Terminal),
    /// A person holds the crawl.
    Pause,
    /// A person lets it go on.
    Resume,
    /// A person ends it.
    Cancel,
    /// A person sends a page again that failed, in the same crawl.
    Replay(usize),
    /// A worker sweeps.
    Sweep,
    /// Every process is killed, and new ones begin with the same store.
    Crash,
}

/// One of two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The one.
    One,
    /// The other.
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

/// Up to eighty steps. To cancel is rare, for little happens after it.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..80)
}
