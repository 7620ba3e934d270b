//! Canonicalisation: the canonical form is a fixed point, and its parts equal those of the parser.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_common::web::url::{CanonicalUrl, MAX_URL_BYTES};

fuzz_target!(|text: &str| {
    let Ok(url) = CanonicalUrl::parse(text) else { return };
    assert_eq!(CanonicalUrl::parse(url.as_str()).as_ref(), Ok(&url));
    assert!(url.as_str().len() <= MAX_URL_BYTES);
    let parts = url.to_url();
    assert_eq!(parts.host_str(), Some(url.host().as_str()));
    assert_eq!((parts.username(), parts.password(), parts.fragment()), ("", None, None));
});
