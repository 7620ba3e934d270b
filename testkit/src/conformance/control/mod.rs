//! The promises of operators' commands that [`carrying`](super::carrying) cannot show of a fleet: a command between a
//! claim and a start, and what only a sweep carries out.

mod cancelling;
mod forgetting;
mod pausing;
mod replaying;

use std::sync::Arc;

use trawl_common::ports::{Control, ErrorKind, Result};
use trawl_engine::Records;

pub use cancelling::*;
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
            to_pause_or_resume_twice_is_to_do_it_once
            other_crawls_go_on_while_one_is_paused
            nothing_revives_a_cancelled_crawl
            who_reads_sources_for_a_cancelled_crawl_may_open_another
            what_expired_is_replayed_into_a_successor
            what_is_replayed_into_a_paused_crawl_waits
            any_number_of_urls_is_forgotten_but_for_those_that_are_pending
            everything_is_forgotten_when_no_crawl_goes_on
        }
    };
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}
