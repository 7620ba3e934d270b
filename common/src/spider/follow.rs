//! The links that a spider follows.

use std::num::NonZeroU64;

use super::Selector;
use crate::mistake::Sited;

/// `[follow]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    /// Regular expressions: a URL is followed if it matches one of them; any URL if there are none.
    pub include: Vec<Sited<String>>,
    /// Regular expressions: a URL that matches one of them is not followed.
    pub exclude: Vec<Sited<String>>,
    /// A selector: only links inside the elements that it matches are followed.
    pub area: Option<Selector>,
    /// Whether all links of a page are followed; if not, only those of `next`.
    pub links: bool,
    /// URLs to follow in addition, found in a page or in JSON. The pages that they lead to have the depth of this page,
    /// so `depth` does not cut off a paginated list.
    pub next: Vec<Selector>,
    /// Maximum number of links from the start.
    pub depth: u16,
    /// Maximum number of URLs of one host in a crawl.
    pub max_per_host: Option<NonZeroU64>,
    /// Maximum number of occurrences of one path segment: `/a/b/a/b/a/` has `a` three times.
    pub max_repeats: u8,
    /// Whether `rel=nofollow` and `<meta name=robots content=nofollow>` are honoured.
    pub nofollow: bool,
    /// Whether `<meta name=robots content=noindex>` is honoured: such a page yields no item.
    pub noindex: bool,
    /// Whether a page that names another as canonical stands for that one, if that was not seen before, and
    /// otherwise yields no item.
    pub canonical: bool,
    /// Whether `<meta http-equiv=refresh>` is followed.
    pub refresh: bool,
}

impl Default for Follow {
    fn default() -> Self {
        Self {
            include: Vec::new(),
            exclude: Vec::new(),
            area: None,
            links: true,
            next: Vec::new(),
            depth: 16,
            max_per_host: None,
            max_repeats: 3,
            nofollow: true,
            noindex: true,
            canonical: false,
            refresh: true,
        }
    }
}
