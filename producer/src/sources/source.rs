//! Sources of URLs: an address on the web, a local file, or standard input.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use trawl_common::names::WorkerId;
use trawl_common::web::url::{CanonicalUrl, InvalidUrl};
use url::Url;

/// A source as named by a person.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A sitemap, feed, list or `robots.txt` on the web, in the spelling in which it is named.
    Web(CanonicalUrl),
    /// A sitemap, feed, list or `robots.txt` in a local file.
    File(PathBuf),
    /// A sitemap, feed, list or `robots.txt` on standard input.
    Stdin,
}

/// A text that is not a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSource {
    /// It starts like a URL, but is invalid.
    #[error("`{0}`: {1}")]
    Url(String, InvalidUrl),
}

impl Source {
    /// Returns a text that identifies the source. Standard input gets one of its own, because it cannot be read again.
    /// A file keeps its name when lines are added.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Web(url) => url.to_string(),
            Self::File(path) => path.display().to_string(),
            Self::Stdin => WorkerId::of_this_machine().to_string(),
        }
    }
}

impl FromStr for Source {
    type Err = InvalidSource;

    /// Parses a source: `-` is standard input, a text with a scheme is a URL, and any other is a path.
    fn from_str(text: &str) -> Result<Self, InvalidSource> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        if !text.contains("://") {
            return Ok(Self::File(text.into()));
        }
        CanonicalUrl::parse(text)
            .map(|url| {
                Self::Web(
                    Url::parse(text.trim()).ok().and_then(|written| url.spelling(written)).unwrap_or(url),
                )
            })
            .map_err(|error| InvalidSource::Url(trawl_common::text::printable(text, 200), error))
    }
}

impl Source {
    /// Whether its name is that of a list of tasks, requests and URLs: JSON Lines, optionally compressed.
    pub(crate) fn is_named_like_entries(&self) -> bool {
        let name = match self {
            Self::Web(url) => url.to_url().path().to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
            Self::Stdin => return false,
        };
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        [".jsonl", ".ndjson"].into_iter().any(|ending| name.ends_with(ending))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Web(url) => url.fmt(f),
            Self::File(path) => path.display().fmt(f),
            Self::Stdin => f.write_str("standard input"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_recognised_by_how_it_is_written() {
        assert_eq!("-".parse(), Ok(Source::Stdin));
        assert_eq!("maps/sitemap.xml".parse(), Ok(Source::File("maps/sitemap.xml".into())));
        let web = Source::Web("https://example.com/sitemap.xml".parse().unwrap());
        assert_eq!("https://EXAMPLE.com/sitemap.xml".parse(), Ok(web));
        let signed = "http://a.example/%7Ea?sig=a%2fb".parse::<Source>().unwrap();
        assert_eq!(signed.to_string(), "http://a.example/%7Ea?sig=a%2fb");
        assert!("ftp://example.com/sitemap.xml".parse::<Source>().is_err());
    }

    #[test]
    fn a_file_is_known_by_its_name_and_standard_input_by_none_that_another_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.txt");
        let file = Source::File(path.clone());
        let before = file.identity();
        std::fs::write(path, "http://a.example/\n").unwrap();
        assert_eq!(file.identity(), before);
        assert_ne!(Source::Stdin.identity(), Source::Stdin.identity());
    }

    #[test]
    fn a_list_of_entries_is_recognised_by_its_name() {
        let is_one = |text: &str| text.parse::<Source>().unwrap().is_named_like_entries();
        for name in
            ["a/tasks.jsonl", "tasks.ndjson", "t.jsonl.gz", "t.ndjson.gz", "https://a.example/t.jsonl?a=1"]
        {
            assert!(is_one(name), "{name}");
        }
        assert!(!is_one("-") && !is_one("sitemap.xml") && !is_one("https://a.example/?tasks.jsonl"));
    }
}
