//! `[urls]`: a section that `trawl.toml` has as well.

use super::given::Given;
use super::section::Section;
use crate::settings::Urls;

/// Reads `[urls]`, with `usual` as the defaults.
pub(super) fn urls(mut section: Section<'_>, usual: &Urls) -> Urls {
    let strip_params = section.read("strip_params", |given| given.all(Given::parsed));
    let urls = Urls {
        strip_tracking: section.read("strip_tracking", Given::flag).unwrap_or(usual.strip_tracking),
        strip_params: strip_params.unwrap_or_else(|| usual.strip_params.clone()),
        max_length: section.read("max_length", |given| given.whole(1)).unwrap_or(usual.max_length),
        sort_query: section.read("sort_query", Given::flag).unwrap_or(usual.sort_query),
    };
    section.end();
    urls
}
