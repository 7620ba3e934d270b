//! How many items a page or a task gave.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Spider;
use super::item::{Change, Item};
use crate::frontier::crawl::{CHANGES, DUPLICATES, HAS, ITEMS, LOGIN_FORM, WITH, WITHOUT, WITHOUT_ITEMS};

/// How many items a page or a task gave, for the stats of its crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemCounts {
    /// Number of items of each kind; those without one have an empty name.
    pub by_kind: BTreeMap<String, u64>,
    /// Number of items with a value in each field of which the spider [expects](super::Expect) that.
    pub with_field: BTreeMap<String, u64>,
    /// The required fields that were looked for, and whether an item has each.
    pub required: BTreeMap<String, bool>,
    /// How many were compared with those of the last crawl, and the result.
    pub compared: Option<(Change, u64)>,
    /// Number of items that equal one of another page of the crawl.
    pub duplicates: u64,
    /// Whether it is a page that gave none although its spider extracts some.
    pub is_without: bool,
    /// Whether that page has a field for a password though its spider does not log in.
    pub is_login: bool,
}

impl ItemCounts {
    /// Counts these items of a spider, and as many in a file, which have no kind.
    pub fn new(spider: &Spider, items: &[Item], in_file: u64) -> Self {
        let mut counts = Self::default();
        for item in items {
            *counts.by_kind.entry(item.item.clone().unwrap_or_default()).or_default() += 1;
            for field in spider.expect.fields.keys() {
                if item.fields.get(field).is_some_and(|value| !value.is_null()) {
                    *counts.with_field.entry(field.clone()).or_default() += 1;
                }
            }
        }
        if in_file > 0 {
            *counts.by_kind.entry(String::new()).or_default() += in_file;
        }
        counts
    }

    /// Counts the items of a page, as [`ItemCounts::new`] does.
    pub fn of_page(spider: &Spider, items: &[Item], in_file: u64) -> Self {
        let counts = Self::new(spider, items, in_file);
        let extracts = spider.items.iter().any(|rule| !rule.fields.is_empty());
        Self { is_without: extracts && counts.by_kind.is_empty(), ..counts }
    }

    /// Notes the result of comparing all of them with those of the last crawl.
    #[must_use]
    pub fn with_change(self, change: Option<Change>) -> Self {
        let compared = change.map(|change| (change, self.total()));
        Self { compared, ..self }
    }

    /// Returns the counts of a page that was not fetched again, as its items are unchanged.
    pub fn unchanged(number: u64) -> Self {
        Self { compared: Some((Change::Unchanged, number)), ..Self::default() }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.by_kind.values().sum()
    }

    /// Returns what they add to the reasons in the stats: `items:offer` 3, `change:new` 3, `has:price` 2,
    /// `with:offer.price` 1.
    pub fn reasons(&self) -> impl Iterator<Item = (String, u64)> {
        let named = |prefix: &'static str, counts: &'_ BTreeMap<String, u64>| {
            counts.iter().map(|(name, number)| (format!("{prefix}{name}"), *number)).collect::<Vec<_>>()
        };
        let without = self.is_without.then(|| (WITHOUT_ITEMS.to_owned(), 1));
        let duplicates = Some((DUPLICATES.to_owned(), self.duplicates)).filter(|(_, number)| *number > 0);
        let login = self.is_login.then(|| (LOGIN_FORM.to_owned(), 1));
        let required = self.required.iter().map(|(field, is_found)| {
            let prefix = if *is_found { WITH } else { WITHOUT };
            (format!("{prefix}{field}"), 1)
        });
        let counted = named(ITEMS, &self.by_kind).into_iter().chain(named(HAS, &self.with_field));
        let compared = self.compared.filter(|(_, number)| *number > 0);
        let compared = compared.map(|(change, number)| (format!("{CHANGES}{}", change.as_str()), number));
        counted.chain(compared).chain(duplicates).chain(without).chain(login).chain(required)
    }
}
