//! Sitemaps in every form that sites publish them, read as a stream in constant memory.
//!
//! [`read`] knows a source by its content, never by its name: gzip or plain, UTF-8 or UTF-16, then
//! sitemaps.org 0.9 (`urlset` and `sitemapindex`), RSS 0.9 to 2.0, Atom, `robots.txt`, or one URL a
//! line. It opens nothing and resolves nothing: locations leave as they are written, and following
//! an index to its sitemaps is the caller's business.

mod charset;
mod content;
mod decode;
mod dialect;
mod draft;
mod entry;
mod error;
mod lastmod;
mod text;
mod tokens;
mod xml;

use std::io::{BufRead, Read};
use std::ops::ControlFlow;

use self::charset::Utf8Reader;
pub use self::entry::{Broken, Changefreq, Entry, Flaw};
pub use self::error::{Fault, SitemapError};
pub use self::lastmod::changed_by;

/// One thing that a source says.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// A page.
    Url(Entry),
    /// A further sitemap to read, as an index or a `Sitemap:` line of a `robots.txt` names it.
    Sitemap(String),
    /// An entry that cannot be used; the others are not affected.
    Broken(Broken),
}

/// What a source turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A sitemaps.org `urlset`.
    Urlset,
    /// A sitemaps.org `sitemapindex`.
    SitemapIndex,
    /// RSS 0.9 to 2.0, or RDF.
    Rss,
    /// An Atom feed (RFC 4287).
    Atom,
    /// A `robots.txt` (RFC 9309).
    Robots,
    /// One URL a line.
    List,
}

/// How much a source may ask for before it is taken for an attack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes, as sent and after decompression.
    pub max_bytes: u64,
    /// Things found, of any kind.
    pub max_entries: u64,
    /// Bytes of one location; a longer one is broken and costs no memory.
    pub max_loc_bytes: usize,
}

impl Default for Limits {
    /// Well above the 50,000 URLs and 50 MiB of sitemaps.org, which real sites exceed.
    fn default() -> Self {
        Self { max_bytes: 1 << 30, max_entries: 10_000_000, max_loc_bytes: 16 * 1024 }
    }
}

/// What was read of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// What the source is, unless it is empty or nothing that is known.
    pub format: Option<Format>,
    /// Pages found.
    pub urls: u64,
    /// Further sitemaps found.
    pub sitemaps: u64,
    /// Entries that cannot be used.
    pub broken: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
}

impl Summary {
    /// Things found, of any kind.
    pub fn entries(&self) -> u64 {
        self.urls + self.sitemaps + self.broken
    }
}

/// Reads `source` to its end and hands each thing found to `emit`, in the source's order.
///
/// `emit` stops the reading with [`ControlFlow::Break`], which is no error. An XML source ends with
/// its root element: what follows is not looked at. On an error everything before it was emitted.
pub fn read(
    source: impl Read,
    limits: &Limits,
    emit: &mut dyn FnMut(Found) -> ControlFlow<()>,
) -> Result<Summary, SitemapError> {
    let mut emitter = Emitter { emit, limits, summary: Summary::default() };
    let inflated = match decode::inflate(source, limits.max_bytes) {
        Ok(inflated) => inflated,
        Err(fault) => return Err(SitemapError { fault, before: emitter.summary }),
    };
    let mut text = Utf8Reader::new(inflated, limits.max_bytes);
    let outcome = read_text(&mut text, &mut emitter);
    let summary = Summary { bytes: text.bytes_read(), ..emitter.summary };
    match outcome {
        Ok(()) => Ok(summary),
        Err(fault) => Err(SitemapError { fault, before: summary }),
    }
}

fn read_text(source: &mut impl BufRead, emitter: &mut Emitter<'_>) -> Result<(), Fault> {
    match source.fill_buf()?.trim_ascii_start() {
        [b'<', ..] => xml::read(source, emitter),
        _ => text::read(source, emitter),
    }
}

/// The caller's `emit`, counted and limited.
struct Emitter<'a> {
    emit: &'a mut dyn FnMut(Found) -> ControlFlow<()>,
    limits: &'a Limits,
    summary: Summary,
}

impl Emitter<'_> {
    fn emit(&mut self, found: Found) -> Result<ControlFlow<()>, Fault> {
        if self.summary.entries() >= self.limits.max_entries {
            return Err(Fault::TooManyEntries(self.limits.max_entries));
        }
        match &found {
            Found::Url(_) => self.summary.urls += 1,
            Found::Sitemap(_) => self.summary.sitemaps += 1,
            Found::Broken(_) => self.summary.broken += 1,
        }
        Ok((self.emit)(found))
    }
}

#[cfg(test)]
mod tests;
