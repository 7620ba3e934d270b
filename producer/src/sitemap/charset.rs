//! Decodes any encoding to UTF-8.

use std::io::{self, BufRead, Read};

use encoding_rs::{Decoder, Encoding, UTF_8};
use trawl_common::web::charset;

use super::decode::Head;
use super::error::Fault;

/// Number of bytes that are decoded at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// A source decoded to UTF-8 without its byte order mark; invalid bytes become U+FFFD.
///
/// The encoding is that of the byte order mark, else UTF-8 if the beginning is valid UTF-8, else the one that the
/// header names (RFC 7303 3.2), else the one that an XML declaration names, else UTF-8.
pub(super) struct Utf8Reader<R> {
    source: Head<R>,
    decoder: Decoder,
    raw: Box<[u8]>,
    text: Box<[u8]>,
    /// The start of the unconsumed part of `text`.
    start: usize,
    end: usize,
    bytes_read: u64,
    max_bytes: u64,
    ended: bool,
}

impl<R: Read> Utf8Reader<R> {
    pub(super) fn new(mut source: Head<R>, declared: Option<&'static Encoding>, max_bytes: u64) -> Self {
        let (encoding, mark) = encoding_of(source.peek(), declared);
        source.skip(mark);
        let decoder = encoding.new_decoder_without_bom_handling();
        let capacity =
            decoder.max_utf8_buffer_length(CHUNK_BYTES).expect("a chunk is far below the address space");
        Self {
            source,
            decoder,
            raw: vec![0; CHUNK_BYTES].into(),
            text: vec![0; capacity].into(),
            start: 0,
            end: 0,
            bytes_read: 0,
            max_bytes,
            ended: false,
        }
    }

    /// The number of bytes read from the source so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
}

/// Returns the encoding of a source that starts with `head`, and the length of its byte order mark.
fn encoding_of(head: &[u8], declared: Option<&'static Encoding>) -> (&'static Encoding, usize) {
    charset::proven(head).unwrap_or_else(|| {
        let shown = charset::shows_utf_8(head).then_some(UTF_8);
        let named = || declared.or_else(|| charset::from_xml_declaration(head));
        (shown.or_else(named).unwrap_or(UTF_8), 0)
    })
}

impl<R: Read> BufRead for Utf8Reader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.start == self.end && !self.ended {
            let read = match self.source.read(&mut self.raw) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            self.bytes_read += read as u64;
            if self.bytes_read > self.max_bytes {
                return Err(Fault::TooLarge(self.max_bytes).into());
            }
            self.ended = read == 0;
            let (_, _, written, _) =
                self.decoder.decode_to_utf8(&self.raw[..read], &mut self.text, self.ended);
            (self.start, self.end) = (0, written);
        }
        Ok(&self.text[self.start..self.end])
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, WINDOWS_1251};

    use super::super::tests::{Failing, found_in, locs, outcome, report, with_limits};
    use super::super::{Flaw, Found, Limits, Origin};

    const URLSET: &str = "<?xml version='1.0' encoding='UTF-16'?>\
        <urlset><url><loc>http://a.example/\u{e4}</loc></url></urlset>";

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(locs("\u{feff}http://a.example/".as_bytes()), ["http://a.example/"]);
        let urlset = "\u{feff}<urlset><url><loc>http://a.example/</loc></url></urlset>";
        assert_eq!(locs(urlset.as_bytes()), ["http://a.example/"]);
    }

    #[test]
    fn utf_16_is_read_in_both_orders_with_and_without_its_mark() {
        let marked = format!("\u{feff}{URLSET}");
        for source in [
            utf16(&marked, u16::to_le_bytes),
            utf16(&marked, u16::to_be_bytes),
            utf16(URLSET, u16::to_le_bytes),
            utf16(URLSET, u16::to_be_bytes),
        ] {
            assert_eq!(locs(&source), ["http://a.example/\u{e4}"]);
        }
    }

    #[test]
    fn the_declared_encoding_is_used_unless_it_cannot_be() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?>\
            <urlset><url><loc>http://a.example/\xe4</loc></url></urlset>";
        assert_eq!(locs(latin), ["http://a.example/\u{e4}"]);
        assert_eq!(locs(URLSET.as_bytes()), ["http://a.example/\u{e4}"]);
    }

    #[test]
    fn the_header_names_the_encoding_of_lists_and_of_xml_that_is_no_utf_8() {
        let origin = Origin { charset: Some(WINDOWS_1251), ..Origin::default() };
        for source in [
            "http://a.example/новости/1\n",
            "<rss><item><link>http://a.example/новости/1</link></item></rss>",
            "<?xml version='1.0' encoding='ISO-8859-1'?><rss><item><link>http://a.example/новости/1</link></item></rss>",
        ] {
            for bytes in [&WINDOWS_1251.encode(source).0[..], source.as_bytes()] {
                assert_eq!(found_in(bytes, &origin), ["http://a.example/новости/1"], "{source}");
            }
        }
        let sjis = SHIFT_JIS
            .encode("<?xml version='1.0' encoding='Shift_JIS'?><rss><item><link>/日本</link></item></rss>");
        assert_eq!(locs(&sjis.0), ["/日本"]);
    }

    #[test]
    fn only_a_declaration_declares_an_encoding() {
        for start in ["<?xm\u{feff}='1'", "<?xm='1'", "<?xml-stylesheet='1'", "<?xm x='1'"] {
            let source = format!(
                "{start} encoding='ISO-8859-1'?><urlset><url><loc>http://a.example/\u{e4}</loc></url></urlset>"
            );
            assert_eq!(locs(source.as_bytes()), ["http://a.example/\u{e4}"], "{start}");
        }
    }

    #[test]
    fn what_is_no_text_breaks_its_entry_only() {
        let list = b"http://a.example/1\nhttp://a.example/\xff\nhttp://a.example/3\n";
        let urlset = b"<urlset><url><loc>http://a.example/1</loc></url>\
            <url><loc>http://a.example/\xff</loc></url>\
            <url><loc>http://a.example/3</loc></url></urlset>";
        for source in [&list[..], &urlset[..]] {
            let (found, summary) = outcome(source).unwrap();
            assert!(matches!(&found[1], Found::Broken(broken) if broken.flaw == Flaw::NotUtf8));
            assert_eq!((summary.urls, summary.broken), (2, 1));
        }
    }

    #[test]
    fn a_bomb_is_stopped_by_its_size() {
        let limits = Limits { max_bytes: 40_000, ..Limits::default() };
        let list = "http://a.example/\n".repeat(100_000);
        let (found, result) = with_limits(list.as_bytes(), &limits);
        assert!(!found.is_empty());
        assert!(result.unwrap_err().to_string().starts_with("more than 40000 bytes, after "));
    }

    #[test]
    fn a_source_that_fails_gives_what_came_before() {
        let (found, error) = report(Failing(b"http://a.example/1\nhttp://a.ex"));
        assert_eq!(found, ["http://a.example/1"]);
        assert_eq!(error, "cannot read: connection reset, after 1 entry");
    }
}
