//! The directives for crawlers that a page has.

use trawl_common::web::field::is_token;
use trawl_common::web::response::Response;

use super::page::Metas;

/// Returns the directives of a page's `<meta>` for robots, and of its header `X-Robots-Tag`, for the crawler of this name.
pub(crate) fn robots_directives<'a>(
    response: &'a Response,
    metas: &'a Metas,
    name: &'a str,
) -> impl Iterator<Item = &'a str> {
    let headers = response.headers.all("x-robots-tag");
    let headers = headers.flat_map(move |value| directives(value, name));
    headers.chain(metas.robots.iter().flat_map(|value| value.split(',')).map(str::trim))
}

/// Returns the directives of an `X-Robots-Tag` for every crawler or for the one of this name. Directives after a
/// crawler's name and a colon are for that crawler, up to the next name.
fn directives<'a>(value: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    const WITH_VALUE: &[&str] =
        &["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
    let mut applies = true;
    value.split(',').map(str::trim).filter_map(move |part| {
        let (crawler, directive) = part.split_once(':').unwrap_or(("", part));
        let crawler = crawler.trim();
        let names_one =
            is_token(crawler) && !WITH_VALUE.iter().any(|other| crawler.eq_ignore_ascii_case(other));
        if names_one {
            applies = crawler == "*" || crawler.eq_ignore_ascii_case(name);
        }
        applies.then_some(if names_one { directive.trim() } else { part })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_be_for_one_crawler() {
        for (value, expected) in [
            ("noindex", &["noindex"][..]),
            ("noindex, nofollow", &["noindex", "nofollow"]),
            ("trawl: noindex, nofollow", &["noindex", "nofollow"]),
            ("Trawl : none", &["none"]),
            ("googlebot: noindex, nofollow", &[]),
            ("googlebot: noindex, trawl: nofollow", &["nofollow"]),
            ("nofollow, googlebot: noindex", &["nofollow"]),
            ("googlebot: noindex, *: nofollow", &["nofollow"]),
            ("unavailable_after: 25 Jun 2030 15:00:00 PST", &["unavailable_after: 25 Jun 2030 15:00:00 PST"]),
            ("max-snippet:5, nofollow", &["max-snippet:5", "nofollow"]),
        ] {
            assert_eq!(directives(value, "trawl").collect::<Vec<_>>(), expected, "{value}");
        }
    }
}
