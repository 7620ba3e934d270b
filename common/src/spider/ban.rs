//! `[ban]`: answers that look like pages and say that the crawler is not wanted.

use regex::RegexSet;

use super::pattern;
use super::place::{Mistake, Sited};
use crate::frontier::outcome::{Class, Failure};
use crate::ports::Response;
use crate::web::url::CanonicalUrl;

/// `[ban]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ban {
    /// Statuses of such answers.
    pub status: Vec<u16>,
    /// Regular expressions: one of them is in the URL that such an answer redirects to.
    pub redirect: Vec<Sited<String>>,
    /// Regular expressions: one of them is in the body of such an answer.
    pub text: Vec<Sited<String>>,
    /// What follows.
    pub then: Then,
}

/// What follows from a ban.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// A back-off from the host, as after a 429.
    #[default]
    BackOff,
    /// The URL is tried again, as after an error.
    Retry,
}

/// The bans of a spider, ready to be looked for.
#[derive(Clone, Debug)]
pub struct Bans {
    status: Vec<u16>,
    redirect: RegexSet,
    text: RegexSet,
    /// What follows.
    pub then: Then,
}

impl Bans {
    /// Those of `[ban]`. The mistakes are the patterns that are none.
    pub fn of(ban: &Ban) -> Result<Self, Vec<Mistake>> {
        let Ban { status, redirect, text, then } = ban;
        match (pattern::all("ban.redirect", redirect), pattern::all("ban.text", text)) {
            (Ok(redirect), Ok(text)) => Ok(Self { status: status.clone(), redirect, text, then: *then }),
            (redirect, text) => Err([redirect.err(), text.err()].into_iter().flatten().flatten().collect()),
        }
    }

    /// The ban that an answer with this status is.
    pub fn by_status(&self, status: u16) -> Option<Failure> {
        let is_ban = self.status.contains(&status);
        is_ban.then(|| banned(Some(status), format_args!("a ban by its status {status}")))
    }

    /// The ban that an answer is which redirects to `target`.
    pub fn by_redirect(&self, target: &CanonicalUrl) -> Option<Failure> {
        let is_ban = self.redirect.is_match(target.as_str());
        is_ban.then(|| banned(None, format_args!("a ban by its redirect to {target}")))
    }

    /// The ban that a page is.
    pub fn by_page(&self, response: &Response) -> Option<Failure> {
        if self.text.is_empty() {
            return self.by_status(response.status);
        }
        let text = String::from_utf8_lossy(&response.body);
        let found = self.text.matches(&text).into_iter().next();
        let by_text = || {
            let what = format_args!("a ban by its text: `{}`", self.text.patterns()[found?]).to_string();
            Some(banned(Some(response.status), what))
        };
        self.by_status(response.status).or_else(by_text)
    }
}

fn banned(status: Option<u16>, what: impl std::fmt::Display) -> Failure {
    Failure { status, ..Failure::new(Class::Banned, what) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::UnixMs;
    use crate::web::headers::Headers;

    fn bans(ban: Ban) -> Bans {
        Bans::of(&ban).unwrap()
    }

    fn patterns(list: &[&str]) -> Vec<Sited<String>> {
        list.iter().map(|text| Sited::nowhere(*text)).collect()
    }

    fn page(status: u16, body: &'static [u8]) -> Response {
        Response {
            status,
            headers: Headers::default(),
            redirected_to: None,
            fetched_at: UnixMs(0),
            address: None,
            body: body.into(),
        }
    }

    #[test]
    fn a_ban_is_recognised_by_status_redirect_and_text() {
        let bans = bans(Ban {
            status: vec![403],
            redirect: patterns(&["/login"]),
            text: patterns(&["(?i)captcha", "denied"]),
            ..Ban::default()
        });
        let url = |text: &str| text.parse::<CanonicalUrl>().unwrap();
        assert!(bans.by_status(403).is_some() && bans.by_status(404).is_none());
        assert!(bans.by_redirect(&url("http://a.example/login?next=/")).is_some());
        assert!(bans.by_redirect(&url("http://a.example/x")).is_none());
        let message = bans.by_page(&page(200, b"<p>Solve this CAPTCHA \xff</p>")).unwrap();
        assert_eq!(message.to_string(), "banned: a ban by its text: `(?i)captcha`");
        assert_eq!(bans.by_page(&page(200, b"<h1>A page</h1>")), None);
        assert!(bans.by_page(&page(403, b"")).is_some());
    }

    #[test]
    fn without_rules_nothing_is_a_ban() {
        let bans = bans(Ban::default());
        assert_eq!(bans.by_page(&page(200, b"captcha")), None);
        assert_eq!(bans.by_redirect(&"http://a.example/".parse().unwrap()), None);
    }
}
