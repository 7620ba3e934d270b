//! Helpers for the tests of all formats, and the properties that all formats share.

use super::*;

/// A source that gives these bytes and then fails.
pub(super) struct Failing(pub(super) &'static [u8]);

impl Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(out)? {
            0 => Err(std::io::Error::new(std::io::ErrorKind::ConnectionReset, "connection reset")),
            read => Ok(read),
        }
    }
}

/// Everything found, and how it ended.
pub(super) fn with_limits(source: impl Read, limits: &Limits) -> (Vec<Found>, Result<Summary, SitemapError>) {
    let mut found = Vec::new();
    let result = read(source, &Origin::default(), limits, &mut |one| {
        found.push(one);
        ControlFlow::Continue(())
    });
    (found, result)
}

/// Everything found in a source that can be read to its end.
pub(super) fn outcome(source: &[u8]) -> Result<(Vec<Found>, Summary), SitemapError> {
    let (found, result) = with_limits(source, &Limits::default());
    result.map(|summary| (found, summary))
}

fn pages(found: Vec<Found>) -> Vec<SitemapEntry> {
    let page = |one| match one {
        Found::Url(entry) => Some(entry),
        Found::Sitemap(_) | Found::Broken(_) => None,
    };
    found.into_iter().filter_map(page).collect()
}

/// The pages of a sound source.
pub(super) fn entries(source: &str) -> Vec<SitemapEntry> {
    pages(outcome(source.as_bytes()).unwrap().0)
}

/// The locations of the pages of a sound source.
pub(super) fn locs(source: &[u8]) -> Vec<String> {
    pages(outcome(source).unwrap().0).into_iter().map(|entry| entry.loc).collect()
}

/// The locations of the pages of a sound source from this origin.
pub(super) fn found_in(source: &[u8], origin: &Origin) -> Vec<String> {
    let mut found = Vec::new();
    let emit = &mut |one| {
        found.push(one);
        ControlFlow::Continue(())
    };
    read(source, origin, &Limits::default(), emit).unwrap();
    pages(found).into_iter().map(|entry| entry.loc).collect()
}

/// The locations of the pages before the error, and the error.
pub(super) fn report(source: impl Read) -> (Vec<String>, String) {
    let (found, result) = with_limits(source, &Limits::default());
    (pages(found).into_iter().map(|entry| entry.loc).collect(), result.unwrap_err().to_string())
}

/// The broken entry that `found` is.
pub(super) fn broken(found: &Found) -> &Broken {
    match found {
        Found::Broken(broken) => broken,
        other => panic!("not broken: {other:?}"),
    }
}

const THREE: [&str; 3] = [
    "<urlset><url><loc>1</loc></url><url><loc>2</loc></url><url><loc>3</loc></url></urlset>",
    "<rss><item><link>1</link></item><item><link>2</link></item><item><link>3</link></item></rss>",
    "1\n2\n3\n",
];

#[test]
fn the_caller_can_stop_early() {
    for source in THREE {
        let mut seen = 0;
        let summary = read(source.as_bytes(), &Origin::default(), &Limits::default(), &mut |_| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((seen, summary.unwrap().urls), (2, 2));
    }
}

#[test]
fn too_many_entries_end_the_source() {
    for source in THREE {
        let (found, result) = with_limits(source.as_bytes(), &Limits { max_entries: 2, ..Limits::default() });
        assert_eq!(found.len(), 2);
        assert_eq!(result.unwrap_err().to_string(), "more than 2 entries, after 2 entries");
    }
}

#[test]
fn how_the_bytes_arrive_does_not_matter() {
    struct Trickle<'a>(&'a [u8]);
    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let len = out.len().min(1);
            self.0.read(&mut out[..len])
        }
    }
    for source in THREE {
        let (found, result) = with_limits(Trickle(source.as_bytes()), &Limits::default());
        let summary = result.unwrap();
        assert_eq!((found, summary), outcome(source.as_bytes()).unwrap());
        assert_eq!(summary.bytes, source.len() as u64);
    }
}
