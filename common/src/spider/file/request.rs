//! `[request]`: what is sent, and what may not be.

use std::collections::HashSet;

use url::Url;

use super::given::Given;
use super::secret::secret;
use super::section::Section;
use crate::settings::ServerUrl;
use crate::spider::{Request, Secret};

/// Header fields that are not for a spider to set, and why.
const RESERVED: &[(&str, &str)] = &[
    ("user-agent", "use `request.user_agent`"),
    ("cookie", "use `request.cookies`"),
    ("host", "it is the URL's"),
    ("content-length", "no body is sent"),
    ("transfer-encoding", "no body is sent"),
    ("connection", "connections are trawl's business"),
    ("keep-alive", "connections are trawl's business"),
    ("proxy-connection", "connections are trawl's business"),
    ("te", "connections are trawl's business"),
    ("trailer", "connections are trawl's business"),
    ("upgrade", "connections are trawl's business"),
    ("expect", "no body is sent"),
    ("proxy-authorization", "write user and password into `request.proxy`"),
    ("accept-encoding", "trawl asks for what it can unpack"),
    ("range", "pages are fetched whole"),
    ("if-none-match", "use `recrawl = \"changed\"`"),
    ("if-modified-since", "use `recrawl = \"changed\"`"),
];

/// `has_home`: whether it is known to which hosts fields and cookies may be sent.
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
    if is_field_value(&text) { Some(text) } else { given.wrong("may only have printable ASCII characters") }
}

type Pair = (String, Secret);

fn pairs(section: &Section<'_>, has_home: bool, pair: fn(&str, &Given<'_>) -> Option<Secret>) -> Vec<Pair> {
    let mut names = HashSet::new();
    let mut pairs = Vec::new();
    for (name, place, given) in section.entries() {
        if !is_token(&name) {
            given.notes.wrong(place, format_args!("`{}` cannot be a name here", given.key));
        } else if !names.insert(name.to_ascii_lowercase()) {
            given.notes.wrong(place, format_args!("{} is there twice", given.key));
        } else if let Some(value) = pair(&name, &given) {
            pairs.push((name, value));
        }
    }
    if !names.is_empty() && !has_home {
        section.wrong::<()>(
            "are sent to the spider's own hosts alone: say which, by `allowed_domains` or by a URL in `[start]`",
        );
    }
    pairs
}

fn header(name: &str, given: &Given<'_>) -> Option<Secret> {
    if let Some((_, why)) = RESERVED.iter().find(|(reserved, _)| name.eq_ignore_ascii_case(reserved)) {
        return given.wrong(format_args!("may not be set: {why}"));
    }
    let value = sent(given)?;
    if is_field_value(value.reveal()) {
        Some(value)
    } else {
        given.wrong("its value cannot be sent in a header")
    }
}

fn cookie(_: &str, given: &Given<'_>) -> Option<Secret> {
    let value = sent(given)?;
    if is_field_value(value.reveal()) && !value.reveal().contains([';', ',', ' ', '\t']) {
        Some(value)
    } else {
        given.wrong("its value cannot be sent in a cookie: it may have no white space, `,` or `;`")
    }
}

/// A value that goes to a site. What is tried sends nothing that only this machine knows.
fn sent(given: &Given<'_>) -> Option<Secret> {
    if given.notes.is_for_trial() && given.is_table() {
        return given.wrong("no environment variable is read where a spider is tried over HTTP");
    }
    secret(given)
}

fn proxy(given: &Given<'_>) -> Option<ServerUrl> {
    if given.notes.is_for_trial() {
        return given.wrong("no spider chooses a proxy where it is tried over HTTP");
    }
    let secret = secret(given)?;
    let is_proxy = |url: &Url| matches!(url.scheme(), "http" | "socks5") && url.has_host();
    if Url::parse(secret.reveal()).is_ok_and(|url| is_proxy(&url)) {
        Some(ServerUrl::new(secret.reveal()))
    } else {
        given.wrong("write http://user:password@host:port, or socks5://")
    }
}

/// Whether it can be the name of a header field or a cookie (RFC 9110 5.6.2).
fn is_token(name: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Whether it can be a field's value (RFC 9110 5.5), without what is obsolete.
fn is_field_value(value: &str) -> bool {
    value.bytes().all(|b| matches!(b, b'\t' | b' '..=b'~')) && value.trim() == value
}
