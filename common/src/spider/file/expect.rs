//! `[expect]`

use std::collections::BTreeMap;

use super::given::Given;
use super::section::Section;
use crate::nearest::nearest;
use crate::spider::{Expect, ItemRule};

/// The fields that items have, as far as the file says.
pub(super) fn known(items: &[ItemRule]) -> Vec<String> {
    items.iter().flat_map(|rule| rule.fields.iter().map(|(name, _)| name.clone())).collect()
}

/// `known` are the fields that items have; none if a program yields them.
pub(super) fn expect(mut section: Section<'_>, known: &[String]) -> Expect {
    let (done, items) = (section.read("done", Given::positive), section.read("items", Given::positive));
    let fields = section.within("fields", |fields| {
        let share_of =
            |(name, _, given): (String, _, Given<'_>)| match known.is_empty() || known.contains(&name) {
                true => Some((name, share(&given)?)),
                false => given.wrong(format_args!(
                    "no item has this field{}",
                    nearest(&name, known.iter().map(String::as_str))
                )),
            };
        let shares = fields.entries().filter_map(share_of);
        shares.collect::<BTreeMap<_, _>>()
    });
    section.end();
    Expect { done, items, fields: fields.unwrap_or_default() }
}

/// A number from 0 to 1.
pub(super) fn share(given: &Given<'_>) -> Option<f64> {
    let is_share = |number| (0.0..=1.0).contains(&number);
    given.number("a share, from 0 to 1,", is_share, "a share is from 0 to 1, as 0.9")
}
