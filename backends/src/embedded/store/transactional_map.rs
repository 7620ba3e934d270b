//! A map whose changes can be rolled back, like those of a transaction.

use std::collections::HashMap;
use std::hash::Hash;

/// A map with the previous values of changed entries.
pub(crate) struct TransactionalMap<K, V> {
    entries: HashMap<K, V>,
    /// The value that each change replaced, the latest last.
    replaced: Vec<(K, Option<V>)>,
}

/// A point to which changes can be rolled back.
#[derive(Clone, Copy)]
pub(crate) struct Savepoint(usize);

impl<K, V> Default for TransactionalMap<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), replaced: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash, V> TransactionalMap<K, V> {
    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.entries.get(&key)
    }

    /// Iterates over the entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }

    /// Sets the value of `key`.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let replaced = self.entries.insert(key, value);
        self.replaced.push((key, replaced));
    }

    /// Removes `key`. Returns whether it had a value.
    pub(crate) fn remove(&mut self, key: K) -> bool {
        let Some(removed) = self.entries.remove(&key) else { return false };
        self.replaced.push((key, Some(removed)));
        true
    }

    /// Returns a savepoint of the current state.
    pub(crate) fn savepoint(&self) -> Savepoint {
        Savepoint(self.replaced.len())
    }

    /// Rolls back all changes since `savepoint`.
    pub(crate) fn roll_back_to(&mut self, Savepoint(savepoint): Savepoint) {
        for (key, replaced) in self.replaced.drain(savepoint..).rev() {
            match replaced {
                Some(value) => self.entries.insert(key, value),
                None => self.entries.remove(&key),
            };
        }
    }

    /// Makes all changes final.
    pub(crate) fn commit(&mut self) {
        self.replaced.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn change(map: &mut TransactionalMap<u8, u8>, changes: &[(u8, Option<u8>)]) {
        for (key, value) in changes {
            match value {
                Some(value) => map.insert(*key, *value),
                None => {
                    map.remove(*key);
                }
            }
        }
    }

    fn entries(map: &TransactionalMap<u8, u8>) -> HashMap<u8, u8> {
        map.iter().map(|(key, value)| (key, *value)).collect()
    }

    fn changes() -> impl Strategy<Value = Vec<(u8, Option<u8>)>> {
        prop::collection::vec((0..8_u8, any::<Option<u8>>()), 0..20)
    }

    proptest! {
        #[test]
        fn a_map_that_is_rolled_back_is_as_it_was(
            committed in changes(), kept in changes(), failed in changes(),
        ) {
            let mut map = TransactionalMap::default();
            change(&mut map, &committed);
            map.commit();
            let (start, before) = (map.savepoint(), entries(&map));
            change(&mut map, &kept);
            let (savepoint, between) = (map.savepoint(), entries(&map));
            change(&mut map, &failed);
            map.roll_back_to(savepoint);
            prop_assert_eq!(entries(&map), between);
            map.roll_back_to(start);
            prop_assert_eq!(entries(&map), before);
        }
    }
}
