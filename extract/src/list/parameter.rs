//! The parameter of a request that says which page of a list it is for.

use serde_json::{Map, Value};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::request::{Body, FORM, NewRequest, encode_pair};
use trawl_common::spider::Parameter;
use url::form_urlencoded::parse;

use crate::context::Context;

/// Returns the parameter of the request that led to a page; `None` if it has none.
pub(super) fn value(to: &Parameter, context: &Context<'_>) -> Result<Option<u64>, Failure> {
    match to {
        Parameter::Named(name) => {
            let pairs = pairs(context);
            let text = pairs.split('&').find_map(|pair| value_of(pair, name));
            Ok(text.and_then(|text| text.trim().parse().ok()))
        }
        Parameter::Json(pointer) => {
            let body = json(pointer, context)?;
            let found = body.pointer(pointer);
            Ok(found.and_then(|found| found.as_u64().or_else(|| found.as_str()?.trim().parse().ok())))
        }
    }
}

/// Returns the request that led to a page with another value of the parameter, without data.
pub(super) fn set(to: &Parameter, value: &Value, context: &Context<'_>) -> Result<NewRequest, Failure> {
    let own = context.request.map(|request| request.new.clone());
    // Redirects lead a GET on; another method is sent where it was sent before.
    let (url, own) = match own {
        Some(own) if !own.body.is_empty() => (own.url.clone(), own),
        own => {
            (context.url.as_str().to_owned(), own.unwrap_or_else(|| NewRequest::get(context.url.as_str())))
        }
    };
    let own = NewRequest { data: None, unique: None, ..own };
    match to {
        Parameter::Json(pointer) => {
            let mut body = json(pointer, context)?;
            put(&mut body, pointer, value.clone()).ok_or_else(|| misplaced(pointer))?;
            Ok(NewRequest { url, body: Body::from(body.to_string()), ..own })
        }
        Parameter::Named(name) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let pairs = with(&pairs(context), name, &text);
            if is_form(context) {
                return Ok(NewRequest { url, body: Body::from(pairs), ..own });
            }
            let bare = url.split_once('?').map_or(&*url, |(bare, _)| bare);
            Ok(NewRequest { url: format!("{bare}?{pairs}"), ..own })
        }
    }
}

/// Whether the parameters of the request that led to a page are in its body.
fn is_form(context: &Context<'_>) -> bool {
    context.request.is_some_and(|request| {
        let mut types = request.new.headers.0.iter().filter(|(name, _)| name == "content-type");
        !request.new.body.is_empty()
            && types.any(|(_, kind)| kind.split(';').next().is_some_and(|kind| kind.trim() == FORM))
    })
}

/// Returns the parameters of the request that led to a page, as they are written in its form or query.
fn pairs(context: &Context<'_>) -> String {
    let body = context.request.filter(|_| is_form(context)).and_then(|request| request.new.body.text());
    let query = || context.url.as_str().split_once('?').map(|(_, query)| query);
    body.or_else(query).unwrap_or_default().to_owned()
}

/// Returns the value of a pair, if it has this name.
fn value_of(pair: &str, name: &str) -> Option<String> {
    parse(pair.as_bytes()).find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
}

/// Returns the pairs with this one in the place of the first of its name, or at the end.
fn with(pairs: &str, name: &str, value: &str) -> String {
    let pair = encode_pair(name, value);
    let mut is_there = false;
    let mut all: Vec<&str> = pairs.split('&').filter(|pair| !pair.is_empty()).collect();
    all.retain_mut(|own| match value_of(own, name) {
        None => true,
        Some(_) => {
            *own = &pair;
            !std::mem::replace(&mut is_there, true)
        }
    });
    if !is_there {
        all.push(&pair);
    }
    all.join("&")
}

/// Returns the body of the request that led to a page.
fn json(pointer: &str, context: &Context<'_>) -> Result<Value, Failure> {
    let body = context.request.and_then(|request| request.new.body.text());
    body.and_then(|body| serde_json::from_str(body).ok()).ok_or_else(|| misplaced(pointer))
}

/// Puts a value in the place of a pointer, where its parent is an object or has the element.
fn put(body: &mut Value, pointer: &str, value: Value) -> Option<()> {
    if let Some(place) = body.pointer_mut(pointer) {
        *place = value;
        return Some(());
    }
    let (parent, key) = pointer.rsplit_once('/')?;
    let parent = body.pointer_mut(parent)?;
    if parent.is_null() {
        *parent = Value::Object(Map::new());
    }
    parent.as_object_mut()?.insert(key.replace("~1", "/").replace("~0", "~"), value);
    Some(())
}

fn misplaced(pointer: &str) -> Failure {
    let what = format_args!(
        "[[paginate]] puts a value into the JSON body of the list's request at `{pointer}`, where that has no place for it"
    );
    Failure::new(Class::Parse, what)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parameter_takes_the_place_of_its_own_and_leaves_others_as_they_are_written() {
        for (pairs, expected) in [
            ("", "page=a+b%26"),
            ("q=%7e&page=1&x", "q=%7e&page=a+b%26&x"),
            ("p%61ge=1&page=2", "page=a+b%26"),
            ("pages=1", "pages=1&page=a+b%26"),
        ] {
            assert_eq!(with(pairs, "page", "a b&"), expected, "{pairs}");
        }
    }

    #[test]
    fn a_value_is_put_into_a_body_where_there_is_a_place() {
        let put = |pointer| {
            let mut body = json!({"q": "x", "page": {"size": 10}, "list": [1]});
            put(&mut body, pointer, json!(7)).map(|()| body)
        };
        assert_eq!(put("/cursor").unwrap()["cursor"], 7);
        assert_eq!(put("/page/a~1b").unwrap()["page"]["a/b"], 7);
        assert_eq!(put("/list/0").unwrap()["list"], json!([7]));
        assert_eq!([put("/none/cursor"), put("/q/cursor"), put("/list/9")], [None, None, None]);
    }
}
