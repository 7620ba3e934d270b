//! Pages recorded with what their spider made of them, in a folder beside its file: `shop.pages` beside `shop.toml`.
//!
//! Each page is two files of one name: its body, and a `.json` with everything else.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use trawl_cli::Fail;
use trawl_common::spider::LinkVerdict;
use trawl_common::spider::folder::IN_OWN_FOLDER;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};
use trawl_extract::{Extracted, JudgedLink, Tried};

/// Maximum length of the part of a file's name that comes from the URL.
const MAX_NAME: usize = 60;

/// The part of a body's file name between the name of its record and the ending of its type.
const BODY: &str = ".body.";

/// A recorded page.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirected_to: Option<String>,
    status: u16,
    headers: Headers,
    fetched_at: UnixMs,
    /// The kind of page or the rule that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// The values that it was given.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) carry: Map<String, Value>,
    /// The name of the file with its body.
    body: String,
    /// The result that its spider is to have.
    pub(super) expected: Value,
}

impl Recorded {
    /// Creates a record of a page that was just tried.
    pub(super) fn new(
        url: &CanonicalUrl,
        tried: &Tried,
        from: Option<String>,
        carry: Map<String, Value>,
    ) -> Self {
        let Response { status, headers, redirected_to, fetched_at, .. } = &tried.response;
        let asked = json!([url.as_str(), from, carry]).to_string();
        let number = Fingerprint::from_text(&asked).short() as u32;
        let kind = tried.response.content_type().unwrap_or_default();
        let ending = ["html", "json", "xml", "csv"].into_iter().find(|ending| kind.contains(ending));
        let body = format!("{}-{number:08x}{BODY}{}", slug(url), ending.unwrap_or("bin"));
        Self {
            url: url.to_string(),
            redirected_to: redirected_to.as_ref().map(CanonicalUrl::to_string),
            status: *status,
            // Cookies may open an account.
            headers: headers.iter().filter(|(name, _)| *name != "set-cookie").collect(),
            fetched_at: *fetched_at,
            from,
            carry,
            body,
            expected: outcome(tried),
        }
    }

    /// Reads the records in a folder, by name. There are none without a folder.
    pub(super) fn all(folder: &Path) -> Result<Vec<(PathBuf, Self)>, Fail> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| unreadable(folder, error))?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(folder, error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".json") && !name.contains(BODY) {
                let text = fs::read(&path).map_err(|error| unreadable(&path, error))?;
                let record = serde_json::from_slice(&text).map_err(|error| unreadable(&path, error))?;
                all.push((path, record));
            }
        }
        all.sort_by(|(path, _), (other, _)| path.cmp(other));
        Ok(all)
    }

    /// Writes the record, and the body. One of the same page is replaced.
    pub(super) fn write(&self, folder: &Path, body: &[u8]) -> Result<PathBuf, Fail> {
        fs::create_dir_all(folder).map_err(|error| unreadable(folder, error))?;
        let path = folder.join(&self.body);
        fs::write(&path, body).map_err(|error| unreadable(&path, error))?;
        let name = self.body.split_once(BODY).map_or(&*self.body, |(name, _)| name);
        let path = folder.join(format!("{name}.json"));
        self.rewrite(&path)?;
        Ok(path)
    }

    /// Writes the record anew.
    pub(super) fn rewrite(&self, path: &Path) -> Result<(), Fail> {
        let mut text = serde_json::to_string_pretty(self).map_err(Fail::run)?;
        text.push('\n');
        fs::write(path, text).map_err(|error| unreadable(path, error))
    }

    /// Returns the page's URL and response.
    pub(super) fn response(&self, folder: &Path) -> Result<(CanonicalUrl, Response), Fail> {
        let url = |text: &str| {
            text.parse::<CanonicalUrl>().map_err(|error| Fail::usage(format!("{text}: {error}")))
        };
        let path = folder.join(Path::new(&self.body).file_name().unwrap_or_default());
        let body = fs::read(&path).map_err(|error| unreadable(&path, error))?;
        let response = Response {
            status: self.status,
            headers: self.headers.clone(),
            redirected_to: self.redirected_to.as_deref().map(url).transpose()?,
            fetched_at: self.fetched_at,
            address: None,
            body: body.into(),
        };
        Ok((url(&self.url)?, response))
    }
}

/// Returns the folder with the recorded pages of a spider's file.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    let is_in_own_folder = file.file_name().is_some_and(|name| name == IN_OWN_FOLDER);
    let named = if is_in_own_folder { file.parent().unwrap_or(file) } else { file };
    named.with_extension("pages")
}

/// Returns what a spider made of a page, as it is recorded: its kind, its items, the required fields that it lacks, and
/// the links that are followed.
pub(super) fn outcome(tried: &Tried) -> Value {
    let Tried { extraction, links, kinds, .. } = tried;
    let item = |Extracted { rule, fields, .. }: &Extracted| json!({ "item": rule, "fields": fields });
    let is_followed = |link: &&JudgedLink| link.verdict == LinkVerdict::Follow;
    json!({
        "page": kinds.iter().find(|kind| kind.why_not.is_none()).map(|kind| &kind.name),
        "items": extraction.items.iter().map(item).collect::<Vec<_>>(),
        "missing": extraction.missing.iter().map(|missing| &missing.field).collect::<Vec<_>>(),
        "followed": links.iter().filter(is_followed).map(|link| link.url.as_str()).collect::<Vec<_>>(),
    })
}

/// Returns the differences between two values, each with its place: `items[0].fields.price: 12.5, now null`.
pub(super) fn differences(expected: &Value, found: &Value) -> Vec<String> {
    let mut all = Vec::new();
    compare("", expected, found, &mut all);
    all
}

fn compare(place: &str, expected: &Value, found: &Value, all: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let dot = if place.is_empty() { "" } else { "." };
            let names = expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name)));
            for name in names {
                let of = |object: &Map<String, Value>| object.get(name).cloned().unwrap_or_default();
                compare(&format!("{place}{dot}{name}"), &of(expected), &of(found), all);
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(&format!("{place}[{number}]"), expected, found, all);
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            all.push(format!("{place}: {} of them, now {}", expected.len(), found.len()));
            let gone = expected.iter().filter(|value| !found.contains(value)).map(|value| ("gone", value));
            let new = found.iter().filter(|value| !expected.contains(value)).map(|value| ("new", value));
            all.extend(gone.chain(new).map(|(what, value)| format!("{place}: {what}: {value}")));
        }
        _ if expected != found => all.push(format!("{place}: {expected}, now {found}")),
        _ => {}
    }
}

/// Returns a name for a page's files: its host and path, of letters, digits and dashes.
fn slug(url: &CanonicalUrl) -> String {
    let text = url.as_str().split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let text: String = text.chars().map(plain).take(MAX_NAME).collect();
    text.trim_end_matches('-').to_owned()
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> Fail {
    Fail::usage(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_is_named_with_its_place() {
        let expected = json!({ "items": [{ "price": 12.5, "title": "Hat" }], "followed": ["a", "b"] });
        let found = json!({ "items": [{ "title": "Hat", "size": "M" }], "followed": ["a", "c", "d"] });
        assert_eq!(differences(&expected, &expected), [""; 0]);
        let told = [
            "items[0].price: 12.5, now null",
            "items[0].size: null, now \"M\"",
            "followed: 2 of them, now 3",
            "followed: gone: \"b\"",
            "followed: new: \"c\"",
            "followed: new: \"d\"",
        ];
        let mut found = differences(&expected, &found);
        let mut told = told.map(str::to_owned);
        found.sort();
        told.sort();
        assert_eq!(found, told);
    }

    #[test]
    fn a_folder_of_pages_is_beside_the_file_of_its_spider_or_beside_its_folder() {
        assert_eq!(folder_of(Path::new("spiders/shop.toml")), Path::new("spiders/shop.pages"));
        assert_eq!(folder_of(Path::new("spiders/shop/spider.toml")), Path::new("spiders/shop.pages"));
    }
}
