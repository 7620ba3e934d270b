//! robots.txt: the first line of the input is the requested path, the rest is the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_common::politeness::robots::Robots;
use trawl_common::web::url::CanonicalUrl;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let file = input.get(end + 1..).unwrap_or_default();
    let [name, capitals] = ["trawl", "TRAWL"].map(|name| name.parse().expect("a name"));
    let robots = Robots::parse(file, &name);
    assert_eq!(Robots::parse(file, &capitals), robots);
    assert_eq!(Robots::parse(&with_windows_line_ends(file), &name), robots);
    assert!(robots.allows(&url(b"robots.txt").expect("a URL")));
    let Some(url) = url(&input[..end]) else { return };
    let forbids_nothing = !file.to_ascii_lowercase().windows(2).any(|pair| pair == b"di");
    assert!(robots.allows(&url) || !forbids_nothing);
});

fn url(path: &[u8]) -> Option<CanonicalUrl> {
    CanonicalUrl::parse(&format!("https://example.com/{}", String::from_utf8_lossy(path))).ok()
}

fn with_windows_line_ends(file: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = file.split(|byte| matches!(byte, b'\r' | b'\n')).collect();
    lines.join(&b"\r\n"[..])
}
