//! `[proxies]`

use super::given::Given;
use super::request;
use super::section::Section;
use crate::settings::ServerUrl;
use crate::spider::{Proxies, ProxyPer};

/// Maximum number of proxies: each has connections of its own.
const MAX_PROXIES: usize = 100;

/// Reads `[proxies]`. `has_session`: whether the spider keeps a session.
pub(super) fn proxies(mut section: Section<'_>, has_session: bool) -> Option<Proxies> {
    let urls = section.need("urls", urls);
    let usual = if has_session { ProxyPer::Spider } else { ProxyPer::Host };
    let per = section.read("per", Given::variant).unwrap_or(usual);
    section.end();
    Some(Proxies { urls: urls?, per })
}

fn urls(given: &Given<'_>) -> Option<Vec<ServerUrl>> {
    let urls = given.all(request::proxy)?;
    match urls.len() {
        0 => given.wrong("must name a proxy"),
        1..=MAX_PROXIES => Some(urls),
        _ => given.wrong(format_args!("there are {MAX_PROXIES} at most")),
    }
}
