//! What an engine promises to those who use it: the producer's [`Session`], the worker's [`Frontier`], and the people who send dead
//! letters again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::Start;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Hop, Message};
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::ports::{
    Claim, Claimed, Control, Ending, Engine, ErrorKind, Finish, Frontier, Joined, Joining, NewUrl, Opening,
    Pages, Result, Session, Settled, Settlement, Stats, Terms, Verdict,
};
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;

use super::engine::{GLANCE, LIMIT};
use super::fixture::{Case, LONG};
use crate::stand_ins::AllRequests;

mod admitting;
mod commands;
mod ending;
mod following;
mod forgetting;
mod handling;
mod looking;
pub mod random;
mod replaying;
mod sessions;
mod tasks;

pub use admitting::*;
pub use commands::*;
pub use ending::*;
pub use following::*;
pub use forgetting::*;
pub use handling::*;
pub use looking::*;
pub use replaying::*;
pub use sessions::*;
pub use tasks::*;

/// An engine, and what people see of it.
pub struct Carrier {
    /// What is tested.
    pub engine: Arc<dyn Engine>,
    /// Its stats.
    pub stats: Arc<dyn Stats>,
    /// Commands to its crawls, and its dead letters.
    pub control: Arc<dyn Control>,
    /// What it remembers of pages.
    pub pages: Arc<dyn Pages>,
    /// Where it says what it waits for.
    pub health: Arc<Health>,
    /// Whether its workers hold URLs before they are asked for.
    pub claims_ahead: bool,
}

/// Makes a test of each promise. The fixture's engine is the test's own, and nothing is in it.
#[macro_export]
macro_rules! carrying_conformance {
    ($carrier:path) => {
        $crate::promises! { $carrier, carrying:
            what_is_admitted_is_claimed_and_a_crawl_ends_with_its_last_url
            a_url_is_admitted_once_however_often_it_is_found
            urgent_urls_are_claimed_first
            a_crawl_goes_on_with_what_its_last_page_links_to
            what_failed_comes_back_with_one_attempt_more_and_afresh
            what_is_put_aside_comes_back_with_all_that_was_known_of_it
            what_is_left_to_others_comes_to_another_worker
            what_a_worker_releases_is_claimed_by_another
            what_is_no_longer_a_workers_is_not_counted_for_it
            what_is_settled_twice_counts_once
            beyond_the_page_limit_urls_are_handed_out_to_be_skipped
            a_dead_letter_is_listed_and_claimed_again_when_it_is_replayed
            what_is_no_url_is_kept_and_counted
            a_session_that_is_abandoned_leaves_its_crawl_open
            nothing_is_claimed_after_the_stop
            a_later_crawl_of_the_spider_admits_only_what_is_new
            what_one_spider_has_seen_is_new_to_another
            a_backlog_is_told_in_urls_and_in_bytes
            a_batch_of_any_size_is_answered_in_order
            a_url_is_claimed_with_all_that_was_said_of_it
            cancelling_a_claim_loses_nothing
            the_fetches_of_a_worker_are_bounded_until_it_settles
            who_opens_another_crawl_is_told_which_one_is_read
            two_spiders_are_read_side_by_side
            a_crawl_that_is_over_is_stale_to_open
            a_crawl_goes_on_where_it_was
            a_session_outlives_its_lease
            a_crawl_brings_what_its_spiders_file_said_when_it_was_opened_first
            a_successor_brings_the_text_of_the_crawl_that_it_follows
            a_url_is_seen_while_it_is_pending_and_when_it_has_ended
            where_redirects_led_counts_as_seen
            the_state_of_a_url_is_told
            a_start_that_is_asked_for_again_counts_once
            a_retry_is_an_end_and_no_step_towards_poison
            only_a_failure_counts_as_an_attempt
            what_is_not_in_hand_is_neither_started_nor_extended
            what_is_put_aside_keeps_its_slot_and_its_turn_unless_it_failed
            every_terminal_state_has_its_counter
            urls_of_several_crawls_end_in_one_call
            a_crawl_ends_with_its_last_url_once_discovery_has_ended
            an_empty_crawl_ends_with_discovery
            the_clock_of_a_crawl_stops_at_its_end
            crawls_are_listed_the_newest_first
            the_stats_tell_why_where_and_how_much
            the_stats_tell_what_limits_left_out
            what_pages_link_to_is_admitted_once
            any_number_of_links_is_admitted_in_order
            links_to_one_host_are_taken_up_to_a_limit
            no_more_pages_begin_than_the_crawl_may_do
            a_recrawl_takes_each_url_once_though_all_were_seen
            what_is_remembered_of_pages_is_there_when_they_have_ended
            the_terms_of_a_crawl_are_known
            what_is_purged_is_gone_and_stays_counted
            a_url_can_fail_and_be_replayed_again_and_again
            what_is_not_in_the_list_is_not_replayed
            a_finished_crawl_is_replayed_into_a_successor
            nothing_is_replayed_into_a_crawl_that_is_over_or_unknown
            the_list_holds_what_failed_and_what_expired
            a_crawl_that_is_over_or_unknown_takes_no_commands
            a_cancelled_crawl_has_no_url_left_and_nothing_revives_it
            a_worker_that_is_to_end_learns_it_with_each_sign_of_life_and_no_other_does
            the_lanes_tell_how_much_waits_where
            where_the_urls_of_a_crawl_are_is_told
            a_url_that_is_forgotten_is_new_to_a_later_crawl_and_what_is_pending_stays
            all_that_a_spider_has_seen_is_forgotten_once_its_crawls_are_over
            a_crawl_that_is_over_is_forgotten_with_its_dead_letters_and_one_that_goes_on_is_not
            what_a_worker_says_of_itself_is_shown
            a_task_is_admitted_once_and_claimed_with_all_that_it_says
            tasks_and_urls_are_claimed_apart
            the_task_with_the_highest_priority_is_claimed_first
            two_spiders_take_in_the_same_recipe
            a_task_that_failed_comes_back_with_its_recipe
            a_task_that_is_released_is_claimed_by_another
            a_task_that_is_a_dead_letter_keeps_its_recipe_and_is_replayed
            a_dead_task_of_a_finished_crawl_is_replayed_into_another
            what_a_task_yields_is_admitted_before_it_ends
            what_a_task_asks_for_of_another_spider_is_admitted_before_it_ends
            a_cancelled_crawl_leaves_no_task
            tasks_without_an_end_are_listed_with_where_they_are
            a_task_that_is_cancelled_ends_wherever_it_is_and_its_crawl_goes_on
            a_task_that_others_asked_for_is_cancelled_and_may_be_asked_for_again
            a_worker_that_runs_no_programs_takes_no_task
        }
    };
}

/// Makes a test of each promise that an engine keeps whose workers share one process: what one has given up is there for
/// another at once, and a command is carried out when it returns. The fixture is that of [`crate::carrying_conformance`].
#[macro_export]
macro_rules! one_process_conformance {
    ($carrier:path) => {
        $crate::promises! { $carrier, carrying:
            two_workers_share_the_work
            several_sessions_feed_one_crawl_and_discovery_ends_with_the_last
            a_crawl_whose_session_was_dropped_ends_without_it
            a_session_that_was_dropped_may_be_followed_by_another
            what_a_worker_that_is_gone_held_is_claimed_by_another
            the_fourth_start_without_an_end_is_poison
            a_url_ends_once
            what_was_never_admitted_does_not_end
            what_is_put_aside_before_it_starts_stays_a_suspect
            what_another_holds_is_neither_started_nor_extended_nor_settled
            only_the_holder_of_a_page_admits_its_links
            a_crawl_that_has_done_all_that_it_may_skips_the_rest
            more_than_it_may_do_is_never_counted_as_done
            at_the_limit_a_suspect_is_no_poison
            poison_is_told_although_no_place_is_free
            what_a_recrawl_did_not_fetch_stays_as_it_was
            the_list_is_read_page_by_page
            nothing_is_claimed_or_started_of_a_paused_crawl
            what_was_queued_goes_on_after_a_pause
            a_pause_changes_nothing_else_about_a_url
            deadlines_move_by_the_pause
            a_deadline_that_is_set_after_a_pause_stays_as_it_is
            what_is_in_hand_may_end_in_a_pause
            a_paused_crawl_does_not_end_before_it_goes_on
            a_limit_that_is_reached_in_a_pause_skips_nothing_before_its_end
            to_pause_or_resume_twice_is_to_do_it_once
            a_paused_crawl_can_be_cancelled
            who_reads_sources_for_a_cancelled_crawl_may_open_another
            a_later_crawl_finds_what_was_cancelled_and_nothing_else
            a_later_crawl_finds_what_expired_once_its_crawl_is_over
            what_was_fetched_beyond_the_limit_stays_seen
            a_replayed_url_begins_anew_in_its_crawl
            a_url_as_an_older_version_wrote_it_is_handled_listed_and_replayed_as_it_stands
            a_replayed_url_that_expired_has_no_deadline
            what_a_block_skipped_is_listed_replayed_and_found_by_a_later_crawl
            what_is_replayed_into_a_paused_crawl_waits
        }
    };
}

/// A worker that has joined.
struct Worker {
    frontier: Arc<dyn Frontier>,
    stop: CancellationToken,
    maintenance: JoinSet<()>,
}

impl Carrier {
    fn join(&self, case: &Case) -> Worker {
        self.join_as(case.worker.clone())
    }

    fn join_as(&self, worker: WorkerId) -> Worker {
        self.join_with(worker, |_| {})
    }

    fn join_with(&self, worker: WorkerId, set: impl FnOnce(&mut Settings)) -> Worker {
        self.join_for(worker, 20, set)
    }

    /// Lets a worker join that may hold so many tasks.
    fn join_for(&self, worker: WorkerId, tasks: u16, set: impl FnOnce(&mut Settings)) -> Worker {
        let stop = CancellationToken::new();
        let mut settings = Settings::default();
        settings.recovery.patience = LONG;
        set(&mut settings);
        let Joined { frontier, maintenance } = self.engine.join(Joining {
            worker,
            settings,
            health: Arc::clone(&self.health),
            requests: Arc::new(AllRequests),
            tasks,
            stop: stop.clone(),
        });
        Worker { frontier, stop, maintenance: JoinSet::from_iter([maintenance]) }
    }

    async fn open(&self, case: &Case, terms: Terms) -> Result<Box<dyn Session>> {
        let opening = Opening { crawl: case.crawl.clone(), terms, text: None, is_new: true, lease: LONG };
        self.engine.open(opening, Arc::clone(&self.health)).await
    }

    /// Opens a crawl that may be known.
    async fn reopen(&self, case: &Case, lease: Duration) -> Result<Box<dyn Session>> {
        let opening =
            Opening { crawl: case.crawl.clone(), terms: Terms::default(), text: None, is_new: false, lease };
        self.engine.open(opening, Arc::clone(&self.health)).await
    }

    /// Sends pages again that failed, in their crawl. Returns how many there were.
    async fn replay(&self, case: &Case, numbers: &[usize]) -> Result<u64> {
        let keys: Vec<_> = numbers.iter().map(|number| case.key(*number)).collect();
        self.engine.replay(&case.crawl, &case.crawl, &keys).await
    }

    /// A crawl of so many pages, all of which are found.
    async fn begin(&self, case: &Case, pages: usize, terms: Terms) -> Result<()> {
        let session = self.open(case, terms).await?;
        let urls: Vec<NewUrl> = (0..pages).map(|number| case.new_url(number)).collect();
        assert_eq!(session.admit(&urls).await?, vec![true; pages]);
        session.close().await
    }

    /// The stats of the crawl, which must agree with themselves.
    async fn stats(&self, case: &Case) -> Result<CrawlStats> {
        let stats = self.stats.crawl_stats(&case.crawl.id).await?.expect("the crawl is known");
        assert_eq!(stats.counts.admitted, stats.pending + stats.counts.ended(), "{stats:?}");
        Ok(stats)
    }
}

impl Worker {
    /// Claims until it has so many.
    async fn claim(&self, count: usize) -> Vec<Claimed> {
        let claiming = async {
            let mut all = Vec::new();
            while all.len() < count {
                all.extend(self.frontier.claim(count - all.len()).await);
            }
            all
        };
        timeout(LIMIT, claiming).await.unwrap_or_else(|_| panic!("no {count} URLs within {LIMIT:?}"))
    }

    async fn claim_one(&self) -> Claimed {
        self.claim(1).await.remove(0)
    }

    async fn claims_nothing(&self) {
        if let Ok(claimed) = timeout(GLANCE, self.frontier.claim(9)).await {
            panic!("{claimed:?}");
        }
    }

    /// Starts what it claimed, and settles it so.
    async fn settle(&self, claimed: Claimed, verdict: Verdict) -> Settled {
        let claim = Claim::of(&claimed.message);
        assert_eq!(self.frontier.start(&[claim]).await.expect("it starts"), [Start::Go]);
        self.frontier.settle(vec![Settlement { message: claimed.message, verdict }]).await
    }

    async fn finish(&self, claimed: Claimed) -> Settled {
        let verdict = done(&claimed.message, Vec::new());
        self.settle(claimed, verdict).await
    }

    /// The same with so many pages, by their numbers.
    async fn claim_pages(&self, count: usize) -> BTreeMap<usize, Claimed> {
        let pages = self.claim(count).await.into_iter().map(|claimed| (number(&claimed), claimed));
        let pages: BTreeMap<_, _> = pages.collect();
        assert_eq!(pages.len(), count, "each is claimed once");
        pages
    }

    async fn start(&self, claimed: &Claimed) -> Start {
        self.frontier.start(&[Claim::of(&claimed.message)]).await.expect("it can be asked")[0]
    }

    async fn extends(&self, claimed: &Claimed) -> bool {
        self.frontier.extend(&[&claimed.message]).await[0]
    }

    /// Settles a URL without starting it. Returns whether it has ended.
    async fn tell(&self, claimed: &Claimed, verdict: Verdict) -> bool {
        let message = claimed.message.clone();
        !self.frontier.settle(vec![Settlement { message, verdict }]).await.ended.is_empty()
    }

    async fn put_aside(&self, claimed: &Claimed, until: UnixMs, failed: bool) {
        assert!(!self.tell(claimed, Verdict::PutAside { until, failed }).await);
    }

    async fn give_back(&self, claimed: &Claimed) {
        assert!(!self.tell(claimed, Verdict::Released).await);
    }

    /// Has a URL end so. Returns whether it has.
    async fn end(&self, case: &Case, claimed: &Claimed, terminal: Terminal) -> bool {
        self.tell(claimed, ends(case.ending(number(claimed), terminal))).await
    }

    /// Claims so many pages, and has them end as done.
    async fn work_off(&self, count: usize) {
        for claimed in self.claim(count).await {
            self.finish(claimed).await;
        }
    }
}

/// The number of a page.
fn number(claimed: &Claimed) -> usize {
    let path = claimed.message.work.as_str().rsplit('/').next();
    path.and_then(|path| path.parse().ok()).expect("it is a page of the site")
}

/// An end without links.
fn ends(finish: Finish) -> Verdict {
    Verdict::Ends(Box::new(Ending::of(finish)))
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

fn done(message: &Message, links: Vec<NewUrl>) -> Verdict {
    let finish = Finish::new(Claim::of(message), Terminal::Done);
    Verdict::Ends(Box::new(Ending { links, ..Ending::of(finish) }))
}

/// In the crawl, every URL is claimed once, and the last end is the crawl's.
pub async fn what_is_admitted_is_claimed_and_a_crawl_ends_with_its_last_url(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 20, Terms::default()).await?;
    let claimed = worker.claim(20).await;
    let urls: BTreeSet<_> = claimed.iter().map(|claimed| claimed.message.key()).collect();
    assert_eq!(urls, (0..20).map(|number| case.key(number)).collect());
    assert_eq!(worker.frontier.activity().in_flight, 20);
    for (number, claimed) in claimed.into_iter().enumerate() {
        assert_eq!((claimed.attempts, claimed.starts, claimed.is_beyond_limit), (0, 0, false));
        let stats = carrier.stats(&case).await?;
        assert_eq!((stats.status, stats.pending), (CrawlState::Running, 20 - number as u64));
        assert_eq!(worker.finish(claimed).await.ended.len(), 1);
    }
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 20));
    assert_eq!(worker.frontier.activity().in_flight, 0);
    Ok(())
}

/// Within a call, over several, and by a page that links to it.
pub async fn a_url_is_admitted_once_however_often_it_is_found(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let [a, b] = [case.new_url(0), case.new_url(1)];
    assert_eq!(session.admit(&[a.clone(), b.clone(), a.clone()]).await?, [true, true, false]);
    assert_eq!(session.admit(&[b.clone(), a]).await?, [false, false]);
    session.close().await?;
    let page = worker.claim_one().await;
    let verdict = done(&page.message, vec![case.new_url(0), b]);
    worker.settle(page, verdict).await;
    let last = worker.claim_one().await;
    worker.finish(last).await;
    assert!(worker.frontier.has_seen(&case.crawl, &case.url(1)).await);
    assert!(!worker.frontier.has_seen(&case.crawl, &case.url(2)).await);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.admitted, stats.counts.done), (CrawlState::Finished, 2, 2));
    Ok(())
}

/// The priority lane before bulk, although it was admitted later.
pub async fn urgent_urls_are_claimed_first(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_url(0)]).await?;
    session.admit(&[NewUrl::seed(case.url(1), Lane::Priority)]).await?;
    session.close().await?;
    let worker = carrier.join(&case);
    // Both have arrived by then.
    while carrier.claims_ahead && worker.frontier.activity().in_flight < 2 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let claimed = worker.claim(2).await;
    assert_eq!(
        claimed.iter().map(|claimed| claimed.message.key()).collect::<Vec<_>>(),
        [case.key(1), case.key(0)]
    );
    Ok(())
}

/// They are admitted before the page ends, so that the crawl does not end between the two.
pub async fn a_crawl_goes_on_with_what_its_last_page_links_to(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let page = worker.claim_one().await;
    let link = |number| NewUrl { depth: 1, referrer: Some(case.key(0)), ..case.new_url(number) };
    let verdict = done(&page.message, vec![link(1), link(2)]);
    let settled = worker.settle(page, verdict).await;
    assert_eq!(settled.ended[0].links, [link(1), link(2)]);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.pending, stats.counts.done), (CrawlState::Running, 2, 1));
    for claimed in worker.claim(2).await {
        assert_eq!(claimed.message.depth, 1);
        worker.finish(claimed).await;
    }
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// It forgets where redirects led, and which slot it had.
pub async fn what_failed_comes_back_with_one_attempt_more_and_afresh(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    for attempts in 0..3 {
        let mut claimed = worker.claim_one().await;
        assert_eq!((claimed.attempts, &claimed.message.hop, claimed.message.slot), (attempts, &None, None));
        claimed.message.hop = Some(Hop { url: case.url(7), count: 1 });
        claimed.message.slot = Some(UnixMs::now());
        let settled = worker.settle(claimed, Verdict::PutAside { until: UnixMs::now(), failed: true }).await;
        assert_eq!(settled, Settled::default());
    }
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 1));
    Ok(())
}

/// As one that was not asked yet: no attempt more.
pub async fn what_is_put_aside_comes_back_with_all_that_was_known_of_it(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let mut claimed = worker.claim_one().await;
    let hop = Some(Hop { url: case.url(7), count: 2 });
    claimed.message.hop.clone_from(&hop);
    claimed.message.refusals = 3;
    let until = UnixMs::now().plus(Duration::from_millis(1_200));
    worker.settle(claimed, Verdict::PutAside { until, failed: false }).await;
    worker.claims_nothing().await;
    let claimed = worker.claim_one().await;
    assert_eq!((claimed.attempts, claimed.starts), (0, 0));
    assert_eq!((claimed.message.hop, claimed.message.refusals), (hop, 3));
    Ok(())
}

/// Any worker takes it at once: nothing says that it would have to wait.
pub async fn what_is_left_to_others_comes_to_another_worker(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let first = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = first.claim_one().await;
    let (message, until) = (claimed.message, UnixMs::now());
    // It is not to claim it again itself.
    first.stop.cancel();
    first.frontier.settle(vec![Settlement { message, verdict: Verdict::LeftToOthers { until } }]).await;
    first.frontier.release().await;
    let second = carrier.join_as(case.other.clone());
    let claimed = second.claim_one().await;
    assert!(claimed.message.until.is_none_or(|until| until <= UnixMs::now()));
    second.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// What it had begun, and what it had not.
pub async fn what_a_worker_releases_is_claimed_by_another(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let first = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = first.claim(2).await;
    assert_eq!(first.frontier.start(&[Claim::of(&claimed[0].message)]).await?, [Start::Go]);
    first.stop.cancel();
    first.frontier.release().await;
    assert_eq!(first.frontier.activity().in_flight, 0);
    let second = carrier.join_as(case.other.clone());
    for claimed in second.claim(3).await {
        assert_eq!(claimed.attempts, 0);
        second.finish(claimed).await;
    }
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 3));
    Ok(())
}

/// A worker that stood still for long may settle what another has ended, or has in hand.
pub async fn what_is_no_longer_a_workers_is_not_counted_for_it(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let first = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let late = first.claim_one().await;
    first.stop.cancel();
    first.frontier.release().await;
    let second = carrier.join_as(case.other.clone());
    let claimed = second.claim_one().await;

    let mut failed = Finish::new(Claim::of(&late.message), Terminal::Failed);
    failed.why = Some("timeout");
    let ending = Ending { links: vec![case.new_url(5)], ..Ending::of(failed) };
    let verdict = Verdict::Ends(Box::new(ending));
    let settled = first.frontier.settle(vec![Settlement { message: late.message, verdict }]).await;
    assert_eq!(settled, Settled::default());

    second.finish(claimed).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.admitted, stats.counts.done), (CrawlState::Finished, 1, 1));
    Ok(())
}

/// The reply to the first call may have been lost.
pub async fn what_is_settled_twice_counts_once(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    let settlement =
        Settlement { message: claimed.message.clone(), verdict: done(&claimed.message, Vec::new()) };
    assert_eq!(worker.settle(claimed, settlement.verdict.clone()).await.ended.len(), 1);
    worker.frontier.settle(vec![settlement]).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 1));
    Ok(())
}

/// They count as skipped, and the crawl ends.
pub async fn beyond_the_page_limit_urls_are_handed_out_to_be_skipped(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let terms = Terms { max_pages: std::num::NonZeroU64::new(1), ..Terms::default() };
    let session = carrier.open(&case, terms).await?;
    session.admit(&[case.new_url(0)]).await?;
    let page = worker.claim_one().await;
    assert_eq!(page.crawl.terms, terms);
    worker.finish(page).await;
    session.admit(&[case.new_url(1)]).await?;
    session.close().await?;
    let beyond = worker.claim_one().await;
    assert!(beyond.is_beyond_limit);
    let finish = Finish { why: Some("limit"), ..Finish::new(Claim::of(&beyond.message), Terminal::Skipped) };
    let ending = Ending::of(finish);
    let verdict = Verdict::Ends(Box::new(ending));
    worker.frontier.settle(vec![Settlement { message: beyond.message, verdict }]).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done, stats.counts.skipped), (CrawlState::Finished, 1, 1));
    Ok(())
}

/// In the crawl that it failed in, as long as that goes on.
pub async fn a_dead_letter_is_listed_and_claimed_again_when_it_is_replayed(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_url(0)]).await?;
    let claimed = worker.claim_one().await;
    let note = case.note(0, Terminal::Failed);
    let finish = Finish {
        why: Some("http"),
        note: Some(note.clone()),
        ..Finish::new(Claim::of(&claimed.message), Terminal::Failed)
    };
    let ending = Ending { dead_letter: Some(note.cause.clone()), ..Ending::of(finish) };
    let settled = worker.settle(claimed, Verdict::Ends(Box::new(ending))).await;
    assert_eq!(settled.ended.len(), 1);
    let failed = carrier.control.failed(&case.crawl, 0).await?;
    assert_eq!(failed.failed, [(case.key(0), note)]);

    let keys = [case.key(0), case.key(1)];
    assert_eq!(carrier.engine.replay(&case.crawl, &case.crawl, &keys).await?, 1, "the other never failed");
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.attempts, 0);
    worker.finish(claimed).await;
    session.close().await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done, stats.counts.failed), (CrawlState::Finished, 1, 0));
    Ok(())
}

/// For people to look at.
pub async fn what_is_no_url_is_kept_and_counted(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    let (text, crawl) = ("not a URL".to_owned(), case.crawl.clone());
    session.refuse(&[DeadLetter::invalid(text, crawl, "no scheme".to_owned(), None)]).await?;
    session.close().await?;
    let invalid = carrier.control.invalid(&case.crawl).await?;
    assert_eq!(invalid.len(), 1);
    let (text, note) = &invalid[0];
    assert_eq!(
        (text.as_str(), note.cause.reason, note.cause.error.as_str()),
        ("not a URL", Reason::Invalid, "no scheme")
    );
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// For a later run to go on.
pub async fn a_session_that_is_abandoned_leaves_its_crawl_open(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_url(0)]).await?;
    session.abandon().await?;
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    let opening = Opening {
        crawl: case.crawl.clone(),
        terms: Terms::default(),
        text: None,
        is_new: false,
        lease: LONG,
    };
    let session = carrier.engine.open(opening, Arc::default()).await?;
    assert_eq!(session.admit(&[case.new_url(0), case.new_url(1)]).await?, [false, true]);
    session.close().await?;
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// It is there for whoever joins later.
pub async fn nothing_is_claimed_after_the_stop(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    worker.stop.cancel();
    carrier.begin(&case, 1, Terms::default()).await?;
    worker.claims_nothing().await;
    worker.frontier.release().await;
    let second = carrier.join_as(case.other.clone());
    let claimed = second.claim_one().await;
    second.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}
