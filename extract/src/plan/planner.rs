//! Creates the plan of a spider, and finds its mistakes.

use regex::Regex;
use trawl_common::mistake::{Mistake, Sited};
use trawl_common::spider::pattern::reason;
use trawl_common::spider::{self, Conversion, FieldSource, Kind, PageField, Selector, Spider, Whitespace};

use crate::document::json::Path;
use crate::document::page::Wanted;
use crate::jmespath::JmesPath;
use crate::plan::query::{CssQuery, Query};
use crate::plan::selector_syntax::{self, Part, Take};
use crate::plan::streamable;
use crate::plan::{Each, Field, Follow, Next, Plan, Rule, Source, splits};
use crate::values::convert::Convert;
use crate::values::date::{self, Written};
use crate::values::transform::{Does, Step, Transform};
use crate::values::truth::Truth;
use crate::xpath::{MAX_PATTERNS, XPath};

/// The place of fields, which determines their possible sources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Nothing,
    Element,
    Json,
    /// A value in a script of a page.
    Script,
}

impl Inside {
    /// Returns the place of fields inside `each`.
    pub(super) fn each(each: &Each) -> Self {
        match each {
            Each::Tree(_) => Self::Element,
            Each::Json(_) => Self::Json,
            Each::Script(..) => Self::Script,
        }
    }
}

/// Creates the plan of a spider, and collects its mistakes.
pub(crate) struct Planner {
    pub(crate) plan: Plan,
    pub(crate) wanted: Wanted,
    pub(crate) mistakes: Vec<Mistake>,
    streams: bool,
    /// The number of patterns that XPath expressions may still have.
    patterns_left: usize,
}

impl Planner {
    /// Creates the plan of a spider. Without `streams`, every selector needs the tree.
    pub(crate) fn new(spider: &Spider, streams: bool) -> Self {
        let mut planner = Self {
            plan: Plan::default(),
            wanted: Wanted::default(),
            mistakes: Vec::new(),
            streams,
            patterns_left: MAX_PATTERNS,
        };
        planner.plan.follow = spider.follow.as_ref().map(|follow| planner.follow(follow));
        planner.plan.used_for = spider.used_for.clone();
        planner.wanted.usage = !spider.used_for.is_empty();
        planner.pages(spider);
        planner.side_links(spider);
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
            (Some(_), each) => each.as_ref().map_or(Inside::Element, Inside::each),
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
        let conversion = Conversion {
            kind: kind(field),
            format: field.format.clone(),
            timezone: field.timezone.clone(),
            decimal: field.decimal,
            truth: field.truth.clone(),
            falsehood: field.falsehood.clone(),
        };
        let convert = self.convert(&what, &conversion);
        // Its lines and indentation have a meaning.
        let is_markdown = field.from == FieldSource::Page(PageField::Markdown);
        let whitespace = field.whitespace.or(is_markdown.then_some(Whitespace::Keep));
        let convert = Convert { regex, whitespace, ..convert };
        let steps = field.transform.iter().filter_map(|step| self.step(&what, step, convert.kind)).collect();
        Some(Field {
            name: name.to_owned(),
            path,
            source: source?,
            list: field.list || field.from == FieldSource::Page(PageField::Links),
            transform: Transform(steps),
            convert,
            default: field.default.clone(),
            required: field.required,
        })
    }

    /// Plans how texts become values of a type.
    fn convert(&mut self, what: &str, conversion: &Conversion) -> Convert {
        if let Some(format) = &conversion.format
            && let Err(reason) = date::check(&format.value)
        {
            let complaint = format_args!("{what}: `{}` is not how a date is written: {reason}", format.value);
            self.mistakes.push(Mistake::at(format, complaint));
        }
        let format = conversion.format.as_ref().map(|format| format.value.clone());
        Convert {
            kind: conversion.kind,
            date: Written { format, zone: conversion.timezone.clone() },
            decimal: conversion.decimal,
            truth: Truth::new(&conversion.truth, &conversion.falsehood),
            ..Convert::default()
        }
    }

    /// Plans a step of a field of this type.
    fn step(&mut self, what: &str, step: &spider::Transform, kind: Kind) -> Option<Step> {
        let does = match step {
            spider::Transform::Strip(chars) => Does::Strip(chars.as_ref().map(|text| text.chars().collect())),
            spider::Transform::Lower => Does::Lower,
            spider::Transform::Upper => Does::Upper,
            spider::Transform::Replace(pattern, with) => {
                Does::Replace(self.regex(what, Some(pattern))?, with.clone())
            }
            spider::Transform::Regex(pattern) => Does::Regex(self.regex(what, Some(pattern))?),
            spider::Transform::Matches(pattern) => Does::Matches(self.regex(what, Some(pattern))?),
            spider::Transform::Split(separator) => Does::Split(separator.clone()),
            spider::Transform::Join(separator) => Does::Join(separator.clone()),
            spider::Transform::Slice(from, to) => Does::Slice(*from, *to),
            spider::Transform::Chars(from, to) => Does::Chars(*from, *to),
            spider::Transform::Template(text) => Does::Template(text.clone()),
            spider::Transform::Default(text) => Does::Default(text.clone()),
            spider::Transform::Path(path) => Does::Path(self.path(what, path)?, splits(kind)),
            spider::Transform::JmesPath(text) => Does::JmesPath(self.jmespath(what, text)?, splits(kind)),
            spider::Transform::Read(conversion) => Does::Read(Box::new(self.convert(what, conversion))),
        };
        Some(Step { name: step.name(), does })
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
            FieldSource::XPath(xpath) => Source::Tree(self.xpath(what, xpath, inside)?),
            FieldSource::Json(json) => {
                self.outside_element(what, json, inside)?;
                Source::Json(self.path(what, json)?)
            }
            FieldSource::JmesPath(text) => {
                self.outside_element(what, text, inside)?;
                Source::JmesPath(self.jmespath(what, text)?)
            }
            FieldSource::Script(name, path) => {
                let (number, path) = self.script(what, name, path.as_ref(), inside)?;
                Source::Script(number, path)
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
                self.wanted.usage |= *page == PageField::Usage;
                self.plan.needs_tree |= page.needs_tree();
                Source::Page(*page)
            }
            FieldSource::Each(each, fields) => {
                let each = self.each(&format!("{what}.each"), each, inside);
                let inside = each.as_ref().map_or(Inside::Element, Inside::each);
                let fields = self.fields(&format!("{path}."), fields, inside);
                Source::Each(each?, fields)
            }
        })
    }

    pub(super) fn each(&mut self, what: &str, each: &Selector, inside: Inside) -> Option<Each> {
        match each {
            Selector::Text(path) if Path::is_meant(&path.value) => {
                self.outside_element(what, path, inside)?;
                self.path(what, path).map(Each::Json)
            }
            Selector::Script(name, path) => {
                let (number, path) = self.script(what, name, path.as_ref(), inside)?;
                Some(Each::Script(number, path))
            }
            each => self.elements(what, each, inside).map(Each::Tree),
        }
    }

    /// Plans the values in scripts of a name.
    fn script(
        &mut self,
        what: &str,
        name: &Sited<String>,
        path: Option<&Sited<String>>,
        inside: Inside,
    ) -> Option<(usize, Option<Path>)> {
        self.outside_json(what, name, inside)?;
        let path = self.optional_path(what, path)?;
        Some((once(&mut self.wanted.scripts, name.value.trim().to_owned()), path))
    }

    /// Plans an XPath expression.
    fn xpath(&mut self, what: &str, xpath: &Sited<String>, inside: Inside) -> Option<Query> {
        self.outside_json(what, xpath, inside)?;
        if inside == Inside::Element && xpath.value.trim_start().starts_with("//") {
            let complaint = format_args!(
                "{what}: `{0}` finds nodes of the whole page, not of the element: write `.{0}`, or `/descendant::...` if that is meant",
                xpath.value.trim()
            );
            self.mistakes.push(Mistake::at(xpath, complaint));
            return None;
        }
        self.plan.needs_tree = true;
        let parsed = XPath::parse(&xpath.value, &mut self.patterns_left);
        self.sound(what, xpath, "an XPath 1.0 expression", parsed).map(Query::XPath)
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
    pub(super) fn next(&mut self, what: &str, next: &Selector, inside: Inside) -> Option<Next> {
        let next = match next {
            Selector::Text(path) if Path::is_meant(&path.value) => {
                self.outside_element(what, path, inside)?;
                return self.path(what, path).map(Next::Json);
            }
            Selector::Script(name, path) => {
                let (number, path) = self.script(what, name, path.as_ref(), inside)?;
                return Some(Next::Script(number, path));
            }
            Selector::XPath(xpath) => {
                let query = self.xpath(what, xpath, inside)?;
                if query.finds_elements() {
                    let complaint =
                        format_args!("{what}: `{}` finds elements, not URLs: add `/@href`", xpath.value);
                    self.mistakes.push(Mistake::at(xpath, complaint));
                    return None;
                }
                return Some(Next::Tree(query));
            }
            Selector::Text(css) => css,
        };
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
        let selectors = (inside == Inside::Nothing).then_some(&mut self.plan.selectors);
        let query = CssQuery::new(parts, selectors);
        self.sound(what, selector, "a selector", query).map(Query::Css)
    }

    /// Plans a selector of elements, rather than of their content.
    pub(super) fn elements(&mut self, what: &str, selector: &Selector, inside: Inside) -> Option<Query> {
        let selector = match selector {
            Selector::Text(css) => css,
            Selector::XPath(xpath) => {
                let query = self.xpath(what, xpath, inside)?;
                if !query.finds_elements() {
                    let complaint = format_args!("{what}: `{}` must find elements", xpath.value);
                    self.mistakes.push(Mistake::at(xpath, complaint));
                    return None;
                }
                return Some(query);
            }
            Selector::Script(name, _) => {
                let complaint = format_args!("{what}: must find elements: a script has none");
                self.mistakes.push(Mistake::at(name, complaint));
                return None;
            }
        };
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

    fn jmespath(&mut self, what: &str, text: &Sited<String>) -> Option<JmesPath> {
        self.sound(what, text, "a JMESPath expression", JmesPath::parse(&text.value))
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
        match inside {
            Inside::Nothing | Inside::Element => Some(()),
            Inside::Json | Inside::Script => self.misplaced(what, value, "HTML", "a value of JSON"),
        }
    }

    /// Notes a path into JSON inside an element. Elsewhere responses are read as JSON because of it, unless the value
    /// is in a script.
    fn outside_element(&mut self, what: &str, path: &Sited<String>, inside: Inside) -> Option<()> {
        match inside {
            Inside::Element => return self.misplaced(what, path, "JSON", "an element"),
            Inside::Nothing | Inside::Json => self.plan.reads_json = true,
            Inside::Script => {}
        }
        Some(())
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
        _ if !field.transform.is_empty() => field.kind,
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
