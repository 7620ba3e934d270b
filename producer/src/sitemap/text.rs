//! Sources of lines: `robots.txt`, and lists of one URL a line.

use std::io::{BufRead, Read};
use std::ops::ControlFlow;

use super::content::Content;
use super::emitter::Emitter;
use super::entry::{Broken, Flaw, SitemapEntry};
use super::error::Fault;
use super::found::{Format, Found};

/// Reads a source line by line, skipping blank lines and lines that start with `#`.
///
/// The first other line decides the format. In a `robots.txt` only the `Sitemap` lines count; in a list every
/// line is a location, and the caller checks whether it is a URL.
pub(super) fn read(mut source: impl BufRead, emitter: &mut Emitter<'_>) -> Result<(), Fault> {
    let max_bytes = emitter.limits.max_loc_bytes;
    let mut content = Content::new(max_bytes);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = source.by_ref().take(max_bytes as u64 + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let flow = if read > max_bytes && !text.ends_with('\n') {
            source.skip_until(b'\n')?;
            emitter.emit(Found::Broken(Broken::new(text.trim(), Flaw::TooLong(max_bytes))))?
        } else {
            emit_lines(&text, &mut content, emitter)?
        };
        if flow.is_break() {
            return Ok(());
        }
    }
}

/// Emits the contents of `text`: one line, or several on old Macs, which end lines with a carriage return.
fn emit_lines(
    text: &str,
    content: &mut Content,
    emitter: &mut Emitter<'_>,
) -> Result<ControlFlow<()>, Fault> {
    for line in text.split('\r').map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if emitter.summary.format.is_none() && line.starts_with(['{', '[', '"']) {
            return Err(Fault::Json);
        }
        let format = *emitter.summary.format.get_or_insert_with(|| format_of(line));
        if let Some(found) = found_in(line, format, content)
            && emitter.emit(found)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the format of a source whose first line is `line`: no URL has a space after its scheme.
fn format_of(line: &str) -> Format {
    const RECORDS: [&str; 5] = ["user-agent", "allow", "disallow", "sitemap", "site-map"];
    let is_robots = record(line).is_some_and(|(name, value)| {
        value.starts_with(char::is_whitespace) || RECORDS.iter().any(|known| name.eq_ignore_ascii_case(known))
    });
    if is_robots { Format::Robots } else { Format::List }
}

/// Splits a record of a `robots.txt` into its field and its value.
fn record(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim_end();
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    is_word.then_some((name, value))
}

/// Whether a field names a sitemap, in either of the spellings that Google's parser accepts.
fn is_sitemap(name: &str) -> bool {
    name.eq_ignore_ascii_case("sitemap") || name.eq_ignore_ascii_case("site-map")
}

fn found_in(line: &str, format: Format, content: &mut Content) -> Option<Found> {
    content.clear();
    if format == Format::List {
        content.push(line);
        return Some(match content.location()? {
            Ok(loc) => Found::Url(SitemapEntry { loc, ..SitemapEntry::default() }),
            Err(broken) => Found::Broken(broken),
        });
    }
    let (_, value) = record(line).filter(|(name, _)| is_sitemap(name))?;
    content.push(value.split('#').next().unwrap_or(value));
    Some(match content.location() {
        Some(Ok(loc)) => Found::Sitemap(loc),
        Some(Err(broken)) => Found::Broken(broken),
        None => Found::Broken(Broken::new(line, Flaw::NoLocation)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{broken, locs, outcome};
    use super::*;

    #[test]
    fn a_list_gives_each_line_as_it_stands() {
        let source = b"# by hand\r\n\r\nhttp://a.example/1#part\r\n  http://a.example/2\t\nnot a url\rfour:4";
        assert_eq!(locs(source), ["http://a.example/1#part", "http://a.example/2", "not a url", "four:4"]);
        assert_eq!(outcome(source).unwrap().1.format, Some(Format::List));
    }

    #[test]
    fn json_is_no_list_of_pages_and_says_what_it_may_be() {
        for source in ["\"a task\"\n", "\n {\"recipe\": 1}", "[1]"] {
            let error = outcome(source.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("[handler]"), "{error}");
        }
        assert_eq!(locs(b"http://a.example/1\n[2]"), ["http://a.example/1", "[2]"]);
    }

    #[test]
    fn a_robots_txt_gives_its_sitemaps() {
        let source = "\u{feff}# hello\nUser-agent: *\nDisallow: /private\n\
            sitemap : http://a.example/1.xml # main\n\
            SITEMAP:http://a.example/2.xml\nstray\nSitemap:\nAllow: /\nSite-map: http://a.example/3.xml";
        let (found, summary) = outcome(source.as_bytes()).unwrap();
        assert_eq!(found[0], Found::Sitemap("http://a.example/1.xml".into()));
        assert_eq!(found[1], Found::Sitemap("http://a.example/2.xml".into()));
        assert_eq!(broken(&found[2]).flaw, Flaw::NoLocation);
        assert_eq!(found[3], Found::Sitemap("http://a.example/3.xml".into()));
        assert_eq!((summary.format, summary.entries()), (Some(Format::Robots), 4));
    }

    #[test]
    fn a_robots_txt_may_start_with_any_record() {
        for first in [
            "Sitemap:http://a.example/",
            "Site-map:http://a.example/",
            "Crawl-delay: 5",
            "License: http://a.example/l",
            "disallow:",
        ] {
            assert_eq!(format_of(first), Format::Robots, "{first}");
        }
        for first in ["http://a.example/", "mailto:x", "a.example:80/x y: z", "/path: x"] {
            assert_eq!(format_of(first), Format::List, "{first}");
        }
    }

    #[test]
    fn a_line_of_ten_megabytes_is_broken_and_the_next_one_is_not() {
        for huge in ["x".repeat(10 << 20), " ".repeat(10 << 20) + "http://a.example/x"] {
            let source = format!("http://a.example/1\n{huge}\nhttp://a.example/3");
            let (found, summary) = outcome(source.as_bytes()).unwrap();
            assert_eq!(broken(&found[1]).flaw, Flaw::TooLong(16 * 1024));
            assert!(broken(&found[1]).text.len() <= 200);
            assert_eq!((summary.urls, summary.broken), (2, 1));
        }
    }

    #[test]
    fn the_longest_line_that_fits_is_kept() {
        let longest = "x".repeat(16 * 1024);
        assert_eq!(locs(format!("{longest}\ny").as_bytes()), [longest.as_str(), "y"]);
        assert_eq!(locs(longest.as_bytes()), [longest.as_str()]);
        assert_eq!(outcome(format!("{longest}x\ny").as_bytes()).unwrap().1.broken, 1);
    }

    #[test]
    fn an_empty_text_is_no_error() {
        for source in ["", "\n\n", "# nothing here\n"] {
            let (found, summary) = outcome(source.as_bytes()).unwrap();
            assert_eq!((found.len(), summary.format), (0, None));
        }
    }
}
