//! `[quality]`

use super::expect::share;
use super::given::Given;
use super::section::Section;
use crate::spider::{ItemRule, Quality, Required, Spider};

/// Number of pages that are judged together, where the file names none.
const WINDOW: u64 = 100;

/// `spider` has its items by now.
pub(super) fn quality(mut section: Section<'_>, spider: &Spider) -> Option<Quality> {
    let window = section.read("window", window).unwrap_or(WINDOW);
    let is_required = |rule: &ItemRule| rule.fields.iter().any(|(_, field)| field.required != Required::No);
    let has_required = spider.items.iter().any(is_required);
    let required = section.read("required", |given| match has_required {
        true => share(given),
        false => given.wrong("no field is `required`"),
    });
    let items_per_page = section.read("items_per_page", number);
    let failed = section.read("failed", share);
    let duplicates = section.read("duplicates", share);
    if !section.entries().any(|(name, ..)| name != "window") {
        return section.wrong("name a threshold: `required`, `items_per_page`, `failed` or `duplicates`");
    }
    section.end();
    Some(Quality { window, required, items_per_page, failed, duplicates })
}

fn window(given: &Given<'_>) -> Option<u64> {
    match given.whole(0)? {
        pages @ 10..=10_000 => Some(pages),
        _ => given.wrong("must be from 10 to 10000 pages"),
    }
}

/// A number above 0.
fn number(given: &Given<'_>) -> Option<f64> {
    let is_positive = |number: f64| number > 0.0 && number.is_finite();
    given.number("a number", is_positive, "must be more than 0")
}
