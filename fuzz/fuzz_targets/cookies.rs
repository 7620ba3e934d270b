//! Cookies: the first line of the input is the host and path that sets them, the second the one that they go to; each
//! further line is a field `Set-Cookie`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_common::time::UnixMs;
use trawl_common::web::cookies::{CookieJar, SetCookie};
use trawl_common::web::url::CanonicalUrl;

const NOW: UnixMs = UnixMs(1_700_000_000_000);

fuzz_target!(|input: &[u8]| {
    let input = String::from_utf8_lossy(input);
    let mut lines = input.split('\n');
    let mut url = || CanonicalUrl::parse(&format!("https://{}", lines.next().unwrap_or_default())).ok();
    let (Some(from), Some(to)) = (url(), url()) else { return };
    let mut jar = CookieJar::default();
    for field in lines {
        let Some(set) = SetCookie::parse(&from, field, NOW) else { continue };
        jar.set(set.clone(), NOW);
        assert!(!jar.set(set, NOW), "what is there already changes nothing");
    }
    let stored = serde_json::to_string(&jar).expect("it is text");
    assert!(stored.len() < 2 << 20, "{}", stored.len());
    assert_eq!(serde_json::from_str::<CookieJar>(&stored).expect("it was written so"), jar);
    let host = |url: &CanonicalUrl| url.host().as_str().to_owned();
    for cookie in jar.cookies() {
        let from = host(&from);
        assert!(from == cookie.domain || !cookie.host_only && from.ends_with(&format!(".{}", cookie.domain)));
    }
    let Some(field) = jar.field(&to, NOW) else { return };
    assert!(field.len() <= 16 << 10 && !field.contains(['\r', '\n', '\0']));
    let is_related = host(&to) == host(&from)
        || jar.cookies().iter().any(|cookie| !cookie.host_only && host(&to).ends_with(&cookie.domain));
    assert!(is_related, "{field}");
});
