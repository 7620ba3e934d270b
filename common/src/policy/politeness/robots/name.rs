//! The name by which a `robots.txt` addresses a crawler.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};
use crate::text::printable;

/// A product token: `trawl`, `MJ12bot`, `archive.org_bot`.
///
/// RFC 9309 allows letters, `-` and `_`. Real crawlers also have digits and dots in their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RobotsName(Arc<str>);

/// The error for a text that cannot be a [`RobotsName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name for robots.txt: write letters, digits, `-`, `_` and `.` alone, as `my-bot`")]
pub struct InvalidRobotsName(String);

/// Product names that say which browser a client resembles, not which crawler it is.
const BROWSERS: &[&str] = &[
    "AppleWebKit",
    "Build",
    "Chrome",
    "Chromium",
    "CriOS",
    "Edg",
    "EdgA",
    "Edge",
    "EdgiOS",
    "Firefox",
    "FxiOS",
    "Gecko",
    "HeadlessChrome",
    "KHTML",
    "Konqueror",
    "Mobile",
    "Mozilla",
    "MSIE",
    "OPR",
    "Opera",
    "Presto",
    "Safari",
    "SamsungBrowser",
    "Trident",
    "Ubuntu",
    "Version",
    "Vivaldi",
];

impl RobotsName {
    /// Returns the product name in a `User-Agent`: `shopbot` in `shopbot/1.0` and in `Mozilla/5.0 (compatible;
    /// shopbot/1.0)`. `None` for that of a browser.
    pub(crate) fn of_user_agent(user_agent: &str) -> Option<Self> {
        let compatible = user_agent.split_once("compatible;").map(|(_, rest)| rest.trim_start());
        let products = user_agent
            .split([' ', ';', '(', ')', ','])
            .filter(|word| word.contains('/') && !word.contains("://"));
        let candidates = std::iter::once(user_agent).chain(compatible).chain(products).map(token);
        let mut names = candidates.filter(|name| !name.is_empty() && !is_browser(name));
        names.next().map(|name| Self(name.into()))
    }

    /// Returns whether a `user-agent` line with this value means the crawler.
    ///
    /// It does by the letters that it begins with, as in RFC 9309, and also by what its author will have meant: a
    /// name with digits and dots, one of several separated by commas, or a whole `User-Agent`.
    pub(super) fn is_meant_by(&self, value: &[u8]) -> bool {
        let value = String::from_utf8_lossy(value);
        let is_own = |name: &str| name.eq_ignore_ascii_case(&self.0);
        let is_listed = |name: &str| is_own(token(name)) || is_own(letters(name));
        value.split(',').map(str::trim).any(is_listed)
            || Self::of_user_agent(&value).is_some_and(|name| is_own(&name.0))
    }
}

/// Returns the name at the start of a text; people write versions and more after it.
fn token(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text[..end].trim_matches('.')
}

/// Returns the name at the start of a text, as RFC 9309 writes names.
fn letters(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
    &text[..text.find(|c| !is_part(c)).unwrap_or(text.len())]
}

fn is_browser(name: &str) -> bool {
    BROWSERS.iter().any(|browser| name.eq_ignore_ascii_case(browser))
}

/// The name of a crawler that sets none.
impl Default for RobotsName {
    fn default() -> Self {
        Self("trawl".into())
    }
}

impl FromStr for RobotsName {
    type Err = InvalidRobotsName;

    fn from_str(text: &str) -> Result<Self, InvalidRobotsName> {
        if text.is_empty() || token(text) != text {
            return Err(InvalidRobotsName(printable(text, 80)));
        }
        Ok(Self(text.into()))
    }
}

text!(RobotsName);
as_text!(RobotsName);

#[cfg(test)]
mod tests {
    use super::*;

    fn of_user_agent(user_agent: &str) -> Option<String> {
        RobotsName::of_user_agent(user_agent).map(String::from)
    }

    #[test]
    fn a_user_agent_tells_who_the_crawler_is_and_not_which_browser_it_is_like() {
        for (user_agent, name) in [
            ("trawl/0.1.0", "trawl"),
            ("shopbot (+https://shop.example/bot)", "shopbot"),
            ("mybot2/1.0", "mybot2"),
            ("Mozilla/5.0 (compatible; shopbot/1.0)", "shopbot"),
            ("Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://bots.example/)", "MJ12bot"),
            ("Mozilla/5.0 (compatible; archive.org_bot +http://bots.example/)", "archive.org_bot"),
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://b.example) \
                 Chrome/116.0 Safari/537.36",
                "bingbot",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1 (KHTML, like Gecko) Version/17.4 Safari/605.1 \
                 (Applebot/0.1; +http://a.example/bot)",
                "Applebot",
            ),
            ("LinkBot/1.0 (compatible; Mozilla/5.0; +http://l.example)", "LinkBot"),
        ] {
            assert_eq!(of_user_agent(user_agent).as_deref(), Some(name), "{user_agent}");
        }
    }

    #[test]
    fn a_browser_has_no_name() {
        for user_agent in [
            "",
            "*",
            "Mozilla/5.0",
            "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
            "Mozilla/5.0 (Linux; Android 10; K Build/QP1A) AppleWebKit/537.36 (KHTML, like Gecko) \
             Chrome/124.0.0.0 Mobile Safari/537.36 Edg/124.0",
            "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
            "Mozilla/5.0 (compatible; +https://shop.example/bot)",
        ] {
            assert_eq!(of_user_agent(user_agent), None, "{user_agent}");
        }
    }

    #[test]
    fn a_name_is_one_word_without_a_version() {
        for name in ["trawl", "MJ12bot", "archive.org_bot", "my-bot"] {
            assert_eq!(name.parse::<RobotsName>().unwrap().as_str(), name);
        }
        for nonsense in ["", "*", "my bot", "bot/1.0", ".bot", "b\u{f6}t", "a\nb"] {
            let error = nonsense.parse::<RobotsName>().unwrap_err().to_string();
            assert!(error.contains("`my-bot`") && !error.contains('\n'), "{error}");
        }
    }
}
