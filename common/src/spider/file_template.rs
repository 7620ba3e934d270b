//! `path` of a `[[download]]`: the names of files, which no URL and no page can lead out of their folder.

use std::fmt;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::nearest::listed;
use crate::text::{is_harmful, printable, start_of};
use crate::web::url::CanonicalUrl;

/// Maximum length of a template in bytes.
const MAX_TEMPLATE: usize = 200;

/// Maximum length of a value in a name, and of the name of a file or folder, in bytes. Most file systems allow 255, of
/// which a hash may take some.
const MAX_VALUE: usize = 100;
const MAX_NAME: usize = 180;

/// Placeholders without a name of their own.
const KNOWN: [(&str, Part); 4] =
    [("sha256", Part::Sha256), ("ext", Part::Ext), ("stem", Part::Stem), ("host", Part::Host)];

/// Prefix of a placeholder for a carried value.
const CARRIED: &str = "carried.";

/// Stands for a value that is missing.
const MISSING: &str = "none";

/// A template for the path of a file below its folder: `{carried.sku}/{stem}.{ext}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// The hash of the file.
    Sha256,
    /// The usual ending of its type, or that of its URL.
    Ext,
    /// The last part of the path of its URL, without its ending.
    Stem,
    /// The host of its URL.
    Host,
    /// The carried value of this name.
    Carried(String),
}

/// The properties of a file from which its name is made.
#[derive(Clone, Copy, Debug)]
pub struct FileFacts<'a> {
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: &'a str,
    /// The usual ending of its type.
    pub ext: &'a str,
    /// Its URL, as it was found.
    pub url: &'a CanonicalUrl,
    /// The values that the pages that led to it carry.
    pub carried: &'a Map<String, Value>,
}

/// The reason why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFileTemplate {
    /// It names a file outside its folder, a hidden one, or none.
    #[error("names a file below `to`: no part of it is empty, or begins with a dot, and it has no backslash")]
    Path,
    /// It is too long.
    #[error("has more than {MAX_TEMPLATE} bytes")]
    TooLong,
    /// A placeholder is unknown, or has no end.
    #[error("`{0}` stands for nothing; there are {known}", known = known())]
    Unknown(String),
}

fn known() -> String {
    let names: Vec<String> = KNOWN.iter().map(|(name, _)| format!("{{{name}}}")).collect();
    listed(names.iter().map(String::as_str).chain(["{carried.NAME}"]))
}

impl Default for FileTemplate {
    /// `{sha256}.{ext}`
    fn default() -> Self {
        let parts = vec![Part::Sha256, Part::Text(".".to_owned()), Part::Ext];
        Self { text: "{sha256}.{ext}".to_owned(), parts }
    }
}

impl fmt::Display for FileTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FileTemplate {
    type Err = InvalidFileTemplate;

    fn from_str(text: &str) -> Result<Self, InvalidFileTemplate> {
        if text.len() > MAX_TEMPLATE {
            return Err(InvalidFileTemplate::TooLong);
        }
        let is_bad = |name: &str| name.is_empty() || name.starts_with('.');
        if text.split('/').any(is_bad) || text.contains(|c: char| c == '\\' || is_harmful(c)) {
            return Err(InvalidFileTemplate::Path);
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find('{') {
            let end = rest[at..].find('}').map(|end| at + end);
            let shown = || printable(&rest[at..end.map_or(rest.len(), |end| end + 1)], 60);
            let name = end.map(|end| &rest[at + 1..end]).unwrap_or_default();
            let part = KNOWN.iter().find(|(known, _)| *known == name).map(|(_, part)| part.clone());
            let carried = name.strip_prefix(CARRIED).filter(|name| !name.is_empty());
            let part = part.or_else(|| carried.map(|name| Part::Carried(name.to_owned())));
            let (Some(part), Some(end)) = (part, end) else {
                return Err(InvalidFileTemplate::Unknown(shown()));
            };
            parts.extend((at > 0).then(|| Part::Text(rest[..at].to_owned())));
            parts.push(part);
            rest = &rest[end + 1..];
        }
        parts.extend((!rest.is_empty()).then(|| Part::Text(rest.to_owned())));
        Ok(Self { text: text.to_owned(), parts })
    }
}

impl FileTemplate {
    /// Returns the path of a file below its folder: relative, its parts separated by `/`, none of them empty, hidden or
    /// longer than file systems allow.
    pub fn path(&self, facts: &FileFacts<'_>) -> String {
        let mut path = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Sha256 => path.push_str(facts.sha256),
                Part::Ext => path.push_str(&safe(facts.ext)),
                Part::Stem => path.push_str(&safe(&stem(facts.url))),
                Part::Host => path.push_str(&safe(facts.url.host().as_str())),
                Part::Carried(name) => path.push_str(&safe(&text_of(facts.carried.get(name)))),
            }
        }
        let names = path.split('/').map(|name| match name.strip_prefix('.') {
            Some(rest) => fitting(&format!("_{rest}"), facts.sha256),
            None => fitting(name, facts.sha256),
        });
        names.collect::<Vec<_>>().join("/")
    }
}

/// Returns the path with a mark of the content before its ending, for a file whose name another one has.
pub fn with_mark(path: &str, mark: &str) -> String {
    let start = path.rfind('/').map_or(0, |at| at + 1);
    match path[start..].rfind('.').filter(|at| *at > 0) {
        Some(at) => format!("{}-{mark}{}", &path[..start + at], &path[start + at..]),
        None => format!("{path}-{mark}"),
    }
}

/// Returns a name that file systems allow; of a longer one its beginning and a part of the hash.
fn fitting(name: &str, sha256: &str) -> String {
    match name.len() > MAX_NAME {
        true => format!("{}-{}", start_of(name, MAX_NAME - 17), start_of(sha256, 16)),
        false => name.to_owned(),
    }
}

/// Returns the last part of the path of a URL, without its ending; `index` if it is empty.
fn stem(url: &CanonicalUrl) -> String {
    let url = url.to_url();
    let last = url.path_segments().and_then(Iterator::last).unwrap_or_default();
    let last = percent_decode_str(last).decode_utf8_lossy();
    let stem = last.rsplit_once('.').map_or(&*last, |(stem, _)| stem);
    if stem.is_empty() { "index".to_owned() } else { stem.to_owned() }
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => MISSING.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Returns a value as a part of a name: anything that separates, hides or disguises names becomes `_`.
fn safe(value: &str) -> String {
    let is_odd = |c: char| is_harmful(c) || c.is_whitespace() || r#"/\:*?"<>|~"#.contains(c);
    let safe: String = value.chars().map(|c| if is_odd(c) { '_' } else { c }).collect();
    let safe = start_of(safe.trim_matches('.'), MAX_VALUE);
    if safe.is_empty() { MISSING.to_owned() } else { safe.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn path(template: &str, url: &str, carried: Value) -> String {
        let (url, carried) = (url.parse().unwrap(), carried.as_object().unwrap().clone());
        let facts = FileFacts { sha256: "abcd", ext: "jpg", url: &url, carried: &carried };
        template.parse::<FileTemplate>().unwrap().path(&facts)
    }

    #[test]
    fn a_name_is_made_of_the_file_its_url_and_what_is_carried() {
        let url = "http://a.example/p/Red%20hat.jpeg?w=9";
        for (template, name) in [
            ("{sha256}.{ext}", "abcd.jpg"),
            ("{host}/{stem}.{ext}", "a.example/Red_hat.jpg"),
            ("shop/{carried.sku}-{carried.n}.{ext}", "shop/A_7-3.jpg"),
            ("{carried.absent}", "none"),
        ] {
            assert_eq!(path(template, url, json!({"sku": "A/7", "n": 3})), name);
        }
        assert_eq!(path("{stem}", "http://a.example/", json!({})), "index");
        assert_eq!(FileTemplate::default(), "{sha256}.{ext}".parse().unwrap());
    }

    #[test]
    fn a_template_that_leads_elsewhere_or_says_nothing_is_refused() {
        for text in ["", "/etc/{stem}", "../{stem}", "a/../{stem}", "a//b", ".{ext}", "a\\b", "a/", "a\nb"] {
            assert_eq!(text.parse::<FileTemplate>(), Err(InvalidFileTemplate::Path), "{text}");
        }
        for text in ["{sha1}", "{stem", "{}", "{carried.}"] {
            let error = text.parse::<FileTemplate>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{text}` stands for nothing; there are `{{sha256}}`")),
                "{error}"
            );
        }
        assert_eq!("a".repeat(201).parse::<FileTemplate>(), Err(InvalidFileTemplate::TooLong));
    }

    #[test]
    fn another_file_of_one_name_gets_a_mark_before_its_ending() {
        for (path, marked) in [("a/b.tar.gz", "a/b.tar-12.gz"), ("a.b/c", "a.b/c-12"), (".a", ".a-12")] {
            assert_eq!(with_mark(path, "12"), marked);
        }
    }

    const TEMPLATES: [&str; 4] =
        ["{carried.v}", "x/{carried.v}{carried.v}", "{carried.v}/{stem}.{carried.v}", "{ext}"];

    proptest! {
        #[test]
        fn no_value_leads_out_of_the_folder(
            value in r"(\.|/|\\|\x00|%2e|%2F|a|é|\PC){0,80}",
            template in prop::sample::select(TEMPLATES.to_vec()),
        ) {
            let mut url = url::Url::parse("http://a.example/").unwrap();
            url.set_path(&value);
            let url = CanonicalUrl::from_url(url).unwrap();
            let carried = json!({"v": value}).as_object().unwrap().clone();
            let sha256 = "0".repeat(64);
            let facts = FileFacts { sha256: &sha256, ext: &value, url: &url, carried: &carried };
            let template: FileTemplate = template.parse().unwrap();
            let path = template.path(&facts);
            let depth = template.to_string().matches('/').count();
            prop_assert_eq!(path.matches('/').count(), depth, "{}", path);
            for name in path.split('/') {
                prop_assert!(!name.is_empty() && !name.starts_with('.') && name.len() <= MAX_NAME, "{}", path);
                prop_assert!(!name.contains(|c: char| c == '\\' || is_harmful(c)), "{}", path);
            }
        }
    }
}
