//! Data in scripts: what frameworks leave there for the page's own code.

use std::cell::Cell;

use serde_json::Value;

use crate::document::{js, json, nuxt};

/// Maximum number of values of one name.
const MAX_VALUES: usize = 1_000;
/// Maximum number of places in a script at which a name is looked at.
const MAX_PLACES: usize = 10_000;
/// Number of times that a script may be read for a name.
const MAX_READS: usize = 8;

/// A script of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) id: Option<String>,
    pub(crate) text: String,
}

impl Script {
    /// Whether one of these names is its ID or stands in it.
    pub(crate) fn is_wanted(&self, names: &[String]) -> bool {
        names.iter().any(|name| self.has_id(name) || self.text.contains(bare(name)))
    }

    fn has_id(&self, name: &str) -> bool {
        self.id.as_deref() == Some(name)
    }
}

/// Returns the values of each name in the scripts of a page, in their order: the content of a script with this ID that
/// is JSON; what is assigned to a variable of this name; and the first argument of calls to a function of this name.
/// Others are left out.
pub(crate) fn values(scripts: &[Script], names: &[String]) -> Vec<Vec<Value>> {
    names.iter().map(|name| of_name(scripts, name)).collect()
}

fn of_name(scripts: &[Script], name: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for script in scripts {
        if script.has_id(name)
            && let Ok(value) = json::parse(&script.text)
        {
            found.push(nuxt::hydrated(value));
            continue;
        }
        let name = bare(name);
        let steps_left = Cell::new(MAX_READS * script.text.len());
        for (at, _) in script.text.match_indices(name).take(MAX_PLACES) {
            if found.len() >= MAX_VALUES {
                return found;
            }
            let is_whole = !script.text[..at].ends_with(is_name_character);
            found.extend(is_whole.then(|| given(&script.text[at + name.len()..], &steps_left)).flatten());
        }
    }
    found
}

/// Returns a name without `window.` before it.
fn bare(name: &str) -> &str {
    ["window.", "self.", "globalThis."].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

/// Returns the value that a name is given by what comes after it: `= {...}`, `"] = {...}`, or `({...})`.
fn given(after: &str, steps_left: &Cell<usize>) -> Option<Value> {
    let after = ["\"]", "']", "`]"].iter().find_map(|end| after.strip_prefix(end)).unwrap_or(after);
    let after = after.trim_start();
    let value = match after.strip_prefix('(') {
        Some(arguments) => arguments,
        None => after.strip_prefix('=').filter(|after| !after.starts_with(['=', '>']))?,
    };
    js::parse(value, steps_left)
}

/// Whether a character before a name makes it another one.
fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}
