//! The promises of operators' commands, together with the frontier of their engine.

mod cancelling;
mod failures;
mod forgetting;
mod pausing;
mod replaying;

use std::sync::Arc;

use trawl_common::ports::{Control, ErrorKind, Result};
use trawl_engine::Records;

pub use cancelling::*;
pub use failures::*;
pub use forgetting::*;
pub use pausing::*;
pub use replaying::*;

/// A frontier, and the commands to its crawls.
pub struct ControlPorts {
    /// The records.
    pub frontier: Arc<dyn Records>,
    /// The commands.
    pub control: Arc<dyn Control>,
}

/// Makes a test of each promise; a fixture returns a guard and a [`ControlPorts`]. The second one must have a short
/// `lost_after`, some 200 ms, and a store that no other test sweeps.
#[macro_export]
macro_rules! control_conformance {
    ($fixture:path, $brief:path) => {
        $crate::promises! { $brief, control:
            a_later_crawl_finds_what_was_cancelled_and_nothing_else
            a_later_crawl_finds_what_expired_once_its_crawl_is_over
            what_was_fetched_beyond_the_limit_stays_seen
            a_limit_that_is_reached_in_a_pause_skips_nothing_before_its_end
            what_a_block_skipped_is_listed_replayed_and_found_by_a_later_crawl
        }
        $crate::promises! { $fixture, control:
            no_fetch_begins_while_a_crawl_is_paused
            what_was_queued_goes_on_after_a_pause
            a_pause_changes_nothing_else_about_a_url
            deadlines_move_by_the_pause
            a_deadline_that_is_set_after_a_pause_stays_as_it_is
            a_url_first_met_in_a_pause_waits_for_its_end
            what_is_in_hand_may_end_in_a_pause
            a_paused_crawl_does_not_end_before_it_goes_on
            to_pause_or_resume_twice_is_to_do_it_once
            other_crawls_go_on_while_one_is_paused
            a_crawl_that_is_over_or_unknown_takes_no_commands
            each_url_of_a_cancelled_crawl_has_its_terminal_state
            a_paused_crawl_can_be_cancelled
            nothing_revives_a_cancelled_crawl
            who_reads_sources_for_a_cancelled_crawl_may_open_another
            the_list_holds_what_failed_and_what_expired
            the_list_is_read_page_by_page
            what_is_purged_is_gone_and_stays_counted
            a_replayed_url_begins_anew_in_its_crawl
            a_url_as_an_older_version_wrote_it_is_handled_listed_and_replayed_as_it_stands
            a_replayed_url_can_fail_and_be_replayed_again
            a_replayed_url_that_expired_has_no_deadline
            what_is_not_in_the_list_is_not_replayed
            a_finished_crawl_is_replayed_into_a_successor
            what_expired_is_replayed_into_a_successor
            nothing_is_replayed_into_a_crawl_that_is_over_or_unknown
            what_is_replayed_into_a_paused_crawl_waits
            any_number_of_urls_is_forgotten_but_for_those_that_are_pending
            everything_is_forgotten_when_no_crawl_goes_on
        }
    };
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}
