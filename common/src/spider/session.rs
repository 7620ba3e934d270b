//! `[session]` and `[login]`: what a spider's requests have in common, and how it logs in.

use regex::RegexSet;
use serde_json::Value;

use super::{Field, PageForm, Secret, Selector, Spider, pattern};
use crate::mistake::{Mistake, Sited};
use crate::request::RequestTemplate;
use crate::session::{SessionId, SessionOwner};
use crate::web::response::Response;
use crate::web::url::{CanonicalUrl, Fingerprint};

/// `[session]`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// The name under which several spiders have one session.
    pub share: Option<String>,
    /// Header fields of requests to the spider's own hosts, in order, with placeholders for what the log-in took.
    pub headers: Vec<(String, String)>,
}

/// `[login]`
#[derive(Clone, Debug, PartialEq)]
pub struct Login {
    /// The requests, in order.
    pub steps: Vec<LoginStep>,
    /// The answers that show that the session has lapsed.
    pub lapsed: Lapsed,
    /// The values that texts of steps name.
    pub secrets: Vec<(String, Secret)>,
}

/// A request of a log-in.
#[derive(Clone, Debug, PartialEq)]
pub struct LoginStep {
    /// How it is made.
    pub request: LoginRequest,
    /// Values that are taken from its response.
    pub take: Vec<(String, Field)>,
    /// The conditions for its response.
    pub expect: StepExpect,
}

/// How a step's request is made.
#[derive(Clone, Debug, PartialEq)]
pub enum LoginRequest {
    /// As it is written.
    Template(RequestTemplate),
    /// By a form of the response before it.
    Form(PageForm),
}

/// `expect`: conditions for a response, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepExpect {
    /// Regular expressions, one of which must match its URL.
    pub url: Vec<Sited<String>>,
    /// A selector that must find an element, or a path that must find a value of JSON.
    pub selector: Option<Selector>,
    /// Regular expressions, one of which must match its body.
    pub text: Vec<Sited<String>>,
}

/// `lapsed`: signs of a session that has lapsed, each of which is enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Lapsed {
    /// HTTP statuses.
    pub status: Vec<u16>,
    /// Regular expressions for URLs that a response redirects to.
    pub url: Vec<Sited<String>>,
    /// A selector that finds an element, or a path that finds a value of JSON.
    pub selector: Option<Selector>,
    /// Regular expressions for bodies.
    pub text: Vec<Sited<String>>,
}

impl Default for Lapsed {
    fn default() -> Self {
        Self { status: vec![401], url: Vec::new(), selector: None, text: Vec::new() }
    }
}

/// The signs of a session that has lapsed, compiled; without the selector, which needs the page to be read.
#[derive(Clone, Debug)]
pub struct LapseSigns {
    status: Vec<u16>,
    url: RegexSet,
    text: RegexSet,
}

impl LapseSigns {
    /// Compiles the signs. Fails with the invalid patterns.
    pub fn new(lapsed: &Lapsed) -> Result<Self, Vec<Mistake>> {
        let Lapsed { status, url, text, selector: _ } = lapsed;
        match (pattern::all("login.lapsed.url", url), pattern::all("login.lapsed.text", text)) {
            (Ok(url), Ok(text)) => Ok(Self { status: status.clone(), url, text }),
            (url, text) => Err([url.err(), text.err()].into_iter().flatten().flatten().collect()),
        }
    }

    /// Returns the sign that this status is, in words.
    pub fn by_status(&self, status: u16) -> Option<String> {
        self.status.contains(&status).then(|| format!("its status is {status}"))
    }

    /// Returns the sign that a URL is, to which a response redirects or redirects have led.
    pub fn by_url(&self, url: &CanonicalUrl) -> Option<String> {
        let found = self.url.matches(url.as_str()).into_iter().next()?;
        Some(format!("it redirects to a URL that `{}` matches", self.url.patterns()[found]))
    }

    /// Returns the sign in a page.
    pub fn by_page(&self, response: &Response) -> Option<String> {
        if let Some(sign) = self.by_status(response.status) {
            return Some(sign);
        }
        if self.text.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(&response.body);
        let found = self.text.matches(&text).into_iter().next()?;
        Some(format!("`{}` matches its text", self.text.patterns()[found]))
    }
}

impl Login {
    /// Returns the secrets with the names that placeholders have.
    pub fn values(&self) -> serde_json::Map<String, Value> {
        self.secrets.iter().map(|(name, secret)| (name.clone(), secret.reveal().into())).collect()
    }
}

impl Spider {
    /// Returns the name of its session; `None` if it has none. Another way to log in, or another account, has a session
    /// of its own.
    pub fn session_id(&self) -> Option<SessionId> {
        let session = self.session.as_ref()?;
        let owner = match &session.share {
            Some(share) => SessionOwner::Shared(share.as_str().into()),
            None => SessionOwner::Spider(self.name.clone()),
        };
        let name = match &self.login {
            None => "1".to_owned(),
            Some(login) => {
                let how = format!(
                    "{:?}{:?}",
                    login.steps.iter().map(LoginStep::said).collect::<Vec<_>>(),
                    login.values()
                );
                // Few digits, so that nobody tells a password by them.
                let digits = Fingerprint::from_text(&how).short() & 0xffff;
                format!("1-{digits:04x}")
            }
        };
        Some(SessionId { owner, name: name.into() })
    }
}

impl LoginStep {
    /// Returns what decides which session it makes.
    fn said(&self) -> String {
        match &self.request {
            LoginRequest::Template(template) => format!("{template:?}"),
            LoginRequest::Form(form) => format!("{} {}", form.form, form.fill),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::UnixMs;
    use crate::web::headers::Headers;

    #[test]
    fn a_lapse_is_recognised_by_status_url_and_text() {
        let one = |text: &str| vec![Sited::nowhere(text.to_owned())];
        let lapsed =
            Lapsed { status: vec![401, 403], url: one("/login"), text: one("(?i)sign in"), selector: None };
        let signs = LapseSigns::new(&lapsed).unwrap();
        let url = |text: &str| text.parse::<CanonicalUrl>().unwrap();
        assert!(signs.by_status(403).is_some() && signs.by_status(404).is_none());
        assert!(signs.by_url(&url("https://a.example/login?next=/")).is_some());
        assert_eq!(signs.by_url(&url("https://a.example/")), None);
        let page = |status, body: &'static str| Response {
            status,
            headers: Headers::default(),
            redirected_to: None,
            fetched_at: UnixMs(0),
            address: None,
            body: body.into(),
        };
        assert_eq!(signs.by_page(&page(200, "Sign In")).as_deref(), Some("`(?i)sign in` matches its text"));
        assert!(signs.by_page(&page(401, "")).is_some() && signs.by_page(&page(200, "Orders")).is_none());
    }
}
