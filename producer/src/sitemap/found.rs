//! The contents of sources.

use super::entry::{Broken, SitemapEntry};

/// One item found in a source.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// A page.
    Url(SitemapEntry),
    /// Another sitemap to read, named by an index or by a `Sitemap:` line of a `robots.txt`.
    Sitemap(String),
    /// An entry that cannot be used; the others are not affected.
    Broken(Broken),
}

/// The detected format of a source.
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
    /// One URL per line.
    List,
}
