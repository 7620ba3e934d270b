//! The kinds of XML that list pages. The root element decides the kind of a document.

use super::found::Format;

/// The meaning of a direct child of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The location, as text.
    Location,
    /// The location, as the attribute `href` of an Atom link.
    Link,
    /// The location unless there is another: an RSS `guid` that is not marked as none.
    Permalink,
    /// The time of the page's last change.
    Modified,
    Changefreq,
    /// The Google News extension.
    News,
}

impl Field {
    /// Whether the element belongs to the entry's vocabulary, and so has its prefix. This is true of the
    /// location: `<image:loc>` and `<atom:link>` are something else.
    pub(super) fn is_native(self) -> bool {
        !matches!(self, Self::News | Self::Modified)
    }
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Page,
    Sitemap,
}

/// One kind of XML, by the local names of its elements.
pub(super) struct Dialect {
    pub(super) format: Format,
    root: &'static str,
    entries: &'static [(&'static str, Kind)],
    fields: &'static [(&'static str, Field)],
}

impl Dialect {
    /// Returns the dialect of documents with this root.
    pub(super) fn of_root(name: &str) -> Option<&'static Self> {
        DIALECTS.iter().find(|dialect| dialect.root == name)
    }

    /// Returns the kind of entry that the element `name` is, or `None` if it is not an entry.
    pub(super) fn entry(&self, name: &str) -> Option<Kind> {
        lookup(self.entries, name)
    }

    /// Returns the meaning of the element `name` within an entry.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        lookup(self.fields, name)
    }
}

fn lookup<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

static DIALECTS: [Dialect; 5] = [
    Dialect { format: Format::Urlset, root: "urlset", entries: SITEMAP_ENTRIES, fields: SITEMAP_FIELDS },
    Dialect {
        format: Format::SitemapIndex,
        root: "sitemapindex",
        entries: SITEMAP_ENTRIES,
        fields: SITEMAP_FIELDS,
    },
    Dialect { format: Format::Rss, root: "rss", entries: RSS_ENTRIES, fields: RSS_FIELDS },
    Dialect { format: Format::Rss, root: "RDF", entries: RSS_ENTRIES, fields: RSS_FIELDS },
    Dialect { format: Format::Atom, root: "feed", entries: &[("entry", Kind::Page)], fields: ATOM_FIELDS },
];

/// Both kinds in either document: sites mix them.
const SITEMAP_ENTRIES: &[(&str, Kind)] = &[("url", Kind::Page), ("sitemap", Kind::Sitemap)];

const SITEMAP_FIELDS: &[(&str, Field)] = &[
    ("loc", Field::Location),
    ("lastmod", Field::Modified),
    ("changefreq", Field::Changefreq),
    ("news", Field::News),
];

const RSS_ENTRIES: &[(&str, Kind)] = &[("item", Kind::Page)];

const RSS_FIELDS: &[(&str, Field)] =
    &[("link", Field::Location), ("guid", Field::Permalink), ("updated", Field::Modified)];

const ATOM_FIELDS: &[(&str, Field)] = &[("link", Field::Link), ("updated", Field::Modified)];
