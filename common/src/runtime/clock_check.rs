//! Checks this machine's clock against that of the fleet.

use std::fmt;
use std::time::Duration;

use crate::clock;
use crate::time::UnixMs;

/// Maximum difference between a machine's clock and the fleet's before it counts as wrong.
pub const TOLERANCE: Duration = Duration::from_secs(60);

/// A machine's clock that is far from the fleet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Disagreement {
    machine: UnixMs,
    fleet: UnixMs,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, fleet } = self;
        let apart = Duration::from_secs((machine.0.abs_diff(fleet.0) + 500) / 1_000);
        let apart = humantime::format_duration(apart);
        let side = if machine > fleet { "ahead of" } else { "behind" };
        write!(
            f,
            "this machine's clock says {machine}, {apart} {side} Redis', which says {fleet}: set it right (NTP)"
        )
    }
}

/// Returns a disagreement if this machine's clock is far from the followed one.
pub fn disagreement() -> Option<Disagreement> {
    apart_from(UnixMs::now())
}

/// Returns a disagreement if this machine's clock is far from the fleet's.
pub fn apart_from(fleet: UnixMs) -> Option<Disagreement> {
    apart(UnixMs(clock::machine_ms()), fleet)
}

fn apart(machine: UnixMs, fleet: UnixMs) -> Option<Disagreement> {
    (machine.0.abs_diff(fleet.0) > TOLERANCE.as_millis() as u64).then_some(Disagreement { machine, fleet })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_both_times() {
        let fleet = UnixMs(1_700_000_000_000);
        let message = |machine| apart(UnixMs(machine), fleet).map(|apart| apart.to_string());
        assert_eq!(message(fleet.0 + 60_000), None);
        assert_eq!(message(fleet.0 - 60_000), None);
        assert_eq!(
            message(fleet.0 + 7_200_000).as_deref(),
            Some(
                "this machine's clock says 2023-11-15T00:13:20.000Z, 2h ahead of Redis', which says \
                 2023-11-14T22:13:20.000Z: set it right (NTP)"
            )
        );
        assert!(message(fleet.0 - 61_000).is_some_and(|message| message.contains("1m 1s behind Redis'")));
    }
}
