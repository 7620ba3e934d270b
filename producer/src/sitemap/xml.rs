//! Sitemaps and feeds in XML, walked event by event.

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use trawl_common::text::printable;

use super::bases::Bases;
use super::content::Content;
use super::dialect::{Dialect, Field};
use super::draft::Draft;
use super::emitter::Emitter;
use super::error::Fault;
use super::found::{Format, Found};
use super::origin::Origin;
use super::tokens::Tokens;

/// Open elements at most: the parser remembers the name of each.
const MAX_DEPTH: usize = 256;

/// The longest name of an element, in bytes.
const MAX_NAME_BYTES: usize = 1024;

/// Reads one XML document.
///
/// Elements are known by their local names, as sites get their namespaces wrong. A lone `&`, which
/// XML forbids and sites write, stands for itself.
///
/// Of an entry that the source's end cuts off, what matters may have come already: its location.
pub(super) fn read(source: impl BufRead, origin: &Origin, emitter: &mut Emitter<'_>) -> Result<(), Fault> {
    let max_text = emitter.limits.max_loc_bytes;
    let mut reader = Reader::from_reader(Tokens::new(source, max_text));
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().allow_dangling_amp = true;
    let mut walker = Walker {
        dialect: None,
        depth: 0,
        draft: None,
        field: None,
        content: Content::new(max_text),
        bases: Bases::new(origin.url.clone(), max_text),
    };
    let read = walk(&mut reader, &mut walker, emitter);
    if read.is_err()
        && let Some(found) = walker.draft.and_then(Draft::located)
    {
        // The fault counts even if the list of faults is full.
        let _ = emitter.emit(found);
    }
    read
}

/// Reads to the end of the root element, or until `emitter` has enough.
fn walk(
    reader: &mut Reader<Tokens<impl BufRead>>,
    walker: &mut Walker,
    emitter: &mut Emitter<'_>,
) -> Result<(), Fault> {
    let mut token = Vec::new();
    loop {
        token.clear();
        reader.get_mut().begin()?;
        match reader.read_event_into(&mut token) {
            Ok(Event::Start(tag)) => {
                walker.open(&tag)?;
                emitter.summary.format = walker.dialect.map(|dialect| dialect.format);
            }
            Ok(Event::End(_)) => {
                if let Some(found) = walker.close()
                    && emitter.emit(found)?.is_break()
                {
                    return Ok(());
                }
                if walker.depth == 0 {
                    return Ok(());
                }
            }
            Ok(Event::Text(text)) => walker.text(&text),
            Ok(Event::CData(text)) => walker.text(&text),
            Ok(Event::GeneralRef(name)) => walker.reference(&name),
            Ok(Event::Eof) if walker.dialect.is_none() => return Err(Fault::NoRoot),
            Ok(Event::Eof) => return Err(Fault::XmlEndsEarly),
            Ok(_) => {}
            Err(error) => return Err(Fault::of_xml(error, reader.error_position())),
        }
    }
}

/// The position of the reading in the document.
struct Walker {
    dialect: Option<&'static Dialect>,
    depth: usize,
    draft: Option<Draft>,
    /// The field of the draft whose text is being read.
    field: Option<Field>,
    content: Content,
    bases: Bases,
}

impl Walker {
    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::TooDeep(MAX_DEPTH));
        }
        if tag.name().as_ref().len() > MAX_NAME_BYTES {
            return Err(Fault::LongName(MAX_NAME_BYTES));
        }
        self.bases.open(self.depth, tag);
        let (name, prefix) = tag.name().decompose();
        let (name, prefix) = (name.into_inner(), prefix.map_or("", |prefix| prefix.into_inner()));
        let Some(dialect) = self.dialect else {
            let root = || Fault::UnknownRoot(printable(name, 40));
            let dialect = Dialect::of_root(name).ok_or_else(root)?;
            self.bases.for_feed(matches!(dialect.format, Format::Rss | Format::Atom));
            self.dialect = Some(dialect);
            return Ok(());
        };
        match &mut self.draft {
            None => self.draft = dialect.entry(name).map(|kind| Draft::new(kind, self.depth, prefix)),
            Some(draft) if self.depth == draft.depth + 1 => {
                self.field = dialect
                    .field(name)
                    .filter(|field| !field.is_native() || prefix == draft.prefix)
                    .filter(|field| draft.open(*field, tag, &mut self.content, &self.bases));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Leaves an element, which may complete a thing.
    fn close(&mut self) -> Option<Found> {
        let found = self.complete();
        self.bases.close(self.depth + 1);
        found
    }

    fn complete(&mut self) -> Option<Found> {
        self.depth -= 1;
        let draft = self.draft.as_mut()?;
        if self.depth == draft.depth {
            return draft.close(self.field.take()?, &self.content, &self.bases);
        }
        if self.depth < draft.depth {
            return self.draft.take().map(Draft::finish);
        }
        None
    }

    fn text(&mut self, text: &str) {
        if self.is_in_field() {
            self.content.push(text);
        }
    }

    fn reference(&mut self, name: &str) {
        if self.is_in_field() {
            self.content.push_reference(name);
        }
    }

    /// Whether text here is that of the field itself, not of an element within.
    fn is_in_field(&self) -> bool {
        self.field.is_some() && self.draft.as_ref().is_some_and(|draft| self.depth == draft.depth + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flaw;
    use super::super::tests::{broken, entries, locs, outcome, report};
    use super::*;

    fn url(content: &str) -> String {
        format!("<urlset><url>{content}</url><url><loc>http://a.example/last</loc></url></urlset>")
    }

    #[test]
    fn prefixes_declarations_and_comments_do_not_matter() {
        let source = "\n <?xml version=\"1.0\" encoding=\"UTF-8\"?><!DOCTYPE urlset>\
            <?xml-stylesheet href=\"a.xsl\"?><!-- by hand -->\
            <sm:urlset xmlns:sm=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><!-- <url> -->\
            <sm:url ><sm:loc\n>\n http://a.exa<!-- here -->mple/ \n</sm:loc ></sm:url></sm:urlset>";
        assert_eq!(locs(source.as_bytes()), ["http://a.example/"]);
    }

    #[test]
    fn an_index_names_sitemaps() {
        let source = "<sitemapindex><sitemap><loc>http://a.example/1.xml.gz</loc>\
            <lastmod>2024-01-02</lastmod></sitemap></sitemapindex>";
        let (found, summary) = outcome(source.as_bytes()).unwrap();
        assert_eq!(found, [Found::Sitemap("http://a.example/1.xml.gz".into())]);
        assert_eq!((summary.format, summary.sitemaps), (Some(Format::SitemapIndex), 1));
    }

    #[test]
    fn text_cdata_and_references_are_joined() {
        let source = url("<loc>http://a.example/?a=1&amp;b=&#50;<![CDATA[&c=3]]>&#x26;d=4</loc>");
        assert_eq!(locs(source.as_bytes())[0], "http://a.example/?a=1&b=2&c=3&d=4");
    }

    #[test]
    fn a_lone_ampersand_stands_for_itself() {
        let source = url("<loc>http://a.example/?a=1&b=2&c</loc>");
        assert_eq!(locs(source.as_bytes()), ["http://a.example/?a=1&b=2&c", "http://a.example/last"]);
    }

    #[test]
    fn extensions_are_not_taken_for_the_page() {
        let source = url("<image:loc>http://a.example/no</image:loc>\
            <image:image><image:loc>http://a.example/image</image:loc><loc>x</loc></image:image>\
            <video:video><video:player_loc>http://a.example/video</video:player_loc></video:video>\
            <xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"http://a.example/de\"/>\
            <loc>http://a.example/page</loc>\
            <news:news><news:publication_date>2024</news:publication_date></news:news>");
        assert_eq!(locs(source.as_bytes()), ["http://a.example/page", "http://a.example/last"]);
        assert!(entries(&source)[0].news);
        assert_eq!(entries(&source)[0].lastmod, None);
        assert!(!entries(&source)[1].news);
    }

    #[test]
    fn a_billion_laughs_stay_unexpanded() {
        let source = format!(
            "<!DOCTYPE urlset [<!ENTITY lol \"lol\"><!ENTITY lol2 \"&lol;&lol;&lol;&lol;\">]>{}",
            url("<loc>http://a.example/&lol2;</loc>")
        );
        let (found, summary) = outcome(source.as_bytes()).unwrap();
        assert_eq!(broken(&found[0]).text, "http://a.example/&lol2;");
        assert_eq!(broken(&found[0]).flaw, Flaw::UnknownEntity("lol2".into()));
        assert_eq!(summary.urls, 1);
    }

    #[test]
    fn what_comes_before_the_end_of_cut_xml_is_kept() {
        let whole = url("<loc>http://a.example/1</loc>");
        for cut in ["</loc></url></urlset>", "oc></url></urlset>", "t></url></urlset>"] {
            let len = whole.len() - cut.len();
            let (found, error) = report(&whole.as_bytes()[..len]);
            assert_eq!(found, ["http://a.example/1"]);
            assert!(error.ends_with(", after 1 entry"), "{error}");
        }
        for more in ["", "<", "<lastmod>2024-", "<last"] {
            let source = whole.strip_suffix("</url></urlset>").unwrap().to_owned() + more;
            let (found, error) = report(source.as_bytes());
            assert_eq!(found, ["http://a.example/1", "http://a.example/last"], "{source}");
            assert!(error.ends_with(", after 2 entries"), "{error}");
        }
        let (_, error) = report(&whole.as_bytes()[..whole.len() - 9]);
        assert_eq!(error, "XML ends before its root element is closed, after 2 entries");
    }

    #[test]
    fn malformed_xml_says_where() {
        let source = "<urlset><url><loc>http://a.example/1</loc></url><url><loc>x</url></urlset>";
        let (found, error) = report(source.as_bytes());
        assert_eq!(found, ["http://a.example/1"]);
        assert!(error.starts_with("malformed XML at byte 59: "), "{error}");
    }

    #[test]
    fn what_follows_the_root_is_not_looked_at() {
        let source = url("<loc>http://a.example/1</loc>") + "<<garbage & more\u{0}";
        assert_eq!(locs(source.as_bytes()), ["http://a.example/1", "http://a.example/last"]);
    }

    #[test]
    fn nothing_is_found_in_an_empty_urlset() {
        for source in ["<urlset/>", "<urlset></urlset>", "<urlset>\n<other/></urlset>"] {
            let (found, summary) = outcome(source.as_bytes()).unwrap();
            assert_eq!((found.len(), summary.entries()), (0, 0));
            assert_eq!(summary.format, Some(Format::Urlset));
        }
    }

    #[test]
    fn another_root_is_an_error_that_names_it() {
        let error = |source: &str| report(source.as_bytes()).1;
        let expected = "root element `html` is neither a sitemap's nor a feed's, after 0 entries";
        assert_eq!(error("<!DOCTYPE html><html><body>Not found</body></html>"), expected);
        assert_eq!(error("<!doctype html>\n<html lang=en>"), expected);
        assert!(error("<Error><Code>AccessDenied</Code></Error>").starts_with("root element `Error` is "));
        assert_eq!(error("<?xml version='1.0'?>"), "no root element, after 0 entries");
    }

    #[test]
    fn nesting_has_an_end_and_so_have_names() {
        let error = report("<urlset>".repeat(100_000).as_bytes()).1;
        assert_eq!(error, "elements nested deeper than 256, after 0 entries");
        let error = report(format!("<urlset><{}>", "x".repeat(1025)).as_bytes()).1;
        assert_eq!(error, "a name longer than 1024 bytes, after 0 entries");
    }
}
