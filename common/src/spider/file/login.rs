//! `[session]` and `[login]`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::fields;
use super::given::Given;
use super::patterns;
use super::request::{self, sent};
use super::section::Section;
use crate::request::RequestTemplate;
use crate::spider::{
    Field, FieldSource, Lapsed, Login, LoginRequest, LoginStep, PageForm, Required, Session, StepExpect,
};

/// The start of a placeholder for a secret, or for a value that was taken.
const OPENING: &str = "{login.";

/// The start of the placeholder by which a step is filled.
const FILLED: &str = "{carried.";

/// Maximum number of steps.
const MAX_STEPS: usize = 20;

/// Reads `[session]`. `has_home`: whether it is known to which hosts header fields may be sent.
pub(super) fn session(mut section: Section<'_>, has_home: bool) -> Session {
    let share = section.read("share", share);
    let headers = section.within("headers", |section| headers(&section, has_home)).unwrap_or_default();
    section.end();
    Session { share, headers }
}

fn share(given: &Given<'_>) -> Option<String> {
    if given.notes.limits().is_some() {
        return given
            .wrong("a spider that is deployed, or comes with a crawl, shares no session with others");
    }
    let name = given.text()?.value;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    match (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        true => Some(name),
        false => given.wrong("is a name of 1 to 64 of a-z, 0-9, `_` and `-`"),
    }
}

fn headers(section: &Section<'_>, has_home: bool) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, place, given) in section.entries() {
        if let Some(why) = request::refused_header(&name) {
            given.notes.wrong(place, format_args!("{}: {why}", given.key));
        } else if let Some(value) = given.words() {
            headers.push((name, filled(&value.value)));
        }
    }
    if !headers.is_empty() && !has_home {
        section.wrong::<()>(request::NO_HOME);
    }
    headers
}

/// Reads `[login]`. `has_reader`: whether a program reads the pages.
pub(super) fn login(mut section: Section<'_>, session: &Session, has_reader: bool) -> Option<Login> {
    let secrets = section.within("secret", |section| {
        let mut secrets = Vec::new();
        for (name, place, given) in section.entries() {
            match fields::is_name(&name) {
                true => secrets.extend(sent(&given).map(|secret| (name, secret))),
                false => given.notes.wrong(place, format_args!("{}: {}", given.key, fields::NO_NAME)),
            }
        }
        // One whose variable is not set is noted already.
        let names: HashSet<String> = section.entries().map(|(name, ..)| name).collect();
        (secrets, names)
    });
    let (secrets, mut known) = secrets.unwrap_or_default();
    let given = section.get("steps");
    let steps = match &given {
        None => section.wrong("`steps` are missing")?,
        Some(given) => steps(given, &mut known),
    };
    let lapsed = section.within("lapsed", |section| lapsed(section, has_reader)).unwrap_or_default();
    section.end();
    for (name, value) in &session.headers {
        if let Some(unknown) = unknown(&Value::String(value.clone()), &known) {
            given?.wrong::<()>(format_args!(
                "session.headers.{name}: there is no `{unknown}` in `secret`, and no step takes it"
            ));
            return None;
        }
    }
    Some(Login { steps, lapsed, secrets })
}

fn steps(given: &Given<'_>, known: &mut HashSet<String>) -> Vec<LoginStep> {
    let Some(all) = given.list() else { return Vec::new() };
    if all.is_empty() || all.len() > MAX_STEPS {
        given.wrong::<()>(format_args!("a log-in has 1 to {MAX_STEPS} steps"));
    }
    let mut steps = Vec::new();
    for (number, given) in all.iter().enumerate() {
        steps.extend(Section::from_given(given).and_then(|section| step(given, section, number == 0, known)));
    }
    steps
}

fn step(
    given: &Given<'_>,
    mut section: Section<'_>,
    is_first: bool,
    known: &mut HashSet<String>,
) -> Option<LoginStep> {
    let is_form = section.get("form").is_some_and(|form| !form.is_table());
    let request = if is_form { form(&mut section, is_first) } else { template(&mut section, is_first) };
    let take = section.within("take", take).unwrap_or_default();
    let expect = section.within("expect", expect).unwrap_or_default();
    section.end();
    let request = request?;
    let named = match &request {
        LoginRequest::Template(template) => match template.names() {
            Ok(names) => names.into_iter().find(|name| !known.contains(name)),
            Err(error) => return given.wrong(error),
        },
        LoginRequest::Form(form) => unknown(&form.fill, known),
    };
    if let Some(name) = named {
        given.wrong::<()>(format_args!(
            "there is no `{name}` in `secret`, and no step before this one takes it"
        ));
    }
    known.extend(take.iter().map(|(name, _)| name.clone()));
    Some(LoginStep { request, take, expect })
}

/// Reads a step that sends a form of the page before it.
fn form(section: &mut Section<'_>, is_first: bool) -> Option<LoginRequest> {
    let form = section.read("form", patterns::elements);
    if is_first {
        section.refuse("form", "is of the page before it, and the first step has none: begin with its `url`");
    }
    for key in ["url", "method", "query", "json", "body", "base64", "headers", "cookies"] {
        section.refuse(key, "is for requests: leave it out, or `form`");
    }
    let fill = section.read("fill", |given| match given.is_table() {
        true => given.json(),
        false => given.not_a("a table"),
    });
    let fill = filled_in(fill.unwrap_or_else(|| json!({})));
    Some(LoginRequest::Form(PageForm { form: form?, fill }))
}

/// Reads a step that makes a request.
fn template(section: &mut Section<'_>, is_first: bool) -> Option<LoginRequest> {
    section.refuse("fill", "is for `form` alone");
    let mut object = Map::new();
    let url = section.need("url", Given::words)?;
    object.insert("url".to_owned(), url.value.into());
    for key in ["method", "query", "form", "json", "body", "base64", "headers", "cookies"] {
        if let Some(value) = section.read(key, Given::json) {
            object.insert(key.to_owned(), value);
        }
    }
    if is_first
        && !["http://", "https://"]
            .iter()
            .any(|scheme| object["url"].as_str().is_some_and(|url| url.starts_with(scheme)))
    {
        return section.get("url")?.wrong("the first step needs a whole URL, as https://…");
    }
    let template = RequestTemplate::new(filled_in(Value::Object(object)));
    template.map_or_else(|error| section.wrong(error), |template| Some(LoginRequest::Template(template)))
}

/// Reads `take`: fields that a response must have.
fn take(section: Section<'_>) -> Vec<(String, Field)> {
    let mut taken = Vec::new();
    for (name, place, given) in section.entries() {
        if !fields::is_name(&name) {
            given.notes.wrong(place, format_args!("{}: {}", given.key, fields::NO_NAME));
        }
        let field = match given.is_table() {
            true => fields::field(&given),
            false => patterns::selector(&given).map(|selector| match selector.text().clone() {
                text if text.value.starts_with(['/', '$']) => Field::new(FieldSource::Json(text)),
                text => Field::new(FieldSource::Css(text)),
            }),
        };
        taken.extend(field.map(|field| (name, Field { required: Required::Fail, ..field })));
    }
    taken
}

fn expect(mut section: Section<'_>) -> StepExpect {
    let expect = StepExpect {
        url: section.read("url", |given| patterns::one_or_more(given, patterns::regex)).unwrap_or_default(),
        selector: section.read("selector", patterns::selector),
        text: section.read("text", |given| patterns::one_or_more(given, patterns::regex)).unwrap_or_default(),
    };
    section.end();
    expect
}

fn lapsed(mut section: Section<'_>, has_reader: bool) -> Lapsed {
    if has_reader {
        section.refuse("selector", "is for pages that no program reads: use `text`");
    }
    let lapsed = Lapsed {
        status: section.all("status", super::ban::status),
        url: section.read("url", |given| patterns::one_or_more(given, patterns::regex)).unwrap_or_default(),
        selector: section.read("selector", patterns::selector),
        text: section.read("text", |given| patterns::one_or_more(given, patterns::regex)).unwrap_or_default(),
    };
    if lapsed == (Lapsed { status: Vec::new(), ..Lapsed::default() }) {
        section.wrong::<()>(
            "says of no answer that the session has lapsed: `status`, `url`, `selector` or `text`",
        );
    }
    section.end();
    lapsed
}

/// Whether a text names a value of the log-in.
pub(super) fn has_placeholder(text: &str) -> bool {
    text.contains(FILLED)
}

/// Returns a text with the placeholders by which it is filled.
fn filled(text: &str) -> String {
    text.replace(OPENING, FILLED)
}

fn filled_in(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(filled(&text)),
        Value::Array(all) => Value::Array(all.into_iter().map(filled_in).collect()),
        Value::Object(all) => all.into_iter().map(|(name, value)| (name, filled_in(value))).collect(),
        other => other,
    }
}

/// Returns the first name in the placeholders of a value that is not known.
fn unknown(value: &Value, known: &HashSet<String>) -> Option<String> {
    match value {
        Value::String(text) => {
            let names =
                text.split(FILLED).skip(1).map(|part| part.split_once('}').map_or(part, |(name, _)| name));
            names.map(str::to_owned).find(|name| !known.contains(name))
        }
        Value::Array(all) => all.iter().find_map(|value| unknown(value, known)),
        Value::Object(all) => all.values().find_map(|value| unknown(value, known)),
        _ => None,
    }
}
