//! The sequence of faults, drawn from a seed so that a run can be repeated.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::kind::Kind;

/// One fault of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The kind of the fault.
    pub kind: Kind,
    /// Number of different pages that must have been requested before.
    pub after: usize,
    /// Delay after that.
    pub pause: Duration,
    /// A random number that chooses the victim, and the duration.
    pub pick: u64,
}

/// Draws `count` faults over `pages` pages. The kinds are dealt like cards: each comes once, in a random order, before
/// one comes again.
pub fn draw(seed: u64, count: usize, pages: usize, kinds: &[Kind]) -> Vec<Step> {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut deck = Vec::new();
    let mut steps = Vec::with_capacity(count);
    for number in 1..=count {
        if deck.is_empty() {
            deck = kinds.to_vec();
            deck.shuffle(&mut chance);
        }
        let Some(kind) = deck.pop() else { break };
        steps.push(Step {
            kind,
            after: pages * number / (count + 1),
            pause: Duration::from_millis(chance.random_range(0..400)),
            pick: chance.random(),
        });
    }
    steps
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn a_seed_draws_the_same_plan_again_and_another_seed_another() {
        let plan = draw(1, 50, 1000, Kind::VARIANTS);
        assert_eq!(plan, draw(1, 50, 1000, Kind::VARIANTS));
        assert_ne!(plan, draw(2, 50, 1000, Kind::VARIANTS));
    }

    #[test]
    fn every_kind_comes_before_one_comes_again_and_all_come_before_the_last_page() {
        let plan = draw(7, 2 * Kind::VARIANTS.len(), 1000, Kind::VARIANTS);
        for deal in plan.chunks(Kind::VARIANTS.len()) {
            let mut kinds: Vec<Kind> = deal.iter().map(|step| step.kind).collect();
            kinds.sort();
            assert_eq!(kinds, Kind::VARIANTS);
        }
        assert!(plan.is_sorted_by_key(|step| step.after));
        assert!(plan.iter().all(|step| step.after < 1000));
    }
}
