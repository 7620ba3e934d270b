//! Sitemaps in every form: the result does not depend on how the bytes arrive, and nothing exceeds its limit.
#![no_main]

use std::io::{Read, Write};
use std::ops::ControlFlow;

use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use trawl_producer::sitemap::{Found, Limits, Origin, Summary, read};

/// Small limits, so that the fuzzer reaches them.
const LIMITS: Limits = Limits { max_bytes: 1 << 20, max_entries: 1000, max_loc_bytes: 256 };

fuzz_target!(|source: &[u8]| {
    let whole = outcome(source);
    let in_pieces = outcome(InPieces(source));
    // The decompressor decides how far a damaged gzip stream is read.
    if !matches!(&whole.2, Some(error) if error.starts_with("gzip stream")) {
        assert_eq!(in_pieces, whole);
    }
    if !source.starts_with(&[0x1f, 0x8b]) {
        assert_eq!(outcome(gzip(source).as_slice()), whole);
    }
});

/// Returns everything found, the counts, and the error if there was one.
fn outcome(source: impl Read) -> (Vec<Found>, Summary, Option<String>) {
    let mut found = Vec::new();
    let result = read(source, &Origin::default(), &LIMITS, &mut |one| {
        check(&one);
        found.push(one);
        ControlFlow::Continue(())
    });
    let (summary, error) = match result {
        Ok(summary) => (summary, None),
        Err(error) => (error.before, Some(error.to_string())),
    };
    assert_eq!(found.len() as u64, summary.entries());
    // The number of bytes read beyond the last entry is not specified.
    (found, Summary { bytes: 0, ..summary }, error)
}

fn check(found: &Found) {
    match found {
        Found::Url(entry) => check_location(&entry.loc),
        Found::Sitemap(loc) => check_location(loc),
        Found::Broken(broken) => assert!(broken.text.len() <= 200),
    }
}

fn check_location(loc: &str) {
    assert!(!loc.is_empty() && loc.len() <= LIMITS.max_loc_bytes);
    assert_eq!(loc.trim(), loc);
}

/// A source that returns a few bytes at a time.
struct InPieces<'a>(&'a [u8]);

impl Read for InPieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let len = out.len().min(7);
        self.0.read(&mut out[..len])
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    encoder.write_all(plain).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
