//! The order of the queue of jobs.

use std::cmp::Reverse;

use crate::priority::Priority;

/// A job's position in the queue; the smallest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition(Reverse<Priority>, u64);

impl QueuePosition {
    /// Returns the position of the job that was submitted after `number` others.
    pub fn new(priority: Priority, number: u64) -> Self {
        Self(Reverse(priority), number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(priority: f64, number: u64) -> QueuePosition {
        QueuePosition::new(priority.try_into().unwrap(), number)
    }

    #[test]
    fn the_highest_priority_comes_first_and_among_equals_the_first_asked_for() {
        let mut positions = [
            position(0.0, 1),
            position(-1.5, 2),
            position(10.0, 3),
            position(-0.0, 4),
            position(10.0, 5),
            position(1e-300, 6),
        ];
        positions.sort();
        assert_eq!(
            positions,
            [
                position(10.0, 3),
                position(10.0, 5),
                position(1e-300, 6),
                position(0.0, 1),
                position(0.0, 4),
                position(-1.5, 2)
            ]
        );
    }
}
