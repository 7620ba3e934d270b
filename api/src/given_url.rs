//! URLs in parameters and bodies of requests.

use std::fmt::Display;

use trawl_common::settings::Urls;
use trawl_common::text::printable;
use trawl_common::web::url::CanonicalUrl;

use crate::problem::Problem;

/// Parses the value of the member or parameter `name` as the URL of a page.
pub(crate) fn page(name: &str, text: &str, urls: &Urls) -> Result<CanonicalUrl, Problem> {
    let url = urls.canonical(parsed(name, text)?);
    if urls.takes(&url) { Ok(url) } else { Err(wrong(name, text, urls.too_long())) }
}

/// Parses the value of the member or parameter `name` as a URL.
pub(crate) fn parsed(name: &str, text: &str) -> Result<CanonicalUrl, Problem> {
    CanonicalUrl::parse(text).map_err(|error| wrong(name, text, error))
}

/// Returns the problem of a member or parameter whose text is no URL that is taken.
pub(crate) fn wrong(name: &str, text: &str, reason: impl Display) -> Problem {
    Problem::malformed(format_args!("{name}: `{}`: {reason}", printable(text, 200)))
}
