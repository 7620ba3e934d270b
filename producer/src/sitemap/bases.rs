//! The URLs that relative locations in XML are resolved by.

use quick_xml::events::BytesStart;
use url::{ParseError, Url};

use super::entry::{Broken, Flaw};

/// The most elements within each other whose `xml:base` counts: each keeps a URL.
const MAX_BASES: usize = 16;

/// The bases of the elements that are open, the source's own URL first.
pub(super) struct Bases {
    source: Option<Url>,
    /// Each with the depth of its element.
    open: Vec<(usize, Url)>,
    /// Maximum length of a base and of a location.
    max_bytes: usize,
    is_feed: bool,
}

impl Bases {
    pub(super) fn new(source: Option<Url>, max_bytes: usize) -> Self {
        Self { source, open: Vec::new(), max_bytes, is_feed: true }
    }

    /// Whether this is a feed: locations in sitemaps are absolute (sitemaps.org), and stay as they are.
    pub(super) fn for_feed(&mut self, is_feed: bool) {
        self.is_feed = is_feed;
    }

    /// Takes the `xml:base` of an element at `depth`, if it has one.
    pub(super) fn open(&mut self, depth: usize, tag: &BytesStart<'_>) {
        if tag.attributes_raw().is_empty() || self.open.len() >= MAX_BASES {
            return;
        }
        let Ok(Some(base)) = tag.try_get_attribute("xml:base") else { return };
        let base = base.value.trim();
        if base.len() <= self.max_bytes
            && let Ok(base) = self.join(base)
        {
            self.open.push((depth, base));
        }
    }

    /// Forgets the base of an element at `depth`.
    pub(super) fn close(&mut self, depth: usize) {
        self.open.pop_if(|(opened, _)| *opened == depth);
    }

    /// Resolves a location that is relative, where there is a base.
    pub(super) fn resolve(&self, location: Result<String, Broken>) -> Result<String, Broken> {
        let location = location?;
        if !self.is_feed || Url::parse(&location) != Err(ParseError::RelativeUrlWithoutBase) {
            return Ok(location);
        }
        match self.join(&location) {
            Ok(url) if url.as_str().len() <= self.max_bytes => Ok(url.into()),
            Ok(_) => Err(Broken::new(&location, Flaw::TooLong(self.max_bytes))),
            Err(_) => Ok(location),
        }
    }

    fn join(&self, link: &str) -> Result<Url, ParseError> {
        let base = self.open.last().map(|(_, base)| base).or(self.source.as_ref());
        Url::options().base_url(base).parse(link)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Origin;
    use super::super::tests::{found_in, locs};

    fn found(source: &str) -> Vec<String> {
        let url = Some("http://s.example/f/feed.xml".parse().unwrap());
        found_in(source.as_bytes(), &Origin { url, ..Origin::default() })
    }

    #[test]
    fn relative_links_are_resolved_by_the_source() {
        assert_eq!(
            found(
                "<feed><entry><link href='/posts/1'/></entry><entry><link href='2?a&amp;b'/></entry></feed>"
            ),
            ["http://s.example/posts/1", "http://s.example/f/2?a&b"]
        );
        assert_eq!(
            found(
                "<rss><channel><link>http://c.example/</link><item><link>/news/1</link></item>\
                <item><guid>//c.example/2</guid></item></channel></rss>"
            ),
            ["http://s.example/news/1", "http://c.example/2"]
        );
        assert_eq!(found("<urlset><url><loc>/a</loc></url></urlset>"), ["/a"]);
        assert_eq!(
            found("<rss><item><link>http://c.example/A/../b</link></item></rss>"),
            ["http://c.example/A/../b"]
        );
    }

    #[test]
    fn an_xml_base_counts_within_its_element() {
        let feed = "<feed xml:base='http://b.example/x/'><entry xml:base='y/'><link href='1'/></entry>\
            <entry><link xml:base='/z/' href='2'/></entry><entry><link href='3'/></entry></feed>";
        let expected = ["http://b.example/x/y/1", "http://b.example/z/2", "http://b.example/x/3"];
        assert_eq!(found(feed), expected);
        assert_eq!(locs(feed.as_bytes()), expected);
        assert_eq!(
            found("<rss><channel xml:base='/c/'><item><link>1</link></item></channel></rss>"),
            ["http://s.example/c/1"]
        );
    }

    #[test]
    fn without_a_base_a_location_stays_as_it_is() {
        assert_eq!(locs(b"<rss><item><link>/news/1</link></item></rss>"), ["/news/1"]);
        let (deep, end) = ("<a xml:base='b/'>".repeat(200), "</a>".repeat(200));
        assert_eq!(found(&format!("<feed>{deep}{end}</feed>")), [""; 0]);
    }
}
