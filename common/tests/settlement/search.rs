//! Every world that can be reached, nearest first.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use crate::steps::{Broken, Model, Step};
use crate::world::World;

/// Number of steps in which everything has ended when nothing goes wrong any more.
const LONG: usize = 500;

/// The result of a search.
pub(crate) struct Found {
    /// Number of different worlds.
    pub(crate) worlds: usize,
    /// Whether these are all of them.
    pub(crate) is_complete: bool,
    /// A promise that breaks, and the steps that lead there.
    pub(crate) broken: Option<(Broken, String)>,
}

/// Looks at up to `most` worlds that can be reached from this one.
pub(crate) fn search(model: &Model, first: World, most: usize) -> Found {
    let mut from: HashMap<u64, u64, Plain> = HashMap::default();
    let mut ends: HashSet<u64, Plain> = HashSet::default();
    let mut queue = VecDeque::from([first]);
    from.insert(fingerprint(&first), 0);
    let mut broken = None;
    while let Some(world) = queue.pop_front() {
        let here = fingerprint(&world);
        if broken.is_none() && !can_end(model, world, &mut ends) {
            broken = Some((Broken::NeverEnds, here, None));
        }
        if broken.is_some() || from.len() >= most {
            break;
        }
        model.steps(&world, |step, after| {
            let there = fingerprint(&after);
            if let Some(promise) = model.breaks(&world, step, &after).or_else(|| model.broken(&after)) {
                broken.get_or_insert((promise, here, Some((step, after))));
            }
            if let Entry::Vacant(place) = from.entry(there) {
                place.insert(here);
                queue.push_back(after);
            }
        });
    }
    let broken = broken.map(|(promise, at, last)| (promise, trace(model, first, &from, at, last)));
    Found { worlds: from.len(), is_complete: queue.is_empty() && broken.is_none(), broken }
}

/// Whether it ends when nothing goes wrong any more. `ends` are worlds of which that is known.
fn can_end(model: &Model, mut world: World, ends: &mut HashSet<u64, Plain>) -> bool {
    let mut path = Vec::new();
    for _ in 0..LONG {
        let here = fingerprint(&world);
        if !ends.insert(here) {
            if !path.contains(&here) {
                return true;
            }
            // It goes round in a circle.
            break;
        }
        path.push(here);
        match model.goes_on(&world) {
            Some(after) => world = after,
            None => return true,
        }
    }
    path.iter().for_each(|here| {
        ends.remove(here);
    });
    false
}

/// Returns the steps to a world, a line each.
fn trace(
    model: &Model,
    first: World,
    from: &HashMap<u64, u64, Plain>,
    mut at: u64,
    last: Option<(Step, World)>,
) -> String {
    let mut path = vec![at];
    while let Some(&before) = from.get(&at).filter(|before| **before != 0) {
        path.push(before);
        at = before;
    }
    let (mut world, mut text) = (first, String::new());
    let mut tell = |step: Step, world: &World| {
        let _ = writeln!(text, "{:3} {step:24} {:?}", world.now, world.stored);
    };
    for there in path.iter().rev().skip(1) {
        let mut taken = None;
        model.steps(&world, |step, after| {
            if fingerprint(&after) == *there {
                taken.get_or_insert((step, after));
            }
        });
        let (step, after) = taken.expect("it was reached so");
        tell(step, &after);
        world = after;
    }
    if let Some((step, after)) = last {
        tell(step, &after);
    }
    text
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    // Zero stands for none.
    hasher.finish().max(1)
}

/// Takes fingerprints as they are.
type Plain = BuildHasherDefault<Fingerprint>;

#[derive(Default)]
pub(crate) struct Fingerprint(u64);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("fingerprints are numbers")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}
