//! Extracts the items of a page within size limits.

use serde_json::Map;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::spider::PageField;

use crate::context::{Context, Within};
use crate::extraction::Extracted;
use crate::extraction::Extraction;
use crate::limits::{MAX_LINKS, MAX_PAGE_TEXT};
use crate::plan::{Field, Format, Rule, Source};
use crate::values::budget::Budget;

/// Maximum size in bytes of all fields of an item, except for the page's own: half of it is divided equally among them,
/// the rest goes to the first ones that need it.
const MAX_OWN: usize = 5 << 20;
/// Maximum size in bytes of one of the page's own fields. With the others and a list of links an item stays below 8 MB.
const MAX_PER_PAGE_FIELD: usize = 768 << 10;
/// Maximum number of items of a page.
const MAX_ITEMS: usize = 10_000;
/// Maximum size in bytes of all items of a page.
const MAX_PAGE: usize = 32 << 20;

/// Adds the items of each kind, and the names of missing required fields.
pub(crate) fn add_items<'a>(
    rules: &'a [Rule],
    context: &'a Context<'a>,
    extraction: &mut Extraction,
) -> Result<(), Failure> {
    let format = if context.json.is_some() { Format::Json } else { Format::Html };
    let mut page = Budget::new(MAX_PAGE);
    let kind = extraction.kind;
    let is_of_kind = |rule: &&Rule| rule.page.is_none() || rule.page == kind;
    for rule in rules.iter().filter(|rule| rule.is_for(format)).filter(is_of_kind) {
        // What was looked for before belongs to no item.
        extraction.looked_for.clear();
        let shares = Shares::new(&rule.fields);
        let matches: Box<dyn Iterator<Item = Within<'a>> + 'a> = match &rule.each {
            None => Box::new(std::iter::once(Within::All)),
            Some(each) => each.matches(context, Within::All),
        };
        for (number, within) in matches.enumerate() {
            context.goes_on()?;
            if extraction.items.len() >= MAX_ITEMS {
                return Err(Failure::new(Class::Parse, format_args!("more than {MAX_ITEMS} items")));
            }
            let mut fields = Map::new();
            let mut pool = MAX_OWN / 2;
            for field in &rule.fields {
                let reserved = shares.share(field);
                let share = if is_own(&field.source) { reserved + pool } else { reserved };
                let mut budget = Budget::new(share);
                if matches!(&field.source, Source::Page(page) if *page != PageField::Text) {
                    budget = budget.of_texts(MAX_PAGE_TEXT);
                }
                let value = field.value(context, within, &mut budget, extraction)?;
                fields.insert(field.name.clone(), value);
                let used = share - budget.left();
                pool -= used.saturating_sub(reserved);
                if !page.take(used) {
                    let complaint = format_args!("items of more than {MAX_PAGE} bytes together");
                    return Err(Failure::new(Class::Parse, complaint));
                }
            }
            for (name, value) in context.came.iter().flat_map(|came| &came.values) {
                if !fields.contains_key(name) {
                    fields.insert(name.clone(), value.clone());
                }
            }
            extraction.items.push(Extracted { rule: rule.name.clone(), number, fields });
        }
        extraction.end_kind(rule.name.as_deref());
    }
    Ok(())
}

/// The size limits of the fields of an item.
struct Shares {
    own: usize,
    per_page_field: usize,
    links: usize,
}

impl Shares {
    fn new(fields: &[Field]) -> Self {
        let count =
            |wanted: fn(&Source) -> bool| fields.iter().filter(|field| wanted(&field.source)).count().max(1);
        Self {
            own: MAX_OWN / 2 / count(is_own),
            per_page_field: MAX_PER_PAGE_FIELD / count(|source| !is_own(source) && !is_links(source)),
            links: MAX_LINKS / count(is_links),
        }
    }

    fn share(&self, field: &Field) -> usize {
        match &field.source {
            Source::Page(PageField::Links) => self.links,
            Source::Page(_) => self.per_page_field,
            _ => self.own,
        }
    }
}

fn is_links(source: &Source) -> bool {
    matches!(source, Source::Page(PageField::Links))
}

fn is_own(source: &Source) -> bool {
    !matches!(source, Source::Page(_))
}
