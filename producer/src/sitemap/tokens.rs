//! Keeps the XML parser's memory constant.

use std::io::{self, BufRead, Read};

use super::error::Fault;

/// The longest tag, comment, CDATA section or document type, in bytes.
const MAX_MARKUP_BYTES: usize = 1 << 20;

/// A source of XML in tokens of limited length: the parser using it holds a whole token in memory.
///
/// A text longer than `max_text` is cut to `max_text` + 1 bytes, so that the reader can see that it was too
/// long. Markup cannot be cut, so longer markup is an error.
pub(super) struct Tokens<R> {
    source: R,
    max_text: usize,
    /// Whether the token is text or a reference, as opposed to markup.
    text: bool,
    /// The number of bytes left for the token.
    left: usize,
}

impl<R: BufRead> Tokens<R> {
    pub(super) fn new(source: R, max_text: usize) -> Self {
        Self { source, max_text, text: false, left: 0 }
    }

    /// Must be called before each token is parsed.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.text = !self.source.fill_buf()?.starts_with(b"<");
        self.left = if self.text { self.max_text + 1 } else { MAX_MARKUP_BYTES };
        Ok(())
    }

    /// Drops text up to the next markup or reference.
    fn skip_text(&mut self) -> io::Result<()> {
        loop {
            let chunk = self.source.fill_buf()?;
            let end = chunk.iter().position(|byte| matches!(byte, b'<' | b'&'));
            let len = end.unwrap_or(chunk.len());
            self.source.consume(len);
            if end.is_some() || len == 0 {
                return Ok(());
            }
        }
    }
}

impl<R: BufRead> BufRead for Tokens<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left > 0 {
            let chunk = self.source.fill_buf()?;
            return Ok(&chunk[..chunk.len().min(self.left)]);
        }
        if !self.text {
            return Err(Fault::LongMarkup(MAX_MARKUP_BYTES).into());
        }
        self.skip_text()?;
        self.source.fill_buf()
    }

    fn consume(&mut self, len: usize) {
        self.source.consume(len);
        self.left = self.left.saturating_sub(len);
    }
}

impl<R: BufRead> Read for Tokens<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flaw;
    use super::super::tests::{broken, locs, outcome, report};

    fn urlset(before: &str, middle: &str) -> String {
        format!(
            "<urlset>{before}<url><loc>http://a.example/1</loc></url>{middle}\
             <url><loc>http://a.example/2</loc></url></urlset>"
        )
    }

    #[test]
    fn a_location_of_ten_megabytes_breaks_its_entry_only() {
        for huge in
            ["x".repeat(10 << 20), "&amp;".repeat(2 << 20), " ".repeat(10 << 20) + "http://a.example/x"]
        {
            let source = urlset("", &format!("<url><loc>{huge}</loc></url>"));
            let (found, summary) = outcome(source.as_bytes()).unwrap();
            assert_eq!(broken(&found[1]).flaw, Flaw::TooLong(16 * 1024));
            assert!(broken(&found[1]).text.len() <= 200);
            assert_eq!((summary.urls, summary.broken), (2, 1));
        }
    }

    #[test]
    fn text_that_nobody_reads_may_be_of_any_length() {
        let source = urlset(&" ".repeat(3 << 20), &format!("<x>{}</x>", "y".repeat(3 << 20)));
        assert_eq!(locs(source.as_bytes()), ["http://a.example/1", "http://a.example/2"]);
    }

    #[test]
    fn endless_markup_ends_the_source() {
        for huge in [
            format!("<x y='{}'/>", "z".repeat(3 << 20)),
            format!("<!--{}-->", "z".repeat(3 << 20)),
            format!("<![CDATA[{}]]>", "z".repeat(3 << 20)),
        ] {
            let (found, error) = report(urlset("", &huge).as_bytes());
            assert_eq!(found, ["http://a.example/1"]);
            assert_eq!(error, "markup longer than 1048576 bytes, after 1 entry");
        }
    }
}
