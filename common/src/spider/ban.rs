//! `[ban]`: answers that look like pages but mean that the crawler is not wanted.

use regex::RegexSet;

use super::pattern;
use crate::frontier::outcome::{Class, Failure};
use crate::mistake::{Mistake, Sited};
use crate::web::response::Response;
use crate::web::url::CanonicalUrl;

/// `[ban]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ban {
    /// HTTP statuses of such answers.
    pub status: Vec<u16>,
    /// Regular expressions, one of which matches the URL that such an answer redirects to.
    pub redirect: Vec<Sited<String>>,
    /// Regular expressions, one of which matches the body of such an answer.
    pub text: Vec<Sited<String>>,
    /// The consequence.
    pub then: Then,
}

/// The consequence of a ban.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Then {
    /// Back off from the host, as after a 429.
    #[default]
    BackOff,
    /// Try the URL again, as after an error.
    Retry,
}

/// The rules of a spider for bans, compiled.
#[derive(Clone, Debug)]
pub struct Bans {
    status: Vec<u16>,
    redirect: RegexSet,
    text: RegexSet,
    /// The consequence.
    pub then: Then,
}

impl Bans {
    /// Compiles `[ban]`. Fails with the invalid patterns.
    pub fn new(ban: &Ban) -> Result<Self, Vec<Mistake>> {
        let Ban { status, redirect, text, then } = ban;
        match (pattern::all("ban.redirect", redirect), pattern::all("ban.text", text)) {
            (Ok(redirect), Ok(text)) => Ok(Self { status: status.clone(), redirect, text, then: *then }),
            (redirect, text) => Err([redirect.err(), text.err()].into_iter().flatten().flatten().collect()),
        }
    }

    /// Returns the ban if this status means one.
    pub fn by_status(&self, status: u16) -> Option<Failure> {
        let is_ban = self.status.contains(&status);
        is_ban.then(|| banned(Some(status), format_args!("a ban by its status {status}")))
    }

    /// Returns the ban if a redirect to `target` means one.
    pub fn by_redirect(&self, target: &CanonicalUrl) -> Option<Failure> {
        let is_ban = self.redirect.is_match(target.as_str());
        is_ban.then(|| banned(None, format_args!("a ban by its redirect to {target}")))
    }

    /// Returns the ban if the page means one.
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
        Bans::new(&ban).unwrap()
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
