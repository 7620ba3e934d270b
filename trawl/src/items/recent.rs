//! The ids of the last items, for recognising items that were stored twice.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// The number of ids to remember: some 15 MB.
const MAX_IDS: usize = 100_000;

/// The last ids.
#[derive(Default)]
pub(super) struct Recent {
    ids: HashSet<Arc<str>>,
    order: VecDeque<Arc<str>>,
}

impl Recent {
    /// Remembers `id`. Returns whether it was not among the last ones.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        if self.ids.contains(id) {
            return false;
        }
        if self.order.len() == MAX_IDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        let id: Arc<str> = id.into();
        self.order.push_back(Arc::clone(&id));
        self.ids.insert(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ids_are_remembered_and_no_more() {
        let mut recent = Recent::default();
        for id in 0..MAX_IDS {
            assert!(recent.is_new(&id.to_string()));
        }
        assert!(!recent.is_new("0"));
        assert!(recent.is_new("one more"));
        assert!(recent.is_new("0") && !recent.is_new("2"));
        assert_eq!((recent.ids.len(), recent.order.len()), (MAX_IDS, MAX_IDS));
    }
}
