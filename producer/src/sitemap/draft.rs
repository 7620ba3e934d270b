//! An entry of an XML document that is being read.

use quick_xml::events::BytesStart;

use super::bases::Bases;
use super::content::Content;
use super::dialect::{Field, Kind};
use super::entry::{Broken, Flaw, SitemapEntry};
use super::found::Found;

/// The content of the entry so far, and its position.
pub(super) struct Draft {
    /// The number of open elements, including the entry's own.
    pub(super) depth: usize,
    /// The namespace prefix of the entry's element.
    pub(super) prefix: String,
    kind: Kind,
    location: Option<Result<String, Broken>>,
    permalink: Option<Result<String, Broken>>,
    entry: SitemapEntry,
}

impl Draft {
    pub(super) fn new(kind: Kind, depth: usize, prefix: &str) -> Self {
        Self {
            depth,
            prefix: prefix.to_owned(),
            kind,
            location: None,
            permalink: None,
            entry: SitemapEntry::default(),
        }
    }

    /// Reads the start tag of a field. Returns whether the text of the field is needed.
    pub(super) fn open(
        &mut self,
        field: Field,
        tag: &BytesStart<'_>,
        content: &mut Content,
        bases: &Bases,
    ) -> bool {
        content.clear();
        match field {
            Field::News => self.entry.news = true,
            Field::Link if self.location.is_none() && is_alternate(tag) => {
                content.push_escaped(&attribute(tag, "href").unwrap_or_default());
                self.location = content.location().map(|location| bases.resolve(location));
            }
            Field::Link => {}
            Field::Permalink => return attribute(tag, "isPermaLink").as_deref() != Some("false"),
            _ => return true,
        }
        false
    }

    /// Reads the text of a field. An additional location is returned as an entry of its own.
    pub(super) fn close(&mut self, field: Field, content: &Content, bases: &Bases) -> Option<Found> {
        let text = content.as_str();
        let location = || content.location().map(|location| bases.resolve(location));
        match field {
            Field::Location if self.location.is_some() => {
                let extra = || Found::Broken(Broken::new(text, Flaw::SecondLocation));
                return (!text.is_empty()).then(extra);
            }
            Field::Location => self.location = location(),
            Field::Permalink => self.permalink = location(),
            Field::Modified if text.is_empty() => {}
            Field::Modified => self.entry.lastmod = Some(text.to_owned()),
            Field::Changefreq => self.entry.changefreq = text.parse().ok(),
            Field::Link | Field::News => {}
        }
        None
    }

    /// Returns an entry that is cut off, if its location is complete.
    pub(super) fn located(self) -> Option<Found> {
        matches!(self.location, Some(Ok(_))).then(|| self.finish())
    }

    /// Returns the complete entry.
    pub(super) fn finish(self) -> Found {
        match self.location.or(self.permalink) {
            None => Found::Broken(Broken::new("", Flaw::NoLocation)),
            Some(Err(broken)) => Found::Broken(broken),
            Some(Ok(loc)) => match self.kind {
                Kind::Page => Found::Url(SitemapEntry { loc, ..self.entry }),
                Kind::Sitemap => Found::Sitemap(loc),
            },
        }
    }
}

/// Whether an Atom link names the entry's own page (RFC 4287, section 4.2.7.2).
fn is_alternate(link: &BytesStart<'_>) -> bool {
    attribute(link, "rel").is_none_or(|rel| rel == "alternate")
}

/// Returns the value of an attribute, still escaped.
fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok()??;
    Some(attribute.value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{broken, entries, locs, outcome};
    use super::super::{Changefreq, Format};
    use super::*;

    #[test]
    fn a_page_comes_with_what_its_sitemap_says_of_it() {
        let source = "<urlset><url><loc>http://a.example/</loc><lastmod> 2024-01-02 </lastmod>\
            <changefreq>Weekly</changefreq><priority>0.8</priority></url></urlset>";
        let expected = SitemapEntry {
            loc: "http://a.example/".into(),
            lastmod: Some("2024-01-02".into()),
            changefreq: Some(Changefreq::Weekly),
            news: false,
        };
        assert_eq!(entries(source), [expected]);
    }

    #[test]
    fn nonsense_beside_a_location_is_ignored() {
        for nonsense in ["<changefreq>7</changefreq>", "<changefreq/>", "<priority>0,5</priority>"] {
            let source = format!("<urlset><url><loc>x</loc>{nonsense}<lastmod/></url></urlset>");
            assert_eq!(entries(&source), [SitemapEntry { loc: "x".into(), ..SitemapEntry::default() }]);
        }
    }

    #[test]
    fn an_entry_without_a_location_or_with_two_says_so() {
        let source = "<urlset><url><lastmod>2024</lastmod></url><url><loc> </loc></url>\
            <url><loc>one</loc><loc>two</loc></url></urlset>";
        let (found, _) = outcome(source.as_bytes()).unwrap();
        assert_eq!(broken(&found[0]).flaw, Flaw::NoLocation);
        assert_eq!(broken(&found[1]).flaw, Flaw::NoLocation);
        assert_eq!(*broken(&found[2]), Broken { text: "two".into(), flaw: Flaw::SecondLocation });
        assert!(matches!(&found[3], Found::Url(entry) if entry.loc == "one"));
    }

    #[test]
    fn rss_gives_the_links_of_its_items() {
        let source = r#"<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
            <link>http://a.example/</link><atom:link href="http://a.example/feed" rel="self"/>
            <image><url>http://a.example/logo</url><link>http://a.example/</link></image>
            <item><atom:link href="http://a.example/no"/><title>One</title>
              <link>http://a.example/1?a&amp;b</link><guid>http://a.example/guid</guid>
              <pubDate>Tue, 02 Jan 2024 03:04:05 GMT</pubDate></item>
            <item><guid isPermaLink="true">http://a.example/2</guid><link/></item>
            <item><guid>http://a.example/3</guid></item>
            <item><guid isPermaLink="false">tag:4</guid></item>
            </channel></rss>"#;
        let (found, summary) = outcome(source.as_bytes()).unwrap();
        assert_eq!(
            locs(source.as_bytes()),
            ["http://a.example/1?a&b", "http://a.example/2", "http://a.example/3"]
        );
        assert_eq!(entries(source)[0].lastmod, None, "when it appeared, not when it changed");
        assert_eq!(broken(&found[3]).flaw, Flaw::NoLocation);
        assert_eq!(summary.format, Some(Format::Rss));
    }

    #[test]
    fn rss_1_0_is_read_like_rss() {
        let source = r#"<rdf:RDF xmlns:rdf="r" xmlns="http://purl.org/rss/1.0/" xmlns:dc="d">
            <channel><link>http://a.example/</link></channel>
            <item rdf:about="x"><link>http://a.example/1</link><dc:date>2024-01-02</dc:date></item>
            </rdf:RDF>"#;
        assert_eq!(locs(source.as_bytes()), ["http://a.example/1"]);
        assert_eq!(entries(source)[0].lastmod, None);
    }

    #[test]
    fn atom_gives_the_alternate_links_of_its_entries() {
        let source = r#"<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://a.example/"/>
            <entry><link rel="self" href="http://a.example/self"/>
              <link rel="alternate" href=" http://a.example/1?a&amp;b "/>
              <link href="http://a.example/other"/>
              <updated>2024-02-02T00:00:00Z</updated><published>2024-01-01T00:00:00Z</published></entry>
            <entry><published>2024-01-01T00:00:00Z</published><link href='http://a.example/2'/>
              <source><link href="http://b.example/"/></source></entry>
            <entry><link href="http://a.example/&what;"/></entry></feed>"#;
        let (found, summary) = outcome(source.as_bytes()).unwrap();
        assert_eq!(locs(source.as_bytes()), ["http://a.example/1?a&b", "http://a.example/2"]);
        assert_eq!(entries(source)[0].lastmod.as_deref(), Some("2024-02-02T00:00:00Z"));
        assert_eq!(entries(source)[1].lastmod, None);
        assert_eq!(broken(&found[2]).flaw, Flaw::UnknownEntity("what".into()));
        assert_eq!(summary.format, Some(Format::Atom));
    }
}
