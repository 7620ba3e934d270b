//! Compares the streaming pass with the tree: the same pages must give the same answers.

use std::path::{Path, PathBuf};

use scraper::Html;

use super::*;
use crate::document::tree;
use crate::plan::planner::Planner;

/// Folders of Debian's packages rust-doc, python3.11-doc and postgresql-doc-15.
const SITES: &[&str] = &[
    "/usr/share/doc/rust-doc/html",
    "/usr/share/doc/python3.11/html",
    "/usr/share/doc/postgresql-doc-15/html",
];

/// Pages in the style of other sites.
const PAGES: &[&str] = &[
    "<!doctype html><html lang=en><head><meta charset=utf-8><title>Shop &amp; more</title><base href=/shop/>\
     <meta property=og:title content='A &quot;thing&quot;'><meta name=robots content='noindex , nofollow'>\
     <meta http-equiv=refresh content='5; url=/x'><link rel=canonical href=/thing><link rel='next prefetch' href=?p=2>\
     <script type='application/ld&#x2B;json'>{\"@type\": \"Product\", \"name\": \"a < b\"}</script>\
     <script id=state type='application/json'>{\"a\": [1, \"<\"]}</script><script>var a = {b: 'c'};</script>\
     <style>a > b {}</style></head><body><div id=a class='x y'><p>One<p>Two <a class=next href=2>2</a>\
     <ul><li><a href=3 rel='ugc nofollow'>3</a><li><img src=a.png alt=x></ul></div><table><tr><td><img src=b.png>\
     <td><a href=4>4</a></table><h1 id=top class=big>A <b>thing</b></h1><script>if (a<b) { '<img src=no>' }</script>\
     <noscript><img src=none><a href=none></a></noscript><!-- <img src=no> --><textarea><img src=no></textarea></body>",
    "<TITLE>old</TITLE><META NAME=Description CONTENT='an old page'><BODY><CENTER><IMG SRC=x.gif><H1 ID=h>Hi</H1>\
     <P><FONT SIZE=2><A HREF=one.html>one</A><BR><A HREF='two.html'>two</A></FONT><P>End<IMG SRC='y.gif'></CENTER>",
    "<svg><title>drawing</title><a href=s></a></svg><title>page</title><iframe src=f></iframe><video src=v><source src=w></video>",
    "",
];

/// A spider with everything that the streaming pass supports.
fn spider() -> Spider {
    let css = |selector: &str, list| Field { list, ..Field::new(FieldSource::Css(sited(selector))) };
    let first = ["title::text", "a.next::attr(href)", "a[href]::attr(href)", "link[rel~=next]::attr(href)"];
    let all = [
        "meta[name=viewport]::attr(content)",
        "link[rel=stylesheet]::attr(href)",
        "script[src]::attr(src)",
        "script::text",
        "style::text",
        "img::attr(src)",
        "h1[class]::attr(class)",
        "h1.big#top::attr(id)",
        "h2::attr(id)",
        "div[id]::attr(id)",
        "section[id]::attr(class)",
        "span[id]::attr(id)",
        "iframe[src]::attr(src)",
        "source::attr(src)",
        "article::attr(id)",
        "time::attr(datetime)",
    ];
    let pages = PageField::ALL.into_iter().filter(|field| !field.needs_tree());
    let metas = ["description", "og:title", "generator"]
        .map(|name| Field { list: true, ..Field::new(FieldSource::Meta(sited(name))) });
    let fields = pages.map(|field| Field::new(FieldSource::Page(field)));
    let fields = fields
        .chain(first.map(|selector| css(selector, false)))
        .chain(all.map(|selector| css(selector, true)));
    let scripts = ["state", "a"].map(|name| Field::new(FieldSource::Script(sited(name), None)));
    let fields =
        fields.chain(metas).chain([Field::new(FieldSource::JsonLd(sited("Product"), None))]).chain(scripts);
    let fields = fields.enumerate().map(|(number, field)| (number.to_string(), field)).collect();
    let follow = Follow {
        next: vec![sited("link[rel~=next]::attr(href)").into(), sited("a.next::attr(href)").into()],
        noindex: false,
        ..Follow::default()
    };
    spider_of(vec![ItemRule { name: None, each: None, fields, page: None }], Some(follow))
}

/// Both engines for one spider.
struct Engines {
    streaming: Extractor,
    tree: Extractor,
}

impl Engines {
    fn new() -> Self {
        let spider = spider();
        let streaming = Extractor::new(&spider).unwrap();
        assert!(!streaming.needs_tree(), "a field of this test needs a tree");
        let tree = Extractor::from_planner(Planner::new(&spider, false)).unwrap();
        assert!(tree.needs_tree());
        Self { streaming, tree }
    }

    /// Returns the results of both engines for a page, or `None` if its tree is refused.
    fn both(&self, body: &[u8]) -> Option<(Extraction, Extraction)> {
        let response = response(body);
        let (url, never) = ("https://example.com/dir/page".parse().unwrap(), AtomicBool::new(false));
        let by_tree = self.tree.extract(&url, &response, &never).ok()?;
        Some((self.streaming.extract(&url, &response, &never).unwrap(), by_tree))
    }

    fn agree_on(&self, body: &[u8], name: &str) -> bool {
        let Some((streamed, by_tree)) = self.both(body) else { return true };
        if streamed != by_tree {
            eprintln!("{name}: {}", difference(&streamed, &by_tree));
        }
        streamed == by_tree
    }
}

fn difference(streamed: &Extraction, by_tree: &Extraction) -> String {
    let fields = |extraction: &Extraction| extraction.items[0].fields.clone();
    let (one, other) = (fields(streamed), fields(by_tree));
    let differs = one.iter().find(|(name, value)| other[*name] != **value);
    differs.map_or_else(
        || format!("links: {:?} and {:?}", streamed.links, by_tree.links),
        |(name, value)| format!("field {name}: {value} and {}", other[name]).chars().take(600).collect(),
    )
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
}

/// Compares at most `most` pages of each installed site.
fn compare_sites(most: usize) {
    let engines = Engines::new();
    for site in SITES {
        let folder = Path::new(site);
        if !folder.exists() {
            eprintln!("{site} is not there: nothing of it is compared");
            continue;
        }
        let mut all = Vec::new();
        files(folder, &mut all);
        let step = all.len().div_ceil(most).max(1);
        let chosen: Vec<_> = all.iter().step_by(step).collect();
        let agree =
            |path: &&&PathBuf| engines.agree_on(&std::fs::read(path).unwrap(), &path.display().to_string());
        let equal = chosen.iter().filter(agree).count();
        eprintln!("{site}: {equal} of {} pages are equal", chosen.len());
        assert_eq!(equal, chosen.len());
    }
}

#[test]
fn both_engines_agree_on_pages_as_they_are_written() {
    let engines = Engines::new();
    for page in PAGES {
        assert!(engines.agree_on(page.as_bytes(), page), "{page}");
    }
    let (found, _) = engines.both(PAGES[0].as_bytes()).unwrap();
    assert!(
        found.items[0]
            .fields
            .values()
            .filter(|value| value.as_array().is_some_and(|all| !all.is_empty()))
            .count()
            > 5
    );
    assert_eq!(found.missing, []);
}

#[test]
fn both_engines_agree_on_documentation_sites() {
    compare_sites(60);
}

#[test]
fn the_trees_of_documentation_sites_are_those_that_the_parser_builds_alone() {
    let never = AtomicBool::new(false);
    for folder in SITES.iter().map(Path::new).filter(|folder| folder.is_dir()) {
        let mut all = Vec::new();
        files(folder, &mut all);
        for path in all.iter().step_by(all.len().div_ceil(60).max(1)) {
            let page = std::fs::read(path).unwrap();
            let page = String::from_utf8_lossy(&page);
            let Ok(tree) = tree::build(&page, &never) else { continue };
            assert!(tree.html() == Html::parse_document(&page).html(), "{}", path.display());
        }
    }
}

#[test]
#[ignore = "takes minutes: every page of the sites"]
fn both_engines_agree_on_every_page_of_documentation_sites() {
    compare_sites(usize::MAX);
}

const ATTRIBUTES: &[&str] = &[
    "",
    " id=a",
    " class='x next'",
    " id='b' class=big",
    " src=1",
    " src='a&amp;b'",
    " href=x",
    " datetime=2024",
    " name=viewport content=w",
    " name='Description' content='d &lt; e'",
    " rel='next' href='?p'",
];
const BLOCKS: &[&str] = &["div", "section", "article", "main", "ul", "blockquote", "figure", "nav"];
const INLINES: &[&str] = &["span", "em", "time", "b", "code", "q"];
const VOIDS: &[&str] = &["img", "meta", "link", "br", "source", "hr"];

fn attributes() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(ATTRIBUTES)
}

fn inline() -> impl Strategy<Value = String> {
    let text = proptest::sample::select(&["a", " b ", "&amp;", "&eacute;", "x &lt; y", "ö"][..])
        .prop_map(String::from);
    let void = (proptest::sample::select(VOIDS), attributes())
        .prop_map(|(name, attributes)| format!("<{name}{attributes}>"));
    prop_oneof![text, void].prop_recursive(3, 12, 4, |inner| {
        (proptest::sample::select(INLINES), attributes(), proptest::collection::vec(inner, 0..4))
            .prop_map(wrap)
    })
}

/// Balanced, well-nested markup: no links in links, no blocks in paragraphs.
fn block() -> impl Strategy<Value = String> {
    let line = proptest::collection::vec(inline(), 0..4);
    let paragraph = (proptest::sample::select(&["p", "h1", "h2", "a", "li", "td"][..]), attributes(), line);
    let paragraph = paragraph.prop_map(|(name, attributes, inner)| match name {
        "td" => format!("<table><tr>{}</tr></table>", wrap((name, attributes, inner))),
        _ => wrap((name, attributes, inner)),
    });
    let script = Just("<script>'<img src=no>' < 1</script><style>x</style><!-- <div id=c> -->".to_owned());
    prop_oneof![8 => paragraph, 1 => script].prop_recursive(4, 24, 5, |inner| {
        (proptest::sample::select(BLOCKS), attributes(), proptest::collection::vec(inner, 0..5))
            .prop_map(wrap)
    })
}

fn wrap((name, attributes, inner): (&str, &str, Vec<String>)) -> String {
    format!("<{name}{attributes}>{}</{name}>", inner.concat())
}

proptest! {
    #[test]
    fn both_engines_agree_on_sound_markup(blocks in proptest::collection::vec(block(), 0..6)) {
        let page = format!("<!doctype html><html lang=en><head><title>t</title></head><body>{}</body></html>", blocks.concat());
        prop_assert!(Engines::new().agree_on(page.as_bytes(), &page));
    }
}
