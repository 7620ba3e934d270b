//! An [`Extractor`] on whole pages.

mod differential;
mod fields;
mod json;
mod links;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::mistake::Sited;
use trawl_common::names::SpiderName;
use trawl_common::settings;
use trawl_common::spider::{Field, FieldSource, Follow, ItemRule, Kind, PageField, Required, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::sniff::is_html;

use super::*;
use crate::limits::MAX_LINKS;

fn extractor(fields: &[(&str, &str)]) -> Extractor {
    let fields: BTreeMap<_, _> =
        fields.iter().map(|(name, css)| (name.to_string(), css.to_string())).collect();
    let items = settings::Items { links: true, fields, ..settings::Items::default() };
    Extractor::new(&Spider::without_file(SpiderName::default(), &items)).unwrap()
}

fn sited(text: &str) -> Sited<String> {
    Sited::nowhere(text)
}

/// A spider of these items and links, and nothing else.
fn spider_of(items: Vec<ItemRule>, follow: Option<Follow>) -> Spider {
    let nothing = Spider::without_file(SpiderName::default(), &settings::Items::default());
    Spider { items, follow, ..nothing }
}

/// One kind of item, one a page.
fn rule<const N: usize>(fields: [(&str, Field); N]) -> ItemRule {
    let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    ItemRule { name: None, each: None, fields, page: None }
}

fn css(selector: &str) -> Field {
    Field::new(FieldSource::Css(sited(selector)))
}

/// Extracts a page at `https://example.com/dir/page`.
fn extraction(spider: &Spider, response: &Response) -> Extraction {
    let url = "https://example.com/dir/page".parse().unwrap();
    let extractor = Extractor::new(spider).unwrap();
    extractor.extract(&url, response, &AtomicBool::new(false)).unwrap()
}

/// The only item of a page.
fn item<const N: usize>(fields: [(&str, Field); N], page: &str) -> Value {
    let mut extraction = extraction(&spider_of(vec![rule(fields)], None), &response(page));
    assert_eq!(extraction.items.len(), 1);
    extraction.items.remove(0).fields.into()
}

fn response(body: impl AsRef<[u8]>) -> Response {
    Response {
        status: 200,
        headers: Headers::from_iter([("content-type", "text/html")]),
        redirected_to: None,
        fetched_at: UnixMs(0),
        address: None,
        body: body.as_ref().to_vec().into(),
    }
}

fn extract_with(extractor: &Extractor, body: impl AsRef<[u8]>) -> Result<Map<String, Value>, Failure> {
    extractor
        .extract(&"https://example.com/dir/page".parse().unwrap(), &response(body), &AtomicBool::new(false))
        .map(|extraction| extraction.items.into_iter().next().unwrap().fields)
}

fn extract(body: impl AsRef<[u8]>) -> Map<String, Value> {
    extract_with(&extractor(&[]), body).unwrap()
}

/// One field of a page.
fn field(name: &str, body: &str) -> Value {
    extract(body)[name].clone()
}

#[test]
fn a_page_has_its_fields() {
    let page = "<!doctype html><html lang=en-GB><head><title>A page</title>\
        <meta name=description content='About it'><link rel=canonical href=/page>\
        </head><body><a href=one>1</a> <a href='two#part'>2</a> <map><area href=/three></map> <a name=x>";
    let expected = json!({
        "title": "A page",
        "description": "About it",
        "canonical": "https://example.com/page",
        "language": "en-GB",
        "link_count": 3,
        "links": ["https://example.com/dir/one", "https://example.com/dir/two", "https://example.com/three"],
    });
    assert_eq!(Value::Object(extract(page)), expected);
}

#[test]
fn a_page_that_says_nothing_has_nulls() {
    let expected = json!({
        "title": null, "description": null, "canonical": null, "language": null, "link_count": 0, "links": [],
    });
    for page in ["", "text", "<title> </title><meta name=description content=''><html lang>", "\u{0}"] {
        assert_eq!(Value::Object(extract(page)), expected, "{page}");
    }
}

#[test]
fn titles_are_decoded_and_squeezed() {
    for (page, title) in [
        ("<title>a &amp; b &#8211; c &#x2014; &eacute;t&eacute</title>", "a & b \u{2013} c \u{2014} été"),
        (
            "<title>&notit; &notin; &nonsense; &amp;amp; &#0; &#x110000; &</title>",
            "¬it; ∉ &nonsense; &amp; \u{fffd} \u{fffd} &",
        ),
        ("<TITLE\n>\n\t a \r\n  b\u{a0}c </TiTlE >d", "a b c"),
        ("<title>a <b>c</b> <!-- d --></title>", "a <b>c</b> <!-- d -->"),
        ("<title>a\u{0}\u{1b}[31mb\u{7}</title>", "a[31mb"),
        ("<body><p><title>in the body</title>", "in the body"),
        ("<title>never closed <p>", "never closed <p>"),
    ] {
        assert_eq!(field("title", page), title, "{page}");
    }
}

#[test]
fn the_first_title_of_the_page_that_has_text_counts() {
    for (page, title) in [
        ("<title>one</title><title>two</title>", json!("one")),
        ("<title></title><title>two</title>", json!("two")),
        ("<svg><title>drawing</title></svg><title>page</title>", json!("page")),
        ("<svg><title>drawing</title></svg>", json!(null)),
        ("<script>'<title>x</title>'</script><!-- <title>y</title> --><title>z</title>", json!("z")),
    ] {
        assert_eq!(field("title", page), title, "{page}");
    }
}

#[test]
fn a_description_is_found_however_it_is_written() {
    for meta in [
        "<meta name=\"description\" content=\"a &quot;b&quot; c&copy=d\">",
        "<META CONTENT='a \"b\" c&amp;copy=d' NAME='Description'/>",
        "<meta content=a&#32;&#34;b&#34;&#10;c&copy=d name=DESCRIPTION>",
        "<meta name=description content=''><meta name=description content='a \"b\" c&copy=d'>",
    ] {
        assert_eq!(field("description", meta), "a \"b\" c&copy=d", "{meta}");
    }
    assert_eq!(field("description", "<meta property=description content=x>"), Value::Null);
}

#[test]
fn the_language_is_that_of_the_page_or_its_header() {
    let header = "<meta http-equiv=Content-Language content=de>";
    assert_eq!(field("language", header), "de");
    assert_eq!(field("language", &format!("<html lang='fr'>{header}<p lang=it>")), "fr");
}

#[test]
fn the_canonical_link_is_absolute() {
    let canonical = |link: &str| field("canonical", link);
    assert_eq!(canonical("<link href='../x#y' rel='alternate CANONICAL'>"), "https://example.com/x");
    assert_eq!(
        canonical("<link rel=canonical href='//other.example/?a=1&amp;b'>"),
        "https://other.example/?a=1&b"
    );
    for useless in
        ["<link rel=canonical>", "<link rel=canonical href=javascript:x>", "<link rel=icon href=x>"]
    {
        assert_eq!(canonical(useless), Value::Null, "{useless}");
    }
}

#[test]
fn links_are_relative_to_the_first_base() {
    let links = |page: &str| field("links", page);
    let page = "<a href=before><base href='/base/'><base href=/other/><a href=after><a href='?q'>";
    let at = |path| format!("https://example.com/base/{path}");
    assert_eq!(links(page), json!([at("before"), at("after"), at("?q")]));
    assert_eq!(links("<base href='data:x,y'><a href=z>"), json!(["https://example.com/dir/z"]));
    assert_eq!(links("<base href='https://o.example/a/b'><a href=z>"), json!(["https://o.example/a/z"]));
}

#[test]
fn after_a_redirect_links_are_relative_to_what_answered() {
    let redirected_to = Some("https://other.example/a/".parse().unwrap());
    let response = Response { redirected_to, ..response("<a href=b>") };
    let fields = extractor(&[])
        .extract(&"https://example.com/".parse().unwrap(), &response, &AtomicBool::new(false))
        .unwrap();
    assert_eq!(fields.items[0].fields["links"], json!(["https://other.example/a/b"]));
}

#[test]
fn links_are_listed_once_and_only_if_they_can_be_crawled() {
    let page = "<a href=b><a href=' b#x '><a href=b?utm_source=y><a href=mailto:a@b.example><a href='javascript:x'>\
        <a href='http://u:p@example.com'><a href='http://['><a href='a&amp;b'>";
    let fields = extract(page);
    assert_eq!(fields["link_count"], 8);
    assert_eq!(fields["links"], json!(["https://example.com/dir/b", "https://example.com/dir/a&b"]));
}

#[test]
fn links_are_left_out_unless_they_are_asked_for() {
    let spider = Spider::without_file(SpiderName::default(), &settings::Items::default());
    let extractor = Extractor::new(&spider).unwrap();
    assert_eq!(extract_with(&extractor, "<a href=x>").unwrap().get("links"), None);
}

#[test]
fn text_in_other_encodings_is_read() {
    let (japanese, ..) = encoding_rs::SHIFT_JIS.encode("<meta charset=shift_jis><title>日本語</title>");
    assert_eq!(extract(japanese)["title"], "日本語");
    let utf_16: Vec<u8> = "\u{feff}<title>ж</title>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(extract(utf_16)["title"], "ж");
    assert_eq!(extract(b"<title>caf\xe9 cr\xe8me, d\xe9j\xe0 vu</title>")["title"], "café crème, déjà vu");
}

#[test]
fn own_fields_are_added_and_may_replace_the_defaults() {
    let extractor = extractor(&[
        ("title", "h1"),
        ("price", "span.price ::text"),
        ("image", "img::attr(src)"),
        ("none", "h2"),
    ]);
    let page = "<title>x</title><h1>A <b>thing</b></h1><span class=price> 3&nbsp;€ </span><img src=a.png>";
    let fields = extract_with(&extractor, page).unwrap();
    assert_eq!([&fields["title"], &fields["price"], &fields["image"]], ["A thing", "3 €", "a.png"]);
    assert_eq!((&fields["none"], &fields["link_count"]), (&Value::Null, &json!(0)));
}

#[test]
fn a_bad_selector_is_named() {
    let fields = BTreeMap::from([("price".to_owned(), "span..price".to_owned())]);
    let items = settings::Items { fields, ..settings::Items::default() };
    let mistakes = Extractor::new(&Spider::without_file(SpiderName::default(), &items)).unwrap_err();
    let message: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert!(message[0].starts_with("items.fields.price: `span..price` is not a selector: "), "{message:?}");
    assert_eq!(message.len(), 1);
}

#[test]
fn an_item_stays_below_its_limit_whatever_the_page_holds() {
    let names: Vec<String> = (0..100).map(|number| format!("field{number}")).collect();
    let own: Vec<_> = names.iter().map(|name| (name.as_str(), "h1")).collect();
    let quotes = "\"".repeat(1 << 20);
    let links: String =
        (0..30_000).map(|number| format!("<a href='/{}{number}'>", "x".repeat(100))).collect();
    let page =
        format!("<title>{quotes}</title><meta name=description content='{quotes}'>{links}<h1>{quotes}</h1>");
    let fields = extract_with(&extractor(&own), page).unwrap();
    assert_eq!(fields["title"].as_str().map(str::len), Some(MAX_PAGE_TEXT));
    assert_eq!(fields["field0"].as_str().map(str::len), Some(MAX_TEXT));
    let least = fields["field99"].as_str().unwrap().len();
    assert!((10_000..20_000).contains(&least), "{least}");
    assert_eq!(fields["link_count"], 30_000);
    assert!((10_000..30_000).contains(&fields["links"].as_array().unwrap().len()));
    let length = serde_json::to_string(&fields).unwrap().len();
    assert!(length < 8 << 20, "{length}");
}

#[test]
fn a_page_that_needs_too_much_memory_fails() {
    let failure = extract_with(&extractor(&[]), "<b>".repeat(3_000_000)).unwrap_err();
    assert_eq!(failure.class, Class::Parse);
}

#[test]
fn pages_cut_off_anywhere_are_read() {
    let page = "<html lang=en><title>a&amp;b</title><meta charset=utf-8><a href='x&amp;y'>ä</a><!-- c --><svg><title/>";
    for end in 0..page.len() {
        let fields = extract(&page.as_bytes()[..end]);
        assert!(fields["title"].is_null() || end > 21);
    }
}

#[test]
fn one_extractor_serves_all_threads() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<Extractor>();
}

const MARKUP: &[&str] = &[
    "<title>",
    "</title>",
    "<svg>",
    "</svg>",
    "<math>",
    "<annotation-xml encoding=text/html>",
    "<p>",
    "<br/>",
    "<a href=",
    "<base href='",
    "'",
    "\"",
    ">",
    "&amp",
    "&#",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<script>",
    "</script>",
    "<select>",
    "<xmp>",
    "<table>",
    "<template>",
    "<font color=x>",
    "\0",
    "\u{e9}",
    " ",
    "x=1",
    "<meta charset=utf-16",
    "<html lang=",
    "</",
    "<plaintext>",
    "<desc>",
    "</desc>",
    "<frameset>",
    "<mi>",
];

/// Fragments of markup in any order: nearer to trouble than random bytes.
fn markup() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        9 => proptest::sample::select(MARKUP).prop_map(|part| part.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..8),
    ];
    proptest::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_page_makes_it_panic(page in markup(), bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let with_fields = extractor(&[("t", "title"), ("x", "p > a[href]::attr(href)")]);
        for body in [page, bytes] {
            let _ = is_html(None, &body);
            if let Ok(fields) = extract_with(&with_fields, &body) {
                let text = Value::Object(fields).to_string();
                prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            }
        }
    }
}
