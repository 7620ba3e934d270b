//! `[request]`: details of the spider's requests, except those that it may not set.

use std::collections::HashSet;

use url::Url;

use super::given::Given;
use super::secret::{secret, server};
use super::section::Section;
use crate::settings::ServerUrl;
use crate::spider::{Request, Secret};
use crate::web::field;

/// Reads `[request]`. `has_home` says whether it is known to which hosts fields and cookies may be sent.
pub(super) fn request(mut section: Section<'_>, has_home: bool) -> Request {
    let request = Request {
        user_agent: section.read("user_agent", user_agent),
        robots_name: section.read("robots_name", Given::parsed),
        headers: section.within("headers", |section| pairs(&section, has_home, header)).unwrap_or_default(),
        cookies: section.within("cookies", |section| pairs(&section, has_home, cookie)).unwrap_or_default(),
        proxy: section.read("proxy", proxy),
    };
    section.end();
    request
}

fn user_agent(given: &Given<'_>) -> Option<String> {
    let text = given.words()?.value;
    if field::is_value(&text) { Some(text) } else { given.wrong("may only have printable ASCII characters") }
}

type Pair = (String, Secret);

fn pairs(section: &Section<'_>, has_home: bool, pair: fn(&str, &Given<'_>) -> Option<Secret>) -> Vec<Pair> {
    let mut names = HashSet::new();
    let mut pairs = Vec::new();
    for (name, place, given) in section.entries() {
        if !field::is_token(&name) {
            given.notes.wrong(place, format_args!("`{}` cannot be a name here", given.key));
        } else if !names.insert(name.to_ascii_lowercase()) {
            given.notes.wrong(place, format_args!("{} is there twice", given.key));
        } else if let Some(value) = pair(&name, &given) {
            pairs.push((name, value));
        }
    }
    if !names.is_empty() && !has_home {
        section.wrong::<()>(NO_HOME);
    }
    pairs
}

/// The mistake of fields that would be sent nowhere.
pub(super) const NO_HOME: &str =
    "are sent to the spider's own hosts alone: say which, by `allowed_domains` or by a URL in `[start]`";

/// Returns the reason why a header field of this name may not be set, if there is one.
pub(super) fn refused_header(name: &str) -> Option<String> {
    if !field::is_token(name) {
        return Some("cannot be a name here".to_owned());
    }
    field::reserved(name).map(|why| format!("may not be set: {why}"))
}

fn header(name: &str, given: &Given<'_>) -> Option<Secret> {
    if let Some(why) = field::reserved(name) {
        return given.wrong(format_args!("may not be set: {why}"));
    }
    let value = sent(given)?;
    if field::is_value(value.reveal()) {
        Some(value)
    } else {
        given.wrong("its value cannot be sent in a header")
    }
}

fn cookie(_: &str, given: &Given<'_>) -> Option<Secret> {
    let value = sent(given)?;
    if field::is_cookie_value(value.reveal()) {
        Some(value)
    } else {
        given.wrong("its value cannot be sent in a cookie: it may have no white space, `,` or `;`")
    }
}

/// Reads a value that is sent to a site. A spider that is tried must not send what only this machine knows.
pub(super) fn sent(given: &Given<'_>) -> Option<Secret> {
    if given.notes.is_tried() && given.is_table() {
        return given.wrong("no environment variable is read where a spider is tried over HTTP");
    }
    secret(given)
}

/// Reads the address of a proxy.
pub(super) fn proxy(given: &Given<'_>) -> Option<ServerUrl> {
    if given.notes.is_tried() {
        return given.wrong("no spider chooses a proxy where it is tried over HTTP");
    }
    let secret = secret(given)?;
    let is_proxy = |url: &Url| matches!(url.scheme(), "http" | "socks5") && url.has_host();
    if Url::parse(secret.reveal()).is_ok_and(|url| is_proxy(&url)) {
        Some(server(given, &secret))
    } else {
        given.wrong("write http://user:password@host:port, or socks5://")
    }
}
