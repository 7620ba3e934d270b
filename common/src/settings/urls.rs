//! `[urls]`: which URLs count as the same although their queries differ.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::as_text::as_text;
#[cfg(doc)]
use crate::web::url::MAX_URL_BYTES;
use crate::web::url::{CanonicalUrl, InvalidUrl};

/// The query parameters that campaigns and ad networks append, and that do not choose content; those that begin
/// with `utm_` are dropped too.
const TRACKING: &[&str] = &[
    "dclid",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "igshid",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "oly_anon_id",
    "oly_enc_id",
    "ttclid",
    "twclid",
    "vero_id",
    "wbraid",
    "yclid",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
];

/// The maximum length that browsers accepted for a long time, and that sites therefore keep to.
const DEFAULT_MAX_LENGTH: u16 = 2083;

/// Rules by which two URLs count as one. Every URL that a source names or a page links to passes through
/// [`Urls::canonical`] before it is looked up among the seen ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Urls {
    /// Whether query parameters that only track visitors are dropped: `utm_source`, `fbclid`.
    pub strip_tracking: bool,
    /// Further parameters that are dropped.
    #[serde(default)]
    pub strip_params: Vec<Param>,
    /// Whether parameters are sorted by their names.
    pub sort_query: bool,
    /// Maximum length of a URL that is taken in, in bytes; at most [`MAX_URL_BYTES`].
    pub max_length: u16,
}

impl Default for Urls {
    fn default() -> Self {
        Self {
            strip_tracking: true,
            strip_params: Vec::new(),
            sort_query: false,
            max_length: DEFAULT_MAX_LENGTH,
        }
    }
}

impl Urls {
    /// Returns the URL that represents all URLs that count as the same as `url`. It represents itself.
    #[must_use]
    pub fn canonical(&self, url: CanonicalUrl) -> CanonicalUrl {
        match self.kept(url.as_str()) {
            Some(kept) => CanonicalUrl::parse(&kept).unwrap_or(url),
            None => url,
        }
    }

    /// Returns the URL that represents `url`, and the spelling in which it is asked for, if that is another: as it is
    /// written, without the parameters that are dropped.
    ///
    /// # Errors
    ///
    /// Returns the reason why it cannot be crawled.
    pub fn spelled(&self, mut url: Url) -> Result<(CanonicalUrl, Option<CanonicalUrl>), InvalidUrl> {
        // Of each link of each page; few have an escape.
        if !url.as_str().contains('%') {
            return Ok((self.canonical(CanonicalUrl::from_url(url)?), None));
        }
        let canonical = self.canonical(CanonicalUrl::from_url(url.clone())?);
        url.set_fragment(None);
        let written = match self.kept(url.as_str()) {
            Some(kept) => Url::parse(&kept).ok(),
            None => Some(url),
        };
        let spelling = written.and_then(|written| canonical.spelling(written));
        Ok((canonical, spelling))
    }

    /// Returns the spelling in which to request the URL `text`, if it differs from its canonical form.
    pub fn spelling(&self, text: &str) -> Option<CanonicalUrl> {
        self.spelled(Url::parse(text.trim()).ok()?).ok()?.1
    }

    /// Returns a URL without the parameters that are dropped, and sorted, if it is another one then.
    fn kept(&self, url: &str) -> Option<String> {
        // This runs for each link of each page; few have a query.
        let end = memchr::memchr(b'?', url.as_bytes())?;
        let (page, query) = (&url[..end], &url[end + 1..]);
        let mut pairs: Vec<&str> = query.split('&').filter(|pair| !self.strips(name(pair))).collect();
        if self.sort_query {
            // Parameters of one name stay in order: they are a list.
            pairs.sort_by_key(|pair| name(pair));
        }
        let kept = pairs.join("&");
        if kept == query {
            return None;
        }
        Some(if kept.is_empty() { page.to_owned() } else { format!("{page}?{kept}") })
    }

    /// Returns whether a URL is short enough to be taken in.
    pub fn takes(&self, url: &CanonicalUrl) -> bool {
        url.as_str().len() <= usize::from(self.max_length)
    }

    /// Returns the reason why a longer URL is not taken in.
    pub fn too_long(&self) -> String {
        format!("longer than {} bytes (urls.max_length)", self.max_length)
    }

    fn strips(&self, name: &str) -> bool {
        let tracks = || name.starts_with("utm_") || TRACKING.contains(&name);
        (self.strip_tracking && tracks()) || self.strip_params.iter().any(|param| param.fits(name))
    }
}

fn name(pair: &str) -> &str {
    pair.split('=').next().unwrap_or(pair)
}

/// The name of a query parameter as it is written in URLs, or a prefix of names with `*` at its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Param(String);

impl Param {
    fn fits(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == self.0,
        }
    }
}

impl FromStr for Param {
    type Err = NoParam;
    fn from_str(text: &str) -> Result<Self, NoParam> {
        let name = text.strip_suffix('*').unwrap_or(text);
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || "*&=?#".contains(c);
        if name.is_empty() || name.contains(is_odd) {
            Err(NoParam(text.to_owned()))
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(Param);

/// The error for a text that is no [`Param`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a query parameter: write `ref`, or `ref*` for all that begin so")]
pub struct NoParam(String);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn urls(strip: &[&str], sort_query: bool) -> Urls {
        let strip_params = strip.iter().map(|name| name.parse().unwrap()).collect();
        Urls { strip_params, sort_query, ..Urls::default() }
    }

    fn canonical(urls: &Urls, text: &str) -> String {
        urls.canonical(text.parse().unwrap()).to_string()
    }

    #[test]
    fn what_tracks_visitors_is_dropped_unless_a_setting_keeps_it() {
        let text = "http://a.example/x?utm_source=y&b=2&fbclid=q&a=1&utm_campaign=z";
        assert_eq!(canonical(&Urls::default(), text), "http://a.example/x?b=2&a=1");
        assert_eq!(canonical(&Urls::default(), "http://a.example?gclid=1"), "http://a.example/");
        let keeps = Urls { strip_tracking: false, ..Urls::default() };
        assert_eq!(canonical(&keeps, text), text);
    }

    #[test]
    fn further_parameters_are_dropped_by_name_or_by_how_they_begin() {
        let urls = urls(&["ref", "sess*"], false);
        assert_eq!(
            canonical(&urls, "http://a.example/?ref=1&reference=2&session=3&sess&a"),
            "http://a.example/?reference=2&a"
        );
        for wrong in ["", "*", "a b", "a=b", "a&b", "*a", "a#"] {
            assert!(wrong.parse::<Param>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sorted_or_not_lists_keep_their_order_and_no_query_changes_that_need_not() {
        let text = "http://a.example/?b=2&a=3&b=1";
        assert_eq!(canonical(&urls(&[], false), text), text);
        assert_eq!(canonical(&urls(&[], true), text), "http://a.example/?a=3&b=2&b=1");
        for kept in ["http://a.example/?", "http://a.example/?&&", "http://a.example/?a", "http://a.example/"]
        {
            assert_eq!(canonical(&urls(&["x"], false), kept), kept);
        }
    }

    #[test]
    fn a_url_is_asked_for_as_it_is_written_but_for_what_is_dropped() {
        let written = |urls: &Urls, text: &str| urls.spelling(text).map(|url| url.to_string());
        for (text, spelling) in [
            ("http://a.example/?sig=a%2fb&utm_source=x#y", Some("http://a.example/?sig=a%2fb")),
            ("http://a.example/%7E?utm_source=x", Some("http://a.example/%7E")),
            ("http://a.example/?sig=a%2fb&%75tm_source=x", None),
            ("http://a.example/?sig=a%2Fb", None),
            ("http://a.example/?utm_source=x", None),
            ("a%2fb", None),
        ] {
            assert_eq!(written(&Urls::default(), text).as_deref(), spelling, "{text}");
        }
        let sorted = written(&urls(&[], true), "http://a.example/?b=a%2fb&a");
        assert_eq!(sorted.as_deref(), Some("http://a.example/?a&b=a%2fb"));
    }

    #[test]
    fn every_parameter_that_is_dropped_is_documented() {
        let file = include_str!("../../../trawl.toml");
        let words: Vec<&str> =
            file.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
        for name in TRACKING {
            assert!(words.contains(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn what_stands_for_a_url_stands_for_itself(query in "[a-c=&?*%_]{0,30}", sort in any::<bool>()) {
            let urls = urls(&["a", "b*"], sort);
            if let Ok(url) = CanonicalUrl::parse(&format!("http://a.example/?{query}")) {
                let once = urls.canonical(url);
                prop_assert_eq!(urls.canonical(once.clone()), once);
            }
        }
    }
}
