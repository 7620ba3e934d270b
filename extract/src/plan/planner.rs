//! Creates the plan of a spider, and finds its mistakes.

use regex::Regex;
use trawl_common::mistake::{Mistake, Sited};
use trawl_common::spider::pattern::reason;
use trawl_common::spider::{self, FieldSource, Kind, PageField, Spider, Whitespace};

use crate::document::json::Path;
use crate::document::stream::Wanted;
use crate::plan::query::Query;
use crate::plan::selector_syntax::{self, Part, Take};
use crate::plan::streamable;
use crate::plan::{Each, Field, Plan, Rule, Source};
use crate::plan::{Follow, Next};
use crate::values::convert::Convert;
use crate::values::date::{self, Written};
use crate::values::truth::Truth;

/// The place of fields, which determines their possible sources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Nothing,
    Element,
    Json,
}

/// Creates the plan of a spider, and collects its mistakes.
pub(crate) struct Planner {
    pub(crate) plan: Plan,
    pub(crate) wanted: Wanted,
    pub(crate) mistakes: Vec<Mistake>,
    streams: bool,
}

impl Planner {
    /// Creates the plan of a spider. Without `streams`, every selector needs the tree.
    pub(crate) fn new(spider: &Spider, streams: bool) -> Self {
        let mut planner =
            Self { plan: Plan::default(), wanted: Wanted::default(), mistakes: Vec::new(), streams };
        planner.plan.follow = spider.follow.as_ref().map(|follow| planner.follow(follow));
        planner.pages(spider);
        planner.paginates(spider);
        let lapsed = spider.login.as_ref().and_then(|login| login.lapsed.selector.as_ref());
        planner.plan.lapsed =
            lapsed.and_then(|lapsed| planner.each("login.lapsed.selector", lapsed, Inside::Nothing));
        planner.plan.rules = spider.items.iter().map(|rule| planner.rule(rule)).collect();
        planner
    }

    fn rule(&mut self, rule: &spider::ItemRule) -> Rule {
        let what = rule.name.as_ref().map_or("each".to_owned(), |name| format!("{name}: each"));
        let each = rule.each.as_ref().and_then(|each| self.each(&what, each, Inside::Nothing));
        let inside = match (&rule.each, &each) {
            (None, _) => Inside::Nothing,
            (Some(_), Some(Each::Json(_))) => Inside::Json,
            (Some(_), _) => Inside::Element,
        };
        Rule { name: rule.name.clone(), each, fields: self.fields("", &rule.fields, inside), page: rule.page }
    }

    pub(super) fn fields(
        &mut self,
        path: &str,
        fields: &[(String, spider::Field)],
        inside: Inside,
    ) -> Vec<Field> {
        fields
            .iter()
            .filter_map(|(name, field)| self.field(name, format!("{path}{name}"), field, inside))
            .collect()
    }

    fn field(&mut self, name: &str, path: String, field: &spider::Field, inside: Inside) -> Option<Field> {
        let what = format!("fields.{path}");
        let source = self.source(&what, &path, field, inside);
        let regex = self.regex(&what, field.regex.as_ref());
        if let Some(format) = &field.format
            && let Err(reason) = date::check(&format.value)
        {
            let complaint = format_args!("{what}: `{}` is not how a date is written: {reason}", format.value);
            self.mistakes.push(Mistake::at(format, complaint));
        }
        let format = field.format.as_ref().map(|format| format.value.clone());
        let convert = Convert {
            kind: kind(field),
            regex,
            date: Written { format, zone: field.timezone.clone() },
            decimal: field.decimal,
            truth: Truth::new(&field.truth, &field.falsehood),
            whitespace: field.whitespace,
        };
        Some(Field {
            name: name.to_owned(),
            path,
            source: source?,
            list: field.list || field.from == FieldSource::Page(PageField::Links),
            convert,
            default: field.default.clone(),
            required: field.required,
        })
    }

    fn regex(&mut self, what: &str, pattern: Option<&Sited<String>>) -> Option<Regex> {
        let pattern = pattern?;
        match Regex::new(&pattern.value) {
            Ok(regex) => Some(regex),
            Err(error) => {
                let (text, reason) = (&pattern.value, reason(&error));
                let complaint = format_args!("{what}: `{text}` is not a regular expression: {reason}");
                self.mistakes.push(Mistake::at(pattern, complaint));
                None
            }
        }
    }

    fn source(&mut self, what: &str, path: &str, field: &spider::Field, inside: Inside) -> Option<Source> {
        Some(match &field.from {
            FieldSource::Css(selector) => {
                // A selector without a place is from the settings, under this name.
                let of_settings = selector.place.is_none().then(|| format!("items.{what}"));
                let what = of_settings.as_deref().unwrap_or(what);
                let parts = self.parts(what, selector, inside)?;
                let streamed = streamable::streamed(&parts, !field.list);
                // Only a tree shows where lines begin.
                let streams = self.streams && field.whitespace != Some(Whitespace::Lines);
                match streamed.filter(|_| streams && inside == Inside::Nothing) {
                    Some(streamed) => Source::Streamed(number(&mut self.wanted.queries, streamed)),
                    None => Source::Tree(self.query(what, selector, &parts, inside)?),
                }
            }
            FieldSource::Json(json) => {
                if inside == Inside::Element {
                    return self.misplaced(what, json, "JSON", "an element");
                }
                self.plan.reads_json = true;
                Source::Json(self.path(what, json)?)
            }
            FieldSource::Header(name) => Source::Header(name.value.to_ascii_lowercase()),
            FieldSource::Meta(name) => {
                self.outside_json(what, name, inside)?;
                Source::Meta(once(&mut self.wanted.metas, name.value.trim().to_ascii_lowercase()))
            }
            FieldSource::JsonLd(kind, found) => {
                self.outside_json(what, kind, inside)?;
                let found = self.optional_path(what, found.as_ref())?;
                Source::JsonLd(once(&mut self.wanted.json_ld, kind.value.clone()), found)
            }
            FieldSource::Microdata(kind, found) => {
                self.outside_json(what, kind, inside)?;
                self.plan.needs_tree = true;
                Source::Microdata(kind.value.clone(), self.optional_path(what, found.as_ref())?)
            }
            FieldSource::Table(selector) => Source::Table(self.elements(what, selector, inside)?),
            FieldSource::Carried(name) => Source::Carried(name.clone()),
            FieldSource::Page(page) => {
                self.wanted.links |= *page == PageField::Links;
                self.plan.needs_tree |= *page == PageField::Text;
                Source::Page(*page)
            }
            FieldSource::Each(each, fields) => {
                let each = self.each(&format!("{what}.each"), each, inside);
                let inside = match &each {
                    Some(Each::Json(_)) => Inside::Json,
                    _ => Inside::Element,
                };
                let fields = self.fields(&format!("{path}."), fields, inside);
                Source::Each(each?, fields)
            }
        })
    }

    pub(super) fn each(&mut self, what: &str, each: &Sited<String>, inside: Inside) -> Option<Each> {
        if Path::is_meant(&each.value) {
            if inside == Inside::Element {
                return self.misplaced(what, each, "JSON", "an element");
            }
            self.plan.reads_json = true;
            return self.path(what, each).map(Each::Json);
        }
        self.elements(what, each, inside).map(Each::Tree)
    }

    fn follow(&mut self, follow: &spider::Follow) -> Follow {
        let mut planned = Follow::new(follow);
        self.wanted.follow = true;
        self.wanted.links |= follow.links && follow.area.is_none();
        let area = follow.area.as_ref();
        planned.area = area.and_then(|area| self.elements("follow.area", area, Inside::Nothing));
        planned.next =
            follow.next.iter().filter_map(|next| self.next("follow.next", next, Inside::Nothing)).collect();
        planned
    }

    /// Plans a source of URLs.
    pub(super) fn next(&mut self, what: &str, next: &Sited<String>, inside: Inside) -> Option<Next> {
        if Path::is_meant(&next.value) {
            if inside == Inside::Element {
                return self.misplaced(what, next, "JSON", "an element");
            }
            self.plan.reads_json = true;
            return self.path(what, next).map(Next::Json);
        }
        let parts = self.parts(what, next, inside)?;
        if parts.iter().any(|part| part.take == Take::Element) {
            let complaint =
                format_args!("{what}: `{}` finds elements, not URLs: add `::attr(href)`", next.value);
            self.mistakes.push(Mistake::at(next, complaint));
            return None;
        }
        match streamable::streamed(&parts, true).filter(|_| self.streams && inside == Inside::Nothing) {
            Some(streamed) => Some(Next::Streamed(number(&mut self.wanted.queries, streamed))),
            None => self.query(what, next, &parts, inside).map(Next::Tree),
        }
    }

    fn parts(&mut self, what: &str, selector: &Sited<String>, inside: Inside) -> Option<Vec<Part>> {
        self.outside_json(what, selector, inside)?;
        let parts = selector_syntax::parts(&selector.value);
        self.sound(what, selector, "a selector", parts)
    }

    fn query(
        &mut self,
        what: &str,
        selector: &Sited<String>,
        parts: &[Part],
        inside: Inside,
    ) -> Option<Query> {
        self.plan.needs_tree = true;
        self.sound(what, selector, "a selector", Query::new(parts, inside == Inside::Element))
    }

    /// Plans a selector of elements, rather than of their content.
    pub(super) fn elements(&mut self, what: &str, selector: &Sited<String>, inside: Inside) -> Option<Query> {
        let parts = self.parts(what, selector, inside)?;
        if parts.iter().any(|part| part.take != Take::Element) {
            let complaint =
                format_args!("{what}: `{}` must find elements: leave `::...` out", selector.value);
            self.mistakes.push(Mistake::at(selector, complaint));
            return None;
        }
        self.query(what, selector, &parts, inside)
    }

    /// Parses the path, if there is one; `None` if it is invalid.
    fn optional_path(&mut self, what: &str, path: Option<&Sited<String>>) -> Option<Option<Path>> {
        match path {
            None => Some(None),
            Some(path) => self.path(what, path).map(Some),
        }
    }

    fn path(&mut self, what: &str, path: &Sited<String>) -> Option<Path> {
        self.sound(what, path, "a path", Path::parse(&path.value))
    }

    fn sound<T>(
        &mut self,
        what: &str,
        value: &Sited<String>,
        kind: &str,
        read: Result<T, String>,
    ) -> Option<T> {
        read.map_err(|reason| {
            let complaint = format_args!("{what}: `{}` is not {kind}: {reason}", value.value);
            self.mistakes.push(Mistake::at(value, complaint));
        })
        .ok()
    }

    fn outside_json(&mut self, what: &str, value: &Sited<String>, inside: Inside) -> Option<()> {
        if inside == Inside::Json { self.misplaced(what, value, "HTML", "a value of JSON") } else { Some(()) }
    }

    fn misplaced<T>(&mut self, what: &str, value: &Sited<String>, sought: &str, place: &str) -> Option<T> {
        let complaint =
            format_args!("{what}: `{}` is looked for in {sought}, but `each` finds {place}", value.value);
        self.mistakes.push(Mistake::at(value, complaint));
        None
    }
}

fn kind(field: &spider::Field) -> Kind {
    match &field.from {
        FieldSource::Page(page) if field.kind == Kind::default() => match page.kind() {
            // They are absolute already.
            Kind::Url => Kind::Text,
            kind => kind,
        },
        _ => field.kind,
    }
}

fn number<T>(all: &mut Vec<T>, one: T) -> usize {
    all.push(one);
    all.len() - 1
}

/// Returns the index of `one` in `all`, where it is added if missing.
fn once(all: &mut Vec<String>, one: String) -> usize {
    all.iter().position(|other| *other == one).unwrap_or_else(|| number(all, one))
}
