//! Plans the further pages of lists.

use trawl_common::spider::{self, Parameter, Spider};

use super::planner::{Inside, Planner};
use super::{Each, Field, Next};

/// The further pages of lists.
#[derive(Debug)]
pub(crate) struct Paginate {
    /// The numbers of the kinds of pages that are lists; all pages if empty.
    pub(crate) kinds: Vec<usize>,
    pub(crate) by: By,
    pub(crate) entries: Option<Each>,
    pub(crate) most: u64,
}

/// The way to the next page.
#[derive(Debug)]
pub(crate) enum By {
    Next(Next),
    Link(String),
    Count { to: Parameter, first: u64, step: u64 },
    Cursor { to: Parameter, from: Box<Field> },
}

impl Planner {
    /// Plans the pagination of a spider.
    pub(super) fn paginates(&mut self, spider: &Spider) {
        let all: Vec<Paginate> =
            spider.paginate.iter().filter_map(|one| self.paginate(spider, one)).collect();
        self.plan.paginate = all;
    }

    fn paginate(&mut self, spider: &Spider, one: &spider::Paginate) -> Option<Paginate> {
        let is_named = |kind: &spider::PageKind| one.page.iter().any(|name| name.value == kind.name.value);
        let kinds = spider.pages.iter().enumerate().filter(|(_, kind)| is_named(kind));
        let entries = one.entries.as_ref();
        let entries = entries.and_then(|entries| self.each("paginate.entries", entries, Inside::Nothing));
        let by = match &one.by {
            spider::PaginateBy::Next(next) => By::Next(self.next("paginate.next", next, Inside::Nothing)?),
            spider::PaginateBy::Link(relation) => By::Link(relation.clone()),
            spider::PaginateBy::Count { to, first, step } => {
                By::Count { to: to.clone(), first: *first, step: step.get().into() }
            }
            spider::PaginateBy::Cursor { to, from } => {
                let named = [("cursor".to_owned(), (**from).clone())];
                let mut planned = self.fields("paginate.", &named, Inside::Nothing);
                By::Cursor { to: to.clone(), from: Box::new(planned.pop()?) }
            }
        };
        let kinds = kinds.map(|(number, _)| number).collect();
        Some(Paginate { kinds, by, entries, most: u64::from(one.most.get()) })
    }
}
