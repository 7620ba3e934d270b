//! A form of a page, filled in and sent as browsers do.

use std::collections::HashMap;

use scraper::{ElementRef, Html};
use serde_json::{Map, Value};
use trawl_common::request::{Body, FORM, Method, NewRequest, encode_pair, in_texts};
use trawl_common::text::printable;

use crate::context::Context;
use crate::extraction::{Link, LinkKind};
use crate::plan::Form;

/// Maximum number of fields of a form.
const MAX_FIELDS: usize = 1_000;

impl Form {
    /// Returns the link that sends the form of a page, filled in with these carried values. The error says why it
    /// cannot be sent.
    pub(crate) fn sent<'a>(
        &'a self,
        context: &'a Context<'a>,
        values: &Map<String, Value>,
    ) -> Result<Link, String> {
        let tree = context.tree.map(Html::root_element);
        let found = tree.and_then(|root| self.query.elements(root, context).next());
        let form = found.ok_or_else(|| format!("the page has no `{}`", self.selector))?;
        if form.value().name() != "form" {
            return Err(format!(
                "`{}` finds a <{}>, not a <form>",
                self.selector,
                printable(form.value().name(), 64)
            ));
        }
        let fill = in_texts(&self.fill, values).map_err(|error| error.to_string())?;
        let pairs = filled(controls(form)?, &fill)?;
        let pairs: Vec<String> = pairs.iter().map(|(name, value)| encode_pair(name, value)).collect();
        let pairs = pairs.join("&");
        let action = form.attr("action").map(str::trim).filter(|action| !action.is_empty());
        let action = action.unwrap_or_else(|| context.url.as_str());
        let action = action.split_once('#').map_or(action, |(action, _)| action);
        let is_post = form.attr("method").is_some_and(|method| method.trim().eq_ignore_ascii_case("post"));
        let bare = action.split_once('?').map_or(action, |(bare, _)| bare);
        let target = if is_post { action.to_owned() } else { format!("{bare}?{pairs}") };
        let (url, written) = context
            .base
            .written_link(&target)
            .ok_or_else(|| format!("`{}` is no URL, or too long", printable(&target, 200)))?;
        let get = NewRequest::get(url.as_str());
        let request = match is_post {
            false => get,
            true => {
                let kind = form.attr("enctype").unwrap_or(FORM).trim().to_ascii_lowercase();
                if kind == "multipart/form-data" || kind == "text/plain" {
                    return Err(format!("it is sent as {kind}, which is not supported"));
                }
                let mut request = NewRequest { method: Method::Post, body: Body::from(pairs), ..get };
                request.headers.0.push(("content-type".to_owned(), FORM.to_owned()));
                request
            }
        };
        Ok(Link { url, written, kind: LinkKind::Page, request: Some(Box::new(request)) })
    }
}

/// Returns the names and values of the controls that a browser would send after a click on the first button. The error
/// says why they cannot be sent.
fn controls(form: ElementRef<'_>) -> Result<Vec<(String, String)>, String> {
    let (mut pairs, mut is_clicked) = (Vec::new(), false);
    for control in form.descendants().filter_map(ElementRef::wrap) {
        if control.attr("disabled").is_some() {
            continue;
        }
        if pairs.len() > MAX_FIELDS {
            return Err(format!("it has more than {MAX_FIELDS} fields"));
        }
        let kind = control.attr("type").unwrap_or_default().trim().to_ascii_lowercase();
        let value = || control.attr("value").unwrap_or_default().to_owned();
        let values = match (control.value().name(), kind.as_str()) {
            ("input", "submit" | "image") | ("button", "" | "submit") => {
                if std::mem::replace(&mut is_clicked, true) {
                    continue;
                }
                vec![value()]
            }
            ("input", "button" | "reset" | "file") => continue,
            ("input", "checkbox" | "radio") => match control.attr("checked") {
                Some(_) => vec![control.attr("value").unwrap_or("on").to_owned()],
                None => continue,
            },
            ("input", _) => vec![value()],
            ("textarea", _) => vec![control.text().collect()],
            ("select", _) => selected(control),
            _ => continue,
        };
        let Some(name) = control.attr("name").filter(|name| !name.is_empty()) else { continue };
        pairs.extend(values.into_iter().map(|value| (name.to_owned(), value)));
    }
    Ok(pairs)
}

/// Returns the values of the selected options; of a list that shows one, the first if none is selected.
fn selected(select: ElementRef<'_>) -> Vec<String> {
    let options = select.descendants().filter_map(ElementRef::wrap);
    let options: Vec<_> = options
        .filter(|option| option.value().name() == "option" && option.attr("disabled").is_none())
        .collect();
    let value = |option: &ElementRef<'_>| {
        option
            .attr("value")
            .map_or_else(|| option.text().collect::<String>().trim().to_owned(), str::to_owned)
    };
    let chosen = options.iter().filter(|option| option.attr("selected").is_some());
    let chosen: Vec<String> = chosen.map(value).collect();
    let is_multiple = select.attr("multiple").is_some();
    match (chosen.is_empty(), is_multiple) {
        (true, true) => Vec::new(),
        (true, false) => options.first().map(value).into_iter().collect(),
        (false, true) => chosen,
        (false, false) => chosen.into_iter().next_back().into_iter().collect(),
    }
}

/// Returns the controls with these values in place of their own; those that the form does not have are added.
fn filled(controls: Vec<(String, String)>, fill: &Value) -> Result<Vec<(String, String)>, String> {
    let mut own: HashMap<&str, Vec<String>> = HashMap::new();
    for (name, value) in fill.as_object().into_iter().flatten() {
        let values = match value {
            Value::Array(values) => values.iter().map(|value| text(name, value)).collect::<Result<_, _>>()?,
            Value::Null => Vec::new(),
            value => vec![text(name, value)?],
        };
        own.insert(name, values);
    }
    let (mut pairs, mut is_placed) = (Vec::new(), Vec::new());
    for (name, value) in controls {
        match own.get(&*name) {
            None => pairs.push((name, value)),
            Some(values) if !is_placed.contains(&name) => {
                pairs.extend(values.iter().map(|value| (name.clone(), value.clone())));
                is_placed.push(name);
            }
            Some(_) => {}
        }
    }
    for name in fill.as_object().into_iter().flatten().map(|(name, _)| name) {
        if !is_placed.contains(name) {
            pairs.extend(own[name.as_str()].iter().map(|value| (name.clone(), value.clone())));
        }
    }
    Ok(pairs)
}

fn text(name: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(format!("fill.{}: a text, a number or a list of these is wanted", printable(name, 64))),
    }
}
