//! The promises of records to the engine that [`carrying`](super::carrying) cannot show: calls of several workers on
//! one URL, leases, messages of strangers, and repeated calls.

mod admission;
mod ending;
mod following;
mod handling;
mod leases;
mod possession;
mod tasks;

pub use admission::*;
pub use ending::*;
pub use following::*;
pub use handling::*;
pub use leases::*;
pub use possession::*;
pub use tasks::*;

/// Creates a test for each promise of a frontier; a fixture returns a guard and an `Arc<dyn Records>`. The second one
/// creates frontiers with a short `lost_after`, some 200 ms, for promises about time.
#[macro_export]
macro_rules! frontier_conformance {
    ($fixture:path, $brief:path) => {
        $crate::promises! { $brief, frontier:
            a_url_that_nobody_keeps_is_taken_over
            a_url_that_is_kept_is_not_taken_over
            a_url_that_is_claimed_again_is_kept
            a_crawl_that_has_done_all_that_it_may_skips_the_rest
        }
        $crate::promises! { $fixture, frontier:
            confirming_again_or_too_much_changes_nothing
            a_url_published_by_hand_is_taken_once
            a_url_published_by_hand_is_taken_though_its_spider_has_seen_it
            a_url_asked_for_twice_at_once_is_a_repeat_that_is_counted
            what_a_requested_page_links_to_is_admitted_once
            a_message_of_an_unknown_crawl_begins_its_stats
            a_strangers_message_of_an_unknown_crawl_is_refused
            a_message_for_a_crawl_that_is_over_is_dropped
            a_message_of_another_crawl_of_the_spider_is_dropped
            opening_a_second_crawl_fails_and_names_who_reads_the_sources
            several_producers_feed_one_crawl_and_discovery_ends_with_the_last
            a_producer_that_died_does_not_hold_up_the_others
            a_crawl_is_incomplete_whose_sources_were_left_by_one_that_died
            the_holder_of_a_lease_may_open_again
            a_lapsed_lease_is_for_the_next_and_stale_for_the_last
            a_renewed_lease_outlives_its_first_term
            a_lapsed_lease_cannot_be_renewed
            a_lapsed_lease_is_taken_again_by_its_holder
            a_lease_is_not_taken_again_from_another_crawl_nor_for_one_that_is_over
            a_crawl_that_is_not_known_any_more_is_opened_anew
            a_lease_renewed_for_no_time_is_given_back
            a_lease_given_back_is_stale
            keeping_what_another_holds_takes_nothing
            keeping_what_is_not_in_hand_takes_nothing
            a_kept_url_that_was_never_seen_is_admitted_in_its_holders_hands
            a_kept_url_does_not_revive_a_crawl_that_is_over
            a_url_is_taken_by_one_worker
            a_url_that_ended_is_dropped
            messages_of_several_crawls_are_answered_in_order
            only_the_holder_starts
            a_parked_url_is_dropped_before_its_time_and_taken_after
            a_message_is_kept_until_that_of_the_parked_url_is_confirmed
            only_the_holder_parks
            to_park_again_is_to_have_parked
            a_released_url_is_anyones_again
            only_the_holder_releases
            a_url_ends_once
            only_the_holder_ends_a_url
            what_was_never_admitted_does_not_end
            only_the_holder_of_a_page_admits_its_links
            any_number_of_links_is_answered_in_order
            a_task_is_claimed_started_and_ended_as_a_url_is
            the_most_urgent_task_of_a_spider_is_held_in_place_of_the_one_that_is_to_start
            an_urgent_task_that_is_held_or_has_ended_comes_before_none
        }
    };
}
