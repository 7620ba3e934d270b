//! The promises of an engine to its callers: the producer's [`CrawlSession`], the worker's
//! [`Frontier`](trawl_common::ports::Frontier), and the people who replay dead letters.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::frontier::judging::Judging;
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::ports::{
    Control, CrawlSession, Engine, Joined, Joining, NewWork, Opening, PageHistories, Result, Stats, Terms,
};
use trawl_common::settings::Settings;

use super::fixture::{Case, LONG};
use crate::stand_ins::AllRequests;

mod admitting;
mod commands;
mod dead_work;
mod ending;
mod following;
mod forgetting;
mod handling;
mod looking;
pub mod random;
mod replaying;
mod requests;
mod sessions;
mod tasks;
mod urgent;
mod worker;
mod working;

pub use admitting::*;
pub use commands::*;
pub use ending::*;
pub use following::*;
pub use forgetting::*;
pub use handling::*;
pub use looking::*;
pub use replaying::*;
pub use requests::*;
pub use sessions::*;
pub use tasks::*;
pub use urgent::*;
use worker::{Worker, done, ends, kind, number};
pub use working::*;

/// An engine with its stats and controls.
pub struct Carrier {
    /// The engine under test.
    pub engine: Arc<dyn Engine>,
    /// The stats of the engine.
    pub stats: Arc<dyn Stats>,
    /// Commands to its crawls, and its dead letters.
    pub control: Arc<dyn Control>,
    /// The engine's page history.
    pub pages: Arc<dyn PageHistories>,
    /// The engine's problems are reported here.
    pub health: Arc<Health>,
    /// Whether its workers claim URLs before they are requested.
    pub claims_ahead: bool,
}

/// Creates a test for each promise. The fixture returns an empty engine for each test.
#[macro_export]
macro_rules! carrying_conformance {
    ($carrier:path) => {
        $crate::relayed_conformance!($carrier);
        $crate::promises! { $carrier, carrying:
            a_batch_of_any_size_is_answered_in_order
            a_dead_letter_is_listed_and_claimed_again_when_it_is_replayed
            a_draining_worker_learns_it_with_each_heartbeat_and_no_other_does
            a_finished_crawl_is_replayed_into_a_successor
            every_terminal_state_has_its_counter
            it_is_known_where_the_urls_of_a_crawl_are
            tasks_without_an_end_are_listed_with_where_they_are
            the_heartbeat_of_a_worker_is_shown
            the_list_holds_what_failed_and_what_expired
            the_state_of_a_url_is_known
            the_list_is_read_page_by_page
            at_the_limit_a_suspect_is_no_poison
            poison_is_recognised_even_at_the_limit_of_pages
            the_fifth_start_without_an_end_is_poison
            what_is_parked_before_it_starts_stays_a_suspect
            a_replayed_url_begins_anew_in_its_crawl
        }
    };
}

/// Creates a test for each promise that an engine keeps as well if calls of its workers are relayed. Left out are those
/// about the name of the worker, which the relay gives; about what people do not let a relayed worker say, such as who has
/// failed when; about more URLs at a time than it may hold; and about workers that die, which a relay notices late.
#[macro_export]
macro_rules! relayed_conformance {
    ($carrier:path) => {
        $crate::promises! { $carrier, carrying:
            what_is_admitted_is_claimed_and_a_crawl_ends_with_its_last_url
            a_url_is_admitted_once_however_often_it_is_found
            urgent_urls_are_claimed_first
            a_crawl_goes_on_with_what_its_last_page_links_to
            what_failed_comes_back_with_one_attempt_more_and_afresh
            what_is_parked_comes_back_with_all_that_was_known_of_it
            what_is_left_to_others_comes_to_another_worker
            what_a_worker_releases_is_claimed_by_another
            what_is_no_longer_a_workers_is_not_counted_for_it
            what_is_settled_twice_counts_once
            beyond_the_page_limit_urls_are_handed_out_to_be_skipped
            a_crawl_below_its_quality_is_paused_and_judged_anew_when_it_is_resumed
            what_is_no_url_is_kept_and_counted
            a_session_that_is_abandoned_leaves_its_crawl_open
            nothing_is_claimed_after_the_stop
            a_later_crawl_of_the_spider_admits_only_what_is_new
            what_one_spider_has_seen_is_new_to_another
            a_backlog_is_measured_in_urls_and_in_bytes
            a_url_is_claimed_with_everything_it_was_admitted_with
            cancelling_a_claim_loses_nothing
            the_fetches_of_a_worker_are_bounded_until_it_settles
            opening_a_second_crawl_fails_and_names_the_one_being_read
            two_spiders_are_read_side_by_side
            a_crawl_that_is_over_is_stale_to_open
            a_crawl_goes_on_where_it_was
            a_session_outlives_its_lease
            a_crawl_is_incomplete_until_what_was_left_unread_is_read
            what_sources_name_in_vain_is_counted_once
            a_crawl_is_empty_if_nothing_came_of_it
            a_crawl_keeps_the_spiders_file_that_it_was_first_opened_with
            a_successor_brings_the_text_of_the_crawl_that_it_follows
            a_url_is_seen_while_it_is_pending_and_when_it_has_ended
            where_redirects_led_counts_as_seen
            a_start_that_is_asked_for_again_counts_once
            a_retry_is_an_end_and_no_step_towards_poison
            only_a_failure_counts_as_an_attempt
            what_is_not_in_hand_is_neither_started_nor_extended
            what_is_parked_keeps_its_slot_and_its_place_in_the_waitlist_unless_it_failed
            urls_of_several_crawls_end_in_one_call
            a_crawl_ends_with_its_last_url_once_discovery_has_ended
            an_empty_crawl_ends_with_discovery
            the_clock_of_a_crawl_stops_at_its_end
            crawls_are_listed_the_newest_first
            the_stats_count_by_reason_host_and_amount
            the_stats_count_any_number_of_kinds_of_items
            the_stats_count_what_limits_left_out
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
            nothing_is_replayed_into_a_crawl_that_is_over_or_unknown
            a_crawl_that_is_over_or_unknown_takes_no_commands
            a_cancelled_crawl_has_no_url_left_and_nothing_revives_it
            the_lanes_show_how_much_waits_where
            a_url_that_is_forgotten_is_new_to_a_later_crawl_and_what_is_pending_stays
            all_that_a_spider_has_seen_is_forgotten_once_its_crawls_are_over
            a_crawl_that_is_over_is_forgotten_with_its_dead_letters_and_one_that_goes_on_is_not
            a_task_is_admitted_once_and_claimed_with_everything_it_was_submitted_with
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
            a_task_that_is_cancelled_ends_wherever_it_is_and_its_crawl_goes_on
            a_task_that_others_asked_for_is_cancelled_and_may_be_asked_for_again
            a_worker_that_runs_no_programs_takes_no_task
            the_most_urgent_task_begins_first_whichever_message_comes_first
            an_urgent_task_whose_crawl_is_paused_or_over_begins_before_none
            an_urgent_task_that_comes_back_is_done_once
            a_request_is_admitted_once_and_claimed_with_all_that_it_says
            an_urgent_request_is_claimed_before_what_is_not
            a_request_that_is_put_aside_comes_back_with_all_that_it_says
            a_request_that_is_a_dead_letter_keeps_its_body_and_is_replayed
            a_dead_request_of_a_finished_crawl_is_replayed_into_another
            requests_that_a_page_asks_for_are_admitted_before_it_ends
            a_cancelled_crawl_leaves_no_request
            a_paused_crawl_does_not_end_before_it_goes_on
            a_paused_crawl_can_be_cancelled
            a_replayed_url_that_expired_has_no_deadline
            a_url_as_an_older_version_wrote_it_is_handled_listed_and_replayed_as_it_stands
            what_a_recrawl_did_not_fetch_stays_as_it_was
            more_than_it_may_do_is_never_counted_as_done
        }
    };
}

/// Creates a test for each promise of an engine whose workers share one process: a released URL is available to another
/// worker at once, and a command is carried out when it returns. The fixture is that of
/// [`crate::carrying_conformance`].
#[macro_export]
macro_rules! one_process_conformance {
    ($carrier:path) => {
        $crate::relayed_in_one_process_conformance!($carrier);
        $crate::promises! { $carrier, carrying:
            a_url_ends_once
            a_crawl_that_has_done_all_that_it_may_skips_the_rest
            a_crawl_is_incomplete_where_others_outlast_who_read_its_sources
            nothing_is_claimed_or_started_of_a_paused_crawl
            what_a_block_skipped_is_listed_replayed_and_found_by_a_later_crawl
            what_a_worker_that_is_gone_held_is_claimed_by_another
            what_another_holds_is_neither_started_nor_extended_nor_settled
            what_was_left_unread_is_made_good_after_discovery_has_ended
        }
    };
}

/// Creates a test for each of those promises that such an engine keeps as well if calls of its workers are relayed.
#[macro_export]
macro_rules! relayed_in_one_process_conformance {
    ($carrier:path) => {
        $crate::promises! { $carrier, carrying:
            two_workers_share_the_work
            several_sessions_feed_one_crawl_and_discovery_ends_with_the_last
            a_crawl_whose_session_was_dropped_ends_without_it
            a_session_that_was_dropped_may_be_followed_by_another
            what_was_never_admitted_does_not_end
            only_the_holder_of_a_page_admits_its_links
            a_crawl_that_is_held_says_why_until_it_is_resumed
            what_was_queued_goes_on_after_a_pause
            a_pause_changes_nothing_else_about_a_url
            deadlines_move_by_the_pause
            a_deadline_that_is_set_after_a_pause_stays_as_it_is
            what_is_in_hand_may_end_in_a_pause
            a_limit_that_is_reached_in_a_pause_skips_nothing_before_its_end
            to_pause_or_resume_twice_is_to_do_it_once
            who_reads_sources_for_a_cancelled_crawl_may_open_another
            a_later_crawl_finds_what_was_cancelled_and_nothing_else
            a_later_crawl_finds_what_expired_once_its_crawl_is_over
            what_was_fetched_beyond_the_limit_stays_seen
            what_is_replayed_into_a_paused_crawl_waits
        }
    };
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

    /// Lets a worker join that may hold this many tasks.
    fn join_for(&self, worker: WorkerId, tasks: u16, set: impl FnOnce(&mut Settings)) -> Worker {
        let stop = CancellationToken::new();
        let mut settings = Settings::default();
        settings.recovery.lost_after = LONG;
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

    async fn open(&self, case: &Case, terms: Terms) -> Result<Box<dyn CrawlSession>> {
        let opening = Opening {
            judging: None,
            crawl: case.crawl.clone(),
            terms,
            text: None,
            is_new: true,
            lease: LONG,
            reads: None,
        };
        self.engine.open(opening, Arc::clone(&self.health)).await
    }

    /// Opens a crawl that is judged so.
    async fn open_judged(&self, case: &Case, judging: Judging) -> Result<Box<dyn CrawlSession>> {
        let (crawl, terms, judging) = (case.crawl.clone(), Terms::default(), Some(judging));
        let opening = Opening { judging, crawl, terms, text: None, is_new: true, lease: LONG, reads: None };
        self.engine.open(opening, Arc::clone(&self.health)).await
    }

    /// Opens a crawl that may have been opened before.
    async fn reopen(&self, case: &Case, lease: Duration) -> Result<Box<dyn CrawlSession>> {
        let opening = Opening {
            judging: None,
            crawl: case.crawl.clone(),
            terms: Terms::default(),
            text: None,
            is_new: false,
            lease,
            reads: None,
        };
        self.engine.open(opening, Arc::clone(&self.health)).await
    }

    /// Opens a crawl to read the sources with this number.
    async fn read(&self, case: &Case, sources: u64, lease: Duration) -> Result<Box<dyn CrawlSession>> {
        let (crawl, terms) = (case.crawl.clone(), Terms::default());
        let opening =
            Opening { judging: None, crawl, terms, text: None, reads: Some(sources), is_new: false, lease };
        self.engine.open(opening, Arc::clone(&self.health)).await
    }

    /// Replays failed pages in their crawl. Returns how many there were.
    async fn replay(&self, case: &Case, numbers: &[usize]) -> Result<u64> {
        let keys: Vec<_> = numbers.iter().map(|number| case.key(*number)).collect();
        self.engine.replay(&case.crawl, &case.crawl, &keys).await
    }

    /// Opens a crawl of this many pages, all of which are found.
    async fn begin(&self, case: &Case, pages: usize, terms: Terms) -> Result<()> {
        let session = self.open(case, terms).await?;
        let urls: Vec<NewWork> = (0..pages).map(|number| case.new_work(number)).collect();
        assert_eq!(session.admit(&urls).await?, vec![true; pages]);
        session.close().await
    }

    /// Returns the stats of the crawl, after checking that they are consistent.
    async fn stats(&self, case: &Case) -> Result<CrawlStats> {
        let stats = self.stats.crawl_stats(&case.crawl.id).await?.expect("the crawl is known");
        assert_eq!(stats.counts.admitted, stats.pending + stats.counts.ended(), "{stats:?}");
        Ok(stats)
    }
}
