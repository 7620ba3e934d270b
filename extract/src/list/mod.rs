//! The further pages of lists: the request for the next page, or the reason why a list ends.

mod link_header;
mod parameter;

use serde_json::Value;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::request::NewRequest;
use trawl_common::spider::{Carried, ListPlace};
use trawl_common::web::url::Fingerprint;

use crate::context::{Context, Within};
use crate::document::found::outer_html;
use crate::extraction::{Extraction, Link, LinkKind, ListEnd, ListState};
use crate::plan::paginate::{By, Paginate};
use crate::values::budget::Budget;

/// Maximum length of a cursor, in bytes.
const MAX_CURSOR: usize = 4096;

/// Maximum size of the entries by which pages are compared, in bytes.
const MAX_COMPARED: usize = 4 << 20;

impl Paginate {
    /// Whether pages of this kind are lists.
    pub(crate) fn is_for(&self, kind: Option<usize>) -> bool {
        self.kinds.is_empty() || kind.is_some_and(|kind| self.kinds.contains(&kind))
    }

    /// Adds the request for the next page to the links of a page from which all else is extracted, and notes how far
    /// the list is.
    ///
    /// # Errors
    /// Fails if the request that led to the page has no place for the parameter.
    pub(crate) fn add_next<'a>(
        &'a self,
        context: &'a Context<'a>,
        extraction: &mut Extraction,
    ) -> Result<(), Failure> {
        let carried = context.came.cloned().unwrap_or_default();
        let before = carried.list.unwrap_or_default();
        let content = self.content(context, extraction);
        let pages = before.pages.max(1);
        let is_empty = match &self.entries {
            Some(entries) => entries.matches(context, Within::All).next().is_none(),
            None => extraction.items.is_empty() && extraction.leads_nowhere(),
        };
        let end = if is_empty {
            Err(ListEnd::Empty)
        } else if before.content.as_deref() == Some(&content) {
            Err(ListEnd::Repeated)
        } else if pages >= self.most {
            Err(ListEnd::Limit)
        } else {
            self.next(context, extraction)?.ok_or(ListEnd::NoNext)
        };
        match end {
            Err(end) => {
                // The limit is reached only if there is more.
                let is_over = end == ListEnd::Limit && self.next(context, extraction)?.is_none();
                let end = Some(if is_over { ListEnd::NoNext } else { end });
                extraction.list = Some(ListState { pages, end });
            }
            Ok(next) => {
                extraction.list = Some(ListState { pages, end: None });
                let list = Some(ListPlace { pages: pages + 1, content: Some(content) });
                add(context, extraction, next, Carried { list, ..carried });
            }
        }
        Ok(())
    }

    /// Returns a hash of the entries of a page, or else of its items and links.
    fn content<'a>(&'a self, context: &'a Context<'a>, extraction: &Extraction) -> String {
        let mut text = String::new();
        if let Some(entries) = &self.entries {
            for entry in entries.matches(context, Within::All) {
                match entry {
                    Within::Element(element) => text.push_str(&outer_html(element)),
                    Within::Json(value) => text.push_str(&value.to_string()),
                    Within::All => {}
                }
                if text.len() > MAX_COMPARED {
                    break;
                }
            }
            return Fingerprint::from_text(&text).to_string();
        }
        for item in &extraction.items {
            text.push_str(&Value::Object(item.fields.clone()).to_string());
        }
        let handed = extraction.handed.iter().map(|(_, link)| link);
        let urls = extraction.links.iter().chain(handed).map(|link| link.url.as_str());
        for led_to in urls.chain(extraction.tasks.iter().map(|task| task.recipe.as_str())) {
            text.push('\n');
            text.push_str(led_to);
        }
        Fingerprint::from_text(&text).to_string()
    }

    /// Returns the request for the next page, without data; `None` if the page names none.
    fn next<'a>(
        &'a self,
        context: &'a Context<'a>,
        extraction: &mut Extraction,
    ) -> Result<Option<NewRequest>, Failure> {
        let request = context.request.map(|request| &request.new);
        let get = |url: String| NewRequest {
            headers: request.map(|request| request.headers.clone()).unwrap_or_default(),
            cookies: request.map(|request| request.cookies.clone()).unwrap_or_default(),
            ..NewRequest::get(url)
        };
        Ok(match &self.by {
            By::Next(next) => {
                let mut found = None;
                next.each_url(context, Within::All, |url| {
                    found.get_or_insert_with(|| url.to_owned());
                });
                found.map(get)
            }
            By::Link(relation) => {
                let fields = context.response.headers.all("link");
                link_header::target(fields, relation).map(get)
            }
            By::Count { to, first, step } => {
                let now = parameter::value(to, context)?.unwrap_or(*first);
                let next = now.checked_add(*step);
                next.map(|next| parameter::set(to, &next.into(), context)).transpose()?
            }
            By::Cursor { to, from } => {
                let value = from.value(context, Within::All, &mut Budget::new(2 * MAX_CURSOR), extraction)?;
                let is_none = matches!(&value, Value::Null | Value::Bool(false))
                    || value.as_str().is_some_and(|text| text.trim().is_empty());
                if is_none {
                    return Ok(None);
                }
                if value.to_string().len() > MAX_CURSOR {
                    let what = format_args!("the cursor of `[[paginate]]` is longer than {MAX_CURSOR} bytes");
                    return Err(Failure::new(Class::Parse, what));
                }
                Some(parameter::set(to, &value, context)?)
            }
        })
    }
}

/// Adds the request for the next page as a link of its depth. A link to the same URL is that page, not another one.
fn add(context: &Context<'_>, extraction: &mut Extraction, next: NewRequest, carried: Carried) {
    let Some((url, written)) = context.base.written_link(&next.url) else { return };
    if next.body.is_empty() {
        extraction.links.retain(|link| link.url != url);
    }
    let request = NewRequest { data: Some(carried.to_data()), url: url.to_string(), ..next };
    extraction.links.push(Link { url, written, kind: LinkKind::Next, request: Some(Box::new(request)) });
}
