//! Spiders whose files are not here, and whose tasks are accepted all the same: other workers may have the files.

use std::collections::{HashMap, HashSet};

use crate::names::SpiderName;
use parking_lot::Mutex;

/// Limit on unknown spider names from external publishers, and from the program of each spider; strangers may choose
/// the names.
pub const MAX_ELSEWHERE: usize = 64;

/// The names of such spiders, by the spider whose program named them; without one, those that external publishers
/// named.
#[derive(Default)]
pub struct Elsewhere(Mutex<HashMap<Option<SpiderName>, HashSet<SpiderName>>>);

impl Elsewhere {
    /// Returns whether tasks of a spider are accepted that `by` names.
    pub fn accept(&self, name: &SpiderName, by: Option<&SpiderName>) -> bool {
        let mut all = self.0.lock();
        let names = all.entry(by.cloned()).or_default();
        names.contains(name) || (names.len() < MAX_ELSEWHERE && names.insert(name.clone()))
    }
}
