//! The promises of every frontier.

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
            a_url_is_admitted_once_however_often_it_is_named
            a_later_crawl_of_the_spider_admits_only_what_is_new
            what_one_spider_has_seen_is_new_to_another
            a_backlog_is_reported_in_urls_and_in_bytes
            a_batch_of_any_size_is_answered_in_order
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
            two_spiders_are_discovered_side_by_side
            a_lapsed_lease_is_for_the_next_and_stale_for_the_last
            a_renewed_lease_outlives_its_first_term
            a_lapsed_lease_cannot_be_renewed
            a_lapsed_lease_is_taken_again_by_its_holder
            a_lease_is_not_taken_again_from_another_crawl_nor_for_one_that_is_over
            a_crawl_that_is_not_known_any_more_is_opened_anew
            a_lease_renewed_for_no_time_is_given_back
            a_lease_given_back_is_stale
            a_crawl_that_is_over_is_stale_to_open
            a_crawl_is_continued_where_it_was
            keeping_what_another_holds_takes_nothing
            keeping_what_is_not_in_hand_takes_nothing
            a_kept_url_that_was_never_seen_is_admitted_in_its_holders_hands
            a_kept_url_does_not_revive_a_crawl_that_is_over
            a_url_is_taken_by_one_worker
            a_deadline_comes_with_the_url
            a_url_that_ended_is_dropped
            a_url_is_seen_while_it_is_pending_and_when_it_has_ended
            where_redirects_led_counts_as_seen
            messages_of_several_crawls_are_answered_in_order
            the_fifth_start_without_an_end_is_poison
            a_start_that_is_asked_for_again_counts_once
            a_retry_is_an_end_and_no_step_towards_poison
            what_is_put_aside_before_it_starts_stays_a_suspect
            only_the_holder_starts
            a_parked_url_is_dropped_before_its_time_and_taken_after
            only_a_failure_counts_as_an_attempt
            only_the_holder_parks
            to_park_again_is_to_have_parked
            a_released_url_is_anyones_again
            only_the_holder_releases
            a_url_ends_once
            every_terminal_state_has_its_counter
            only_the_holder_ends_a_url
            what_was_never_admitted_does_not_end
            urls_of_several_crawls_end_in_one_call
            a_crawl_ends_with_its_last_url_once_discovery_has_ended
            a_crawl_with_no_url_left_ends_with_discovery
            an_empty_crawl_ends_with_discovery
            the_clock_of_a_crawl_stops_at_its_end
            what_pages_link_to_is_admitted_once
            only_the_holder_of_a_page_admits_its_links
            any_number_of_links_is_answered_in_order
            links_to_one_host_are_taken_up_to_a_limit
            no_more_pages_begin_than_the_crawl_may_do
            more_than_it_may_do_is_never_counted_as_done
            at_the_limit_a_suspect_is_no_poison
            poison_is_reported_although_no_place_is_free
            a_recrawl_takes_each_url_once_though_all_were_seen
            what_a_recrawl_did_not_fetch_stays_as_it_was
            the_terms_of_a_crawl_are_known
            the_stats_count_by_reason_host_and_amount
            the_stats_count_any_number_of_missing_fields
            the_stats_count_what_limits_left_out
            an_unknown_crawl_has_no_stats
            crawls_are_listed_the_newest_first
            a_task_is_claimed_started_and_ended_as_a_url_is
            the_most_urgent_task_of_a_spider_is_held_in_place_of_the_one_that_is_to_start
            an_urgent_task_that_is_held_or_has_ended_comes_before_none
        }
    };
}
