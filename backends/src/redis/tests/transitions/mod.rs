//! The scripts do what `trawl_common::frontier` says: the same calls at the same times give the same answers and leave
//! the same records, in crawls of every kind.

mod pair;
mod row;
mod rules;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use trawl_common::frontier::outcome::{Skip, Terminal};
use trawl_common::time::UnixMs;

use self::pair::Pair;
use super::*;

const URLS: usize = 6;
/// Number of the URLs that the spider has seen in an earlier crawl.
const SEEN: usize = 2;
/// All URLs are of it.
const HOST: &str = "site.example";
/// Late enough that an instant days ago is after 1970.
const BEGINNING: UnixMs = UnixMs(1_800_000_000_000);
/// The delay of a message in a pause: eight times `recovery.lost_after`.
const PAUSE_WAIT: Duration = Duration::from_secs(480);
/// Time after which a stranger may request a URL again.
const AGAIN: Duration = Duration::from_secs(60);

/// Whether a record is a request's; the others are of URLs.
fn is_request(number: usize) -> bool {
    number >= SEEN && number % 2 == 1
}

/// The URLs that are new to a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// URLs that its spider has not seen.
    Once,
    /// URLs that the crawl has not seen itself: it is a recrawl.
    Recrawl,
    /// URLs that were not requested lately; and among links, URLs that its spider has not seen.
    Adhoc,
}

/// A crawl.
#[derive(Clone, Debug)]
struct Setup {
    kind: Kind,
    /// The form of a set of URLs that this crawl begins.
    dedup: Dedup,
    max_pages: Option<u64>,
    max_per_host: Option<u64>,
    is_recovering: bool,
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// A program of trawl's, for a URL at the start of a crawl.
    Ours,
    /// A program of trawl's, for a URL that a page links to.
    Link,
    Stranger,
}

/// A call about some URLs, by one of two workers where it is a worker's.
#[derive(Clone, Debug)]
enum Step {
    /// The producer opens the crawl again.
    Open,
    Admit(Vec<usize>),
    /// The links of a page are admitted.
    Follow(usize, usize, Vec<usize>),
    Confirm(Vec<usize>),
    /// The producer has read all sources.
    Close,
    Claim(usize, Vec<usize>, Sender),
    Extend(usize, Vec<usize>, Sender),
    Start(usize, Vec<usize>),
    /// URLs are parked for this many ms, because they failed or not.
    Park(usize, Vec<usize>, u64, bool),
    Release(usize, Vec<usize>),
    Finish(usize, Vec<usize>, Ending),
    /// For each line, how many ms ago its watermarks were set: what was delivered, and before when the queue lost what
    /// it held.
    Sweep([(u64, u64); 3]),
    Replay(usize),
    Pause,
    Resume,
    /// So that those who hold something meet a cancelled crawl before it is cleared up.
    Cancel,
    Clear,
    /// The spider's seen URLs are packed.
    Pack,
    Pass(u64),
}

/// The end of URLs.
#[derive(Clone, Copy, Debug)]
struct Ending {
    terminal: Terminal,
    why: Option<Skip>,
    /// The target of their redirects, if any.
    landed: Option<usize>,
}

/// Times around those that decide something, in ms.
fn time() -> impl Strategy<Value = u64> {
    select(&[0, 1, 4_999, 5_000, 5_001, 14_999, 15_000, 15_001, 40_000, 59_999, 60_000, 60_001, 200_000][..])
}

fn setup() -> impl Strategy<Value = Setup> {
    let kind = select(&[Kind::Once, Kind::Once, Kind::Recrawl, Kind::Adhoc][..]);
    let dedup = select(&[Dedup::Plain, Dedup::Packed][..]);
    let max_pages = select(&[None, Some(1), Some(2), Some(3)][..]);
    let max_per_host = select(&[None, None, Some(2), Some(4)][..]);
    (kind, dedup, max_pages, max_per_host, any::<bool>()).prop_map(
        |(kind, dedup, max_pages, max_per_host, is_recovering)| {
            // The ad-hoc crawl has no terms.
            let has_terms = kind != Kind::Adhoc;
            let (max_pages, max_per_host) =
                (max_pages.filter(|_| has_terms), max_per_host.filter(|_| has_terms));
            Setup { kind, dedup, max_pages, max_per_host, is_recovering }
        },
    )
}

fn ending() -> impl Strategy<Value = Ending> {
    let ends = [
        (Terminal::Done, None),
        (Terminal::Done, None),
        (Terminal::Skipped, Some(Skip::Robots)),
        (Terminal::Skipped, Some(Skip::Blocked)),
        (Terminal::Skipped, Some(Skip::Limit)),
        (Terminal::Failed, None),
        (Terminal::Expired, None),
        (Terminal::Cancelled, None),
    ];
    let urls: Vec<usize> = (0..URLS).filter(|&number| !is_request(number)).collect();
    let landed = prop::option::weighted(0.2, select(urls));
    (select(ends.to_vec()), landed).prop_map(|((terminal, why), landed)| Ending { terminal, why, landed })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let who = || 0..2_usize;
    let some = || subsequence((0..URLS).collect::<Vec<_>>(), 1..=3);
    let some_twice = || prop::collection::vec(0..URLS, 1..=4);
    let sender = || select(&[Sender::Ours, Sender::Link, Sender::Stranger][..]);
    let step = prop_oneof![
        4 => Just(Step::Open),
        4 => Just(Step::Close),
        10 => some_twice().prop_map(Step::Admit),
        8 => (who(), 0..URLS, some_twice()).prop_map(|(who, page, links)| Step::Follow(who, page, links)),
        6 => some().prop_map(Step::Confirm),
        20 => (who(), some(), sender()).prop_map(|(who, urls, sender)| Step::Claim(who, urls, sender)),
        6 => (who(), some(), sender()).prop_map(|(who, urls, sender)| Step::Extend(who, urls, sender)),
        20 => (who(), some()).prop_map(|(who, urls)| Step::Start(who, urls)),
        8 => (who(), some(), time(), any::<bool>())
            .prop_map(|(who, urls, ms, failed)| Step::Park(who, urls, ms, failed)),
        5 => (who(), some()).prop_map(|(who, urls)| Step::Release(who, urls)),
        10 => (who(), some(), ending()).prop_map(|(who, urls, ending)| Step::Finish(who, urls, ending)),
        8 => [(time(), time()), (time(), time()), (time(), time())].prop_map(Step::Sweep),
        5 => (0..URLS).prop_map(Step::Replay),
        3 => Just(Step::Pause),
        6 => Just(Step::Resume),
        1 => Just(Step::Cancel),
        2 => Just(Step::Clear),
        1 => Just(Step::Pack),
        15 => time().prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_script_leaves_what_the_rules_say(setup in setup(), steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agree(&setup, &steps));
    }
}

/// Takes the steps in both, and compares them after each.
async fn agree(setup: &Setup, steps: &[Step]) {
    let settings = Redis { url: servers::own_database().await, ..Redis::default() };
    let link = connect(&settings).await.unwrap();
    let mut pair = Pair::new(link, setup).await;
    // At the end, unfetched URLs and the crawl's own seen URLs are forgotten.
    for step in steps.iter().chain(&[Step::Cancel, Step::Clear, Step::Clear]) {
        pair.take(step).await;
        pair.agree().await;
    }
}

#[tokio::test]
async fn of_a_url_that_one_call_both_sees_and_forgets_the_last_counts() {
    for dedup in [Dedup::Plain, Dedup::Packed] {
        let setup =
            Setup { kind: Kind::Adhoc, dedup, max_pages: None, max_per_host: None, is_recovering: false };
        let blocked = |landed| Ending { terminal: Terminal::Skipped, why: Some(Skip::Blocked), landed };
        for (first, second) in [(4, 5), (5, 4)] {
            let urls = vec![first, second];
            let claim = Step::Claim(0, urls.clone(), Sender::Stranger);
            agree(&setup, &[claim, Step::Finish(0, urls, blocked(Some(4)))]).await;
        }
    }
}

#[tokio::test]
async fn a_url_that_was_let_go_in_a_pause_is_not_taken_for_parked() {
    let setup = Setup {
        kind: Kind::Once,
        dedup: Dedup::Plain,
        max_pages: None,
        max_per_host: None,
        is_recovering: false,
    };
    // It is let go until now, and was never confirmed since it was found.
    let steps = [
        Step::Open,
        Step::Admit(vec![2]),
        Step::Claim(0, vec![2], Sender::Ours),
        Step::Pause,
        Step::Start(0, vec![2]),
        Step::Park(0, vec![2], 0, false),
    ];
    agree(&setup, &steps).await;
}
