//! The promises of stored schedules: the instant up to which each is done, and whether it is paused.

use std::collections::BTreeMap;
use std::sync::Arc;

use trawl_common::names::SpiderRef;
use trawl_common::ports::{Result, ScheduleState, Schedules};
use trawl_common::time::UnixMs;

/// Makes a test of each promise; the fixture returns a guard and an `Arc<dyn Schedules>` that no other test uses.
#[macro_export]
macro_rules! schedules_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, schedules:
            nothing_is_known_of_a_spider_that_was_never_noted
            what_is_done_is_never_undone
            a_schedule_that_is_held_stays_so_until_it_is_resumed
            a_schedule_goes_on_with_what_comes_after_it_is_resumed
        }
    };
}

fn spider(name: &str) -> SpiderRef {
    name.parse().expect("it is written as a name")
}

/// Returns the state of one spider's schedule.
async fn state(schedules: &Arc<dyn Schedules>, name: &str) -> Result<Option<ScheduleState>> {
    Ok(schedules.list().await?.remove(&spider(name)))
}

/// Nothing is known of a spider that was never noted, not even after a resume.
pub async fn nothing_is_known_of_a_spider_that_was_never_noted(schedules: &Arc<dyn Schedules>) -> Result<()> {
    assert_eq!(schedules.list().await?, BTreeMap::new());
    schedules.resume(&spider("shop"), UnixMs(9)).await?;
    assert_eq!(schedules.list().await?, BTreeMap::new());
    Ok(())
}

/// The instant up to which a schedule is done never goes back, however late an earlier note comes.
pub async fn what_is_done_is_never_undone(schedules: &Arc<dyn Schedules>) -> Result<()> {
    const LATE: u64 = 253_402_300_799_000;
    for (until, known) in [(7, 7), (LATE, LATE), (8, LATE), (LATE, LATE)] {
        schedules.note(&spider("shop"), UnixMs(until)).await?;
        assert_eq!(state(schedules, "shop").await?, Some(ScheduleState::Done(UnixMs(known))));
    }
    schedules.note(&spider("news"), UnixMs(1)).await?;
    schedules.note(&spider("books/shop"), UnixMs(2)).await?;
    let all = [("news", 1), ("shop", LATE), ("books/shop", 2)]
        .map(|(name, until)| (spider(name), ScheduleState::Done(UnixMs(until))));
    assert_eq!(schedules.list().await?, BTreeMap::from(all));
    Ok(())
}

/// A paused schedule stays paused until it is resumed, whatever is noted of it meanwhile. One that was never noted can
/// be paused.
pub async fn a_schedule_that_is_held_stays_so_until_it_is_resumed(
    schedules: &Arc<dyn Schedules>,
) -> Result<()> {
    schedules.note(&spider("shop"), UnixMs(7)).await?;
    for name in ["shop", "new"] {
        schedules.pause(&spider(name)).await?;
        schedules.pause(&spider(name)).await?;
        schedules.note(&spider(name), UnixMs(8)).await?;
        assert_eq!(state(schedules, name).await?, Some(ScheduleState::Paused));
    }
    Ok(())
}

/// A resumed schedule goes on from then: runs missed in the pause are not made up for. Resuming it again changes
/// nothing.
pub async fn a_schedule_goes_on_with_what_comes_after_it_is_resumed(
    schedules: &Arc<dyn Schedules>,
) -> Result<()> {
    schedules.note(&spider("shop"), UnixMs(7)).await?;
    schedules.pause(&spider("shop")).await?;
    for now in [20, 30] {
        schedules.resume(&spider("shop"), UnixMs(now)).await?;
        assert_eq!(state(schedules, "shop").await?, Some(ScheduleState::Done(UnixMs(20))));
    }
    Ok(())
}
