//! Conditional requests, answered in full only if the page has changed (RFC 9110 13.1).

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use trawl_common::spider::page_history::Validators;

/// Returns the header fields of a conditional request (RFC 9110 13.1.2 and 13.1.3). Servers that support entity tags
/// ignore the date.
pub(super) fn fields(validators: &Validators) -> Vec<(HeaderName, &str)> {
    let fields = [(IF_NONE_MATCH, validators.etag()), (IF_MODIFIED_SINCE, validators.last_modified())];
    fields.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// Returns the header fields of a conditional request as a map.
pub(super) fn headers(validators: &Validators) -> HeaderMap {
    let fields = fields(validators).into_iter();
    fields.filter_map(|(name, text)| Some((name, HeaderValue::from_str(text).ok()?))).collect()
}
