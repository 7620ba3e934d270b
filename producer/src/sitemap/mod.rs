//! Sitemaps in every published form, read as a stream in constant memory.
//!
//! [`read`] recognizes a source by its content, never by its name: gzip or plain, UTF-8 or UTF-16, then sitemaps.org
//! 0.9 (`urlset` and `sitemapindex`), RSS 0.9 to 2.0, Atom, `robots.txt`, or one URL per line. It opens nothing:
//! following an index to its sitemaps is up to the caller. Relative locations in feeds are resolved with `xml:base` and
//! the source's own URL; all others are returned as they are written.

mod bases;
mod charset;
mod content;
mod decode;
mod dialect;
mod draft;
mod emitter;
mod entry;
mod error;
mod found;
mod lastmod;
mod limits;
mod origin;
mod summary;
mod text;
mod tokens;
mod xml;

use std::io::{BufRead, Read};
use std::ops::ControlFlow;

use self::charset::Utf8Reader;
pub use self::decode::Plain;
use self::emitter::Emitter;
pub use self::entry::{Broken, Changefreq, Flaw, SitemapEntry};
pub use self::error::{Fault, SitemapError};
pub use self::found::{Format, Found};
pub use self::lastmod::changed_by;
pub use self::limits::Limits;
pub use self::origin::Origin;
pub use self::summary::Summary;

/// Reads `source` to its end and hands each thing found to `emit`, in the source's order.
///
/// `emit` stops the reading with [`ControlFlow::Break`], which is not an error. An XML source ends with its root
/// element: the rest is not read. On an error everything before it was emitted.
pub fn read(
    source: impl Read,
    origin: &Origin,
    limits: &Limits,
    emit: &mut dyn FnMut(Found) -> ControlFlow<()>,
) -> Result<Summary, SitemapError> {
    let mut emitter = Emitter { emit, limits, summary: Summary::default() };
    let inflated = match decode::inflate(source, limits.max_bytes) {
        Ok(inflated) => inflated,
        Err(fault) => return Err(SitemapError { fault, before: emitter.summary }),
    };
    let mut text = Utf8Reader::new(inflated, origin.charset, limits.max_bytes);
    let outcome = read_text(&mut text, origin, &mut emitter);
    let summary = Summary { bytes: text.bytes_read(), ..emitter.summary };
    match outcome {
        Ok(()) => Ok(summary),
        Err(fault) => Err(SitemapError { fault, before: summary }),
    }
}

fn read_text(source: &mut impl BufRead, origin: &Origin, emitter: &mut Emitter<'_>) -> Result<(), Fault> {
    match source.fill_buf()?.trim_ascii_start() {
        [b'<', ..] => xml::read(source, origin, emitter),
        _ => text::read(source, emitter),
    }
}

#[cfg(test)]
mod tests;
