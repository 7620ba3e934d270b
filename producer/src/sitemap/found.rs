//! What sources say.

use super::entry::{Broken, Entry};

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
