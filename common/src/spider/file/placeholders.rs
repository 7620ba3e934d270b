//! `{arg.NAME}` in the texts of a file.

use std::borrow::Cow;

use crate::nearest::nearest;
use crate::spider::arguments::Declarations;
use crate::text::printable;

/// The start of a placeholder.
const OPENING: &str = "{arg.";

/// Maximum length of a placeholder that is repeated in a mistake.
const MAX_SHOWN: usize = 70;

/// The reason why a text cannot be filled.
pub(super) enum Unfilled {
    /// It names an argument that has no value; the mistake is reported at its declaration.
    Missing,
    /// The text, or a value in it, is wrong.
    Wrong(String),
}

/// Returns the placeholder of the argument `name`.
pub(super) fn placeholder(name: &str) -> String {
    format!("{OPENING}{name}}}")
}

/// Returns whether a text has a placeholder.
pub(super) fn is_in(text: &str) -> bool {
    text.contains(OPENING)
}

/// Replaces the placeholders in a text with values. `check` says what is wrong with a value there.
pub(super) fn fill<'a>(
    text: &'a str,
    declared: &Declarations,
    check: impl Fn(&str) -> Result<(), &'static str>,
) -> Result<Cow<'a, str>, Unfilled> {
    if !is_in(text) {
        return Ok(text.into());
    }
    let mut parts = text.split(OPENING);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    let mut is_missing = false;
    for part in parts {
        let Some((name, rest)) = part.split_once('}') else {
            let shown = printable(&format!("{OPENING}{part}"), MAX_SHOWN);
            return Err(Unfilled::Wrong(format!("`{shown}` has no `}}` behind it")));
        };
        let Some(argument) = declared.get(name) else { return Err(undeclared(name, declared)) };
        match &argument.value {
            None => is_missing = true,
            Some(value) => {
                check(value).map_err(|why| Unfilled::Wrong(format!("the argument `{name}` {why}")))?;
                filled.push_str(value);
            }
        }
        filled.push_str(rest);
    }
    if is_missing { Err(Unfilled::Missing) } else { Ok(filled.into()) }
}

fn undeclared(name: &str, declared: &Declarations) -> Unfilled {
    let shown = printable(name, MAX_SHOWN);
    let hint = nearest(name, declared.keys().map(String::as_str));
    Unfilled::Wrong(format!("there is no argument `{shown}` in [arguments]{hint}"))
}
