//! The kind of a page, and the links that a page of a kind leads to, with what is passed on to them.

use std::fmt::Display;

use serde_json::{Map, Value};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::names::SpiderName;
use trawl_common::request::NewRequest;
use trawl_common::spider::{Carried, MAX_CARRIED_BYTES};
use trawl_common::task::NewTask;
use trawl_common::web::response::Response;
use trawl_common::web::sniff::{essence, is_of};
use trawl_common::web::url::CanonicalUrl;

use crate::context::{Context, Within};
use crate::extraction::{Extraction, Link, LinkKind, Unmet};
use crate::follow::{FoundLinks, Leave, MAX_LINK_COUNT};
use crate::limits::MAX_TEXT;
use crate::plan::{Download, Field, Follow, HandOver, LinkRule, PageKind, Plan};
use crate::values::budget::Budget;

/// Maximum size of what all links of a page carry together, in bytes of JSON.
const MAX_PASSED_ON: usize = 8 << 20;

/// Returns the first kind that a page is of, and notes in `extraction` which it is, and why not one before it.
pub(crate) fn kind<'a>(
    kinds: &'a [PageKind],
    context: &'a Context<'a>,
    extraction: &mut Extraction,
) -> Option<&'a PageKind> {
    for (number, kind) in kinds.iter().enumerate() {
        match kind.unmet(context) {
            None => {
                extraction.kind = Some(number);
                let alone = || vec![kind.name.clone()];
                extraction.path = Some(context.came.map_or_else(alone, |came| came.path_to(&kind.name)));
                return Some(kind);
            }
            Some(unmet) => extraction.unmet.push(unmet),
        }
    }
    None
}

impl PageKind {
    /// Returns the first condition that a page does not meet.
    fn unmet<'a>(&'a self, context: &'a Context<'a>) -> Option<Unmet> {
        self.unmet_unread(context.url, context.response, context.came).or_else(|| {
            let selector = self.selector.as_ref()?;
            selector.matches(context, Within::All).next().is_none().then_some(Unmet::Selector)
        })
    }

    /// Returns the first condition that a page at `url` does not meet, of those that show before it is read.
    pub(crate) fn unmet_unread(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        came: Option<&Carried>,
    ) -> Option<Unmet> {
        let has_led = || came.is_some_and(|came| self.from.iter().any(|name| came.is_from(name)));
        if !self.url.is_empty() && !self.url.is_match(url.as_str()) {
            Some(Unmet::Url)
        } else if !self.content_type.is_empty() && !self.has_type(response) {
            Some(Unmet::ContentType)
        } else {
            (!self.from.is_empty() && !has_led()).then_some(Unmet::From)
        }
    }

    fn has_type(&self, response: &Response) -> bool {
        let is = response.content_type().and_then(essence).unwrap_or_default();
        self.content_type.iter().any(|wanted| is_of(is, wanted))
    }
}

impl Plan {
    /// Adds the links of a page, with what is passed on to each: those of its files, those that are handed over, and then
    /// those that `kind` follows, or `[follow]` if it is of none. A link that several find is of the first.
    ///
    /// # Errors
    /// Fails if what is passed on is too much.
    pub(crate) fn links<'a>(
        &'a self,
        kind: Option<&'a PageKind>,
        follow: &'a Follow,
        context: &'a Context<'a>,
        leave: Leave,
        extraction: &mut Extraction,
    ) -> Result<(), Failure> {
        let mut found = FoundLinks::new(context.base);
        let path = extraction.path.clone().unwrap_or_default();
        let siblings = context.came.cloned().unwrap_or_default().to_data();
        let mut passed_on =
            PassedOn { kind, context, path, siblings, links: 0, bytes_left: MAX_PASSED_ON, by: By::Page };
        if leave.follow {
            let number = extraction.kind;
            for download in self.downloads.iter().filter(|one| one.on.has(number)) {
                self.files_of(download, kind, follow, &mut passed_on, &mut found, extraction)?;
            }
        }
        let number = extraction.kind;
        for one in self.hand_overs.iter().filter(|one| one.on.has(number)) {
            // A task is no link.
            if leave.follow || one.task.is_some() {
                one.hand(follow, &mut passed_on, &mut found, extraction)?;
            }
        }
        passed_on.by = By::Page;
        match kind {
            Some(kind) => self.links_of(kind, follow, leave, &mut passed_on, &mut found, extraction)?,
            None => {
                follow.links(context, leave, &mut found);
                if self.tracks {
                    pass_on(context.came, &mut found.links[passed_on.links..]);
                }
            }
        }
        (extraction.links, extraction.left_out) = (found.links, found.left_out);
        Ok(())
    }

    /// Adds the links of files that a rule finds.
    fn files_of<'a>(
        &'a self,
        download: &'a Download,
        kind: Option<&'a PageKind>,
        follow: &'a Follow,
        passed_on: &mut PassedOn<'a>,
        found: &mut FoundLinks<'a>,
        extraction: &mut Extraction,
    ) -> Result<(), Failure> {
        let (rule, context) = (&download.links, passed_on.context);
        passed_on.by = By::Download(rule.name.clone().unwrap_or_default());
        let of_page = kind.filter(|_| self.tracks).map_or(&[][..], |kind| &kind.carry);
        let whole = passed_on.values(of_page, Within::All, extraction)?;
        for within in rule.places(context) {
            context.goes_on()?;
            let mut values = whole.clone();
            values.extend(passed_on.values(&rule.carry, within, extraction)?);
            rule.add_links(follow, within, context, found);
            passed_on.give(found, &values, Some(rule))?;
        }
        found.patterns = None;
        Ok(())
    }

    /// Adds the links that a kind of page follows.
    fn links_of<'a>(
        &self,
        kind: &'a PageKind,
        follow: &'a Follow,
        leave: Leave,
        passed_on: &mut PassedOn<'a>,
        found: &mut FoundLinks<'a>,
        extraction: &mut Extraction,
    ) -> Result<(), Failure> {
        let context = passed_on.context;
        let own = self.tracks.then(|| passed_on.values(&kind.carry, Within::All, extraction)).transpose()?;
        let whole = own.unwrap_or_default();
        follow.add_refresh(context, found);
        if self.tracks {
            passed_on.give(found, &whole, None)?;
        }
        match &kind.follow {
            _ if !leave.follow => {}
            None => {
                follow.add_links(context, found);
                if self.tracks {
                    passed_on.give(found, &whole, None)?;
                }
            }
            Some(rules) => {
                for rule in rules {
                    for within in rule.places(context) {
                        context.goes_on()?;
                        if !self.tracks {
                            rule.add_links(follow, within, context, found);
                            continue;
                        }
                        let mut values = whole.clone();
                        values.extend(passed_on.values(&rule.carry, within, extraction)?);
                        match rule.made(context, &passed_on.all(&values)) {
                            None => rule.add_links(follow, within, context, found),
                            Some(made) => found.links.push(made.map_err(|why| passed_on.refused(why))?),
                        }
                        passed_on.give(found, &values, Some(rule))?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl HandOver {
    /// Adds the links and tasks that the page hands over. What goes along with a link are the values of this rule alone.
    fn hand<'a>(
        &'a self,
        follow: &'a Follow,
        passed_on: &mut PassedOn<'a>,
        found: &mut FoundLinks<'a>,
        extraction: &mut Extraction,
    ) -> Result<(), Failure> {
        let (rule, context) = (&self.links, passed_on.context);
        passed_on.by = By::HandOver(self.spider.clone());
        for within in rule.places(context) {
            context.goes_on()?;
            let own = passed_on.values(&rule.carry, within, extraction)?;
            let all = passed_on.all(&own);
            if extraction.tasks.len() + extraction.handed.len() >= MAX_LINK_COUNT {
                found.left_out += 1;
                continue;
            }
            if let Some(task) = &self.task {
                let task = task.fill(&all).map_err(|why| passed_on.refused(format_args!("`task`: {why}")))?;
                passed_on.spend(task.recipe.as_str().len(), "recipes have")?;
                extraction.tasks.push(NewTask { spider: Some(self.spider.clone()), ..task });
                continue;
            }
            match rule.made(context, &all) {
                None => rule.add_links(follow, within, context, found),
                Some(made) => found.links.push(made.map_err(|why| passed_on.refused(why))?),
            }
            let links: Vec<_> = found.links.drain(passed_on.links..).collect();
            let data = (!own.is_empty()).then_some(Value::Object(own));
            passed_on.carry(data.as_ref().map_or(0, |data| data.to_string().len()), links.len())?;
            for mut link in links {
                let request =
                    NewRequest { data: data.clone(), ..passed_on.ask(&mut link, Some(rule), &all)? };
                link.request = (!request.is_plain()).then(|| Box::new(request));
                extraction.handed.push((self.spider.clone(), link));
            }
        }
        found.patterns = None;
        Ok(())
    }
}

impl LinkRule {
    /// Returns the parts of the page that have links of their own.
    fn places<'a>(&'a self, context: &'a Context<'a>) -> Box<dyn Iterator<Item = Within<'a>> + 'a> {
        match &self.each {
            None => Box::new(std::iter::once(Within::All)),
            Some(each) => each.matches(context, Within::All),
        }
    }

    /// Returns the link that the rule makes itself of these values: a form, or a request with a URL. The error says why
    /// there is none.
    fn made<'a>(
        &'a self,
        context: &'a Context<'a>,
        values: &Map<String, Value>,
    ) -> Option<Result<Link, String>> {
        if let Some(form) = &self.form {
            return Some(form.sent(context, values).map_err(|why| format!("`form`: {why}")));
        }
        let request = self.request.as_ref().filter(|request| request.has("url"))?;
        let new = match request.fill(values) {
            Ok(new) => new,
            Err(why) => return Some(Err(format!("`request`: {why}"))),
        };
        let link = context.base.written_link(&new.url).map(|(url, written)| Link {
            url,
            written,
            kind: LinkKind::Page,
            request: Some(Box::new(new)),
        });
        Some(link.ok_or_else(|| "`request`: its `url` is none".to_owned()))
    }

    fn add_links<'a>(
        &'a self,
        follow: &'a Follow,
        within: Within<'a>,
        context: &'a Context<'a>,
        found: &mut FoundLinks<'a>,
    ) {
        found.patterns = Some((&self.include, &self.exclude));
        for link in &self.link {
            link.each_url(context, within, |url| found.add(url, LinkKind::Page));
        }
        if !self.link.is_empty() {
            return;
        }
        match (within, &self.area, context.tree) {
            (Within::Element(element), ..) => follow.add_within(element, found),
            (Within::All, Some(area), Some(tree)) => follow.add_area(area, tree, context, found),
            (Within::All, ..) => follow.add_all(context, found),
            (Within::Json(_), ..) => {}
        }
    }
}

/// The part of a file by which links of a page are found.
enum By {
    /// The page, or its kind.
    Page,
    /// The `[[download]]` of this name.
    Download(String),
    /// A `[[hand_over]]` to this spider.
    HandOver(SpiderName),
}

/// The values that a page passes on to its links.
struct PassedOn<'a> {
    kind: Option<&'a PageKind>,
    context: &'a Context<'a>,
    /// The kinds of pages from the start to this one.
    path: Vec<String>,
    /// The data of further pages of the list that the page is of.
    siblings: Value,
    /// Number of the links that have theirs.
    links: usize,
    bytes_left: usize,
    /// The part of the file by which the next links are found.
    by: By,
}

impl<'a> PassedOn<'a> {
    /// Returns the values of these fields that there are.
    fn values(
        &self,
        fields: &'a [Field],
        within: Within<'a>,
        extraction: &mut Extraction,
    ) -> Result<Map<String, Value>, Failure> {
        let mut values = Map::new();
        for field in fields {
            // A long text is refused as a whole, not cut.
            let value = field.value(self.context, within, &mut Budget::new(MAX_TEXT), extraction)?;
            if !value.is_null() {
                values.insert(field.name.clone(), value);
            }
        }
        Ok(values)
    }

    /// Returns these values in addition to those that the page received.
    fn all(&self, values: &Map<String, Value>) -> Map<String, Value> {
        let mut all = self.context.came.map(|came| came.values.clone()).unwrap_or_default();
        all.extend(values.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }

    /// Gives the links that were found since the last call, by `rule` if there is one, these values in addition to
    /// those that the page received.
    fn give(
        &mut self,
        found: &mut FoundLinks<'_>,
        values: &Map<String, Value>,
        rule: Option<&LinkRule>,
    ) -> Result<(), Failure> {
        let links = &mut found.links[self.links..];
        self.links += links.len();
        if links.is_empty() {
            return Ok(());
        }
        let download = match &self.by {
            By::Download(name) => Some(name.clone()),
            By::Page | By::HandOver(_) => None,
        };
        let carried = Carried {
            path: self.path.clone(),
            values: self.all(values),
            rule: rule.and_then(|rule| rule.name.clone()),
            list: None,
            download,
        };
        let data = carried.to_data();
        self.carry(data.to_string().len(), links.len())?;
        for link in links {
            // A further page of a list is reached as the list was.
            let data = if link.kind == LinkKind::Next { &self.siblings } else { &data };
            let mut new = NewRequest { data: Some(data.clone()), ..self.ask(link, rule, &carried.values)? };
            if let Some(download) = &carried.download {
                link.kind = LinkKind::File;
                // Whether its URL is also that of a page, or of another rule, makes no difference.
                new.unique = format!("download:{download}").parse().ok();
            }
            link.request = Some(Box::new(new));
        }
        Ok(())
    }

    /// Takes the request of a link: its own, or the one that `rule` makes of these values, or else a plain one.
    fn ask(
        &self,
        link: &mut Link,
        rule: Option<&LinkRule>,
        values: &Map<String, Value>,
    ) -> Result<NewRequest, Failure> {
        if let Some(own) = link.request.take() {
            return Ok(*own);
        }
        let Some(request) = rule.and_then(|rule| rule.request.as_ref()) else {
            return Ok(NewRequest::get(link.url.as_str()));
        };
        let new = request.fill_for(link.url.as_str(), values);
        let new = new.map_err(|why| self.refused(format_args!("`request`: {why}")))?;
        if let Some((url, _)) = self.context.base.written_link(&new.url) {
            (link.url, link.written) = (url, None);
        }
        Ok(new)
    }

    /// Counts what goes along with this many links: for each, so many bytes of JSON.
    fn carry(&mut self, bytes: usize, links: usize) -> Result<(), Failure> {
        if bytes > MAX_CARRIED_BYTES {
            let what =
                format_args!("`carry` has {bytes} bytes of JSON for a link: it may have {MAX_CARRIED_BYTES}");
            return Err(self.refused(what));
        }
        self.spend(bytes * links, "`carry` has")
    }

    /// Counts bytes that the page passes on.
    fn spend(&mut self, bytes: usize, what: &str) -> Result<(), Failure> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or_else(|| {
            self.refused(format_args!("{what} more than {MAX_PASSED_ON} bytes of JSON for all links"))
        })?;
        Ok(())
    }

    /// Returns the failure of the page whose links cannot have what the file says.
    fn refused(&self, why: impl Display) -> Failure {
        let (what, name) = match (&self.by, self.kind) {
            (By::Download(name), _) => ("download", &**name),
            (By::HandOver(spider), _) => ("hand_over", spider.as_str()),
            (By::Page, kind) => ("page", kind.map_or("", |kind| &kind.name)),
        };
        Failure::new(Class::Parse, format_args!("{what} `{name}`: {why}"))
    }
}

/// Has links of a page that is of no kind pass on what it received.
fn pass_on(came: Option<&Carried>, links: &mut [Link]) {
    let data = Carried { list: None, ..came.cloned().unwrap_or_default() }.to_data();
    for link in links {
        let request = NewRequest { data: Some(data.clone()), ..NewRequest::get(link.url.as_str()) };
        link.request = Some(Box::new(request));
    }
}
