//! Pages made to keep a parser busy, to fill its memory, or to hurt whoever reads what it yields: each row is an attack
//! of some hundred KB at least, and what becomes of it.
//!
//! `tests/attacks.md` lists the same rows; `cargo test --release -p trawl-extract --test attacks -- --nocapture` prints
//! the time that each takes.

mod kinds;
mod pages;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::names::SpiderName;
use trawl_common::settings;
use trawl_common::spider::Spider;
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extractor, MAX_PAGE_TEXT, MAX_TEXT};
use trawl_testkit::attacks::Section;

/// How large a page is: less where every byte takes ten times as long.
const SIZE: usize = if cfg!(debug_assertions) { 1 << 18 } else { 1 << 20 };

/// How large one is whose tree must have too many nodes.
const LARGE: usize = 1 << 20;

/// A backstop: what is not linear takes minutes in a debug build.
const LONGEST: Duration = Duration::from_secs(60);

/// The most bytes of an item.
const MAX_ITEM: usize = 8 << 20;

struct Attack {
    name: &'static str,
    page: Vec<u8>,
    content_type: &'static str,
    spider: fn() -> Spider,
    verdict: Verdict,
}

enum Verdict {
    /// A failure of class `parse` that says so.
    Refused(&'static str),
    /// An item, with this field.
    Read(&'static str, Value),
}

use Verdict::{Read, Refused};

const OPEN: Verdict = Refused("more than 512 open elements");
const NODES: Verdict = Refused("more than 500000 nodes");
const NAMES: Verdict = Refused("more than 4096 long names of elements and attributes");
const REPEATED: Verdict = Refused("more than 16777216 bytes of attributes in reopened elements");
const ATTRIBUTES: Verdict = Refused("more than 256 attributes in one tag");

/// A page whose title is kept: the parser came to its end.
fn survives() -> Verdict {
    Read("title", "t".into())
}

fn title(title: impl Into<Value>) -> Verdict {
    Read("title", title.into())
}

/// A title, then `start`, then `part` as often as fits.
fn page(start: &str, part: &str) -> Vec<u8> {
    filled(start, part, SIZE)
}

fn filled(start: &str, part: &str, size: usize) -> Vec<u8> {
    format!("<title>t</title>{start}{}", part.repeat(size / part.len().max(1))).into_bytes()
}

/// A title, `start`, then numbered parts as many as fit, then `end`.
fn numbered(start: &str, part: impl Fn(usize) -> String, end: &str) -> Vec<u8> {
    let mut page = format!("<title>t</title>{start}");
    let mut number = 0;
    while page.len() < SIZE {
        page += &part(number);
        number += 1;
    }
    (page + end).into_bytes()
}

fn fonts(number: usize) -> String {
    (0..number).fold(String::new(), |mut fonts, number| {
        let _ = write!(fonts, "<font color={number}>");
        fonts
    })
}

fn nesting() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    vec![
        ("nested <div>", page("", "<div>"), OPEN),
        ("nested <div> with stray </p>", page("", "<div></p>"), OPEN),
        ("nested <b><i>", page("", "<b><i>"), OPEN),
        ("nested lists", page("", "<ul><li>"), OPEN),
        ("nested tables", page("", "<table><tr><td>"), OPEN),
        ("nested <template>", page("", "<template>"), survives()),
        ("nested <frameset>", page("", "<frameset>"), OPEN),
        ("nested <button> and <object>", page("", "<object><button>"), OPEN),
        ("nested <select>", page("", "<div><select><option>"), OPEN),
        ("elements hidden in SVG: <svg><div/>", page("", "<svg><div/>"), OPEN),
        ("HTML in SVG in HTML", page("", "<svg><foreignObject><p>"), OPEN),
        ("HTML in MathML in HTML", page("", "<math><mi><div>"), OPEN),
        ("nested <a> in <div>", page("", "<a><div>"), OPEN),
        ("misnested <b><i><p></b></i>", page("", "<b><i><p></b></i>"), survives()),
        ("at the limit: 500 <div> around siblings", page(&"<div>".repeat(500), "<p>"), survives()),
        (
            "at the limit: 500 <div> around misnested tags",
            page(&"<div>".repeat(500), "<b><p></b>"),
            survives(),
        ),
    ]
}

fn floods() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    vec![
        ("nodes: <p>a", filled("", "<p>a", LARGE), NODES),
        (
            "nodes: 120 <font> opened again in each <p>",
            page(&format!("<p>{}", fonts(120)), "</p><p>a"),
            NODES,
        ),
        (
            "a <b> of 100,000 classes opened again in each <p>",
            page(&format!("<p><b class='{}'>", "a ".repeat(100_000)), "</p><p>a"),
            REPEATED,
        ),
        ("120 <font> closed in the wrong order", page(&fonts(120), "<p></font>"), survives()),
        ("stray </p>", page("", "</p>"), survives()),
        ("stray </b>", page("", "</b>"), survives()),
        ("stray </b> under 250 formatting elements", page(&fonts(250), "</b>"), survives()),
        ("stray </div> under 500 elements", page(&"<section>".repeat(500), "</div>"), survives()),
        ("adjacent <a>", page("", "<a>"), survives()),
        ("adjacent <a> in a paragraph", filled("<p>", "<a>x", LARGE), NODES),
        ("<nobr> after <nobr>", page("", "<nobr>"), survives()),
        ("<li> after <li>", page("<ul>", "<li>"), survives()),
        ("foster parenting: text and tags in <table>", filled("<table>", "<a>x", LARGE), NODES),
        ("foster parenting: text in many tables", page("", "<table>x</table>"), survives()),
        (
            "<body> after <body>, each with an attribute",
            numbered("", |n| format!("<body attribute{n}>"), ""),
            NAMES,
        ),
        ("invented elements", numbered("", |n| format!("<element{n}></element{n}>"), ""), NAMES),
        ("invented attributes", numbered("", |n| format!("<p attribute{n}>"), ""), NAMES),
        ("bogus comments <!> and <?>", page("", "<!x><?y>"), survives()),
        ("a storm of <", page("", "<"), survives()),
        ("a storm of </", page("", "</"), survives()),
        ("a storm of &", page("", "&"), survives()),
        ("a storm of &amp;", page("", "&amp;"), survives()),
        (
            "a storm of &CounterClockwiseContourIntegral",
            page("", "&CounterClockwiseContourIntegra"),
            survives(),
        ),
        ("a number without end: &#111...", page("&#", "1"), survives()),
    ]
}

fn attributes() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    let many = |number: usize| (0..number).map(|n| format!(" a{n}=b")).collect::<String>();
    vec![
        ("10,000 attributes in one tag", page(&format!("<p{}>", many(10_000)), ""), ATTRIBUTES),
        ("300 attributes in one tag", page(&format!("<p{}>", many(300)), ""), ATTRIBUTES),
        ("attributes in a tag without end", numbered("<p", |n| format!(" a{n}"), ""), ATTRIBUTES),
        ("attributes in an end tag", numbered("</p", |n| format!("/a{n}"), ">"), survives()),
        ("tags of 1,000 attributes", page("", &format!("<p{}>", many(1_000))), ATTRIBUTES),
        ("tags of 250 attributes", page("", &format!("<p{}>", many(250))), survives()),
        (
            "one attribute, 3,000 times in one tag",
            page(&format!("<p{}>", " a=b".repeat(3_000)), ""),
            survives(),
        ),
        ("a whole page in one attribute", page("<img alt='", "x y "), survives()),
        ("a whole page in one attribute's name", page("<p ", "x"), survives()),
        ("a whole page in one tag's name", page("<", "x"), survives()),
    ]
}

fn endless() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    vec![
        ("a comment without end", page("<!--", "<p a b c> --!"), survives()),
        ("a comment of dashes", page("<!--", "-"), survives()),
        ("CDATA without end", page("<svg><![CDATA[", "<p>]]"), survives()),
        ("a script without end", page("<script>", "</scrip <!--"), survives()),
        ("a document type without end", page("<!doctype html public '", "<p>"), survives()),
        ("<plaintext>", page("<plaintext>", "<p>"), survives()),
        ("a huge title", title_page("x"), title("x".repeat(MAX_PAGE_TEXT))),
        ("a huge title of &amp;", title_page("&amp;"), title("&".repeat(MAX_PAGE_TEXT))),
        ("a huge title of <", title_page("<"), title("<".repeat(MAX_PAGE_TEXT))),
        ("a huge heading", page("<h1>", "ö"), Read("heading", "ö".repeat(SIZE.min(MAX_TEXT) / 2).into())),
    ]
}

fn title_page(part: &str) -> Vec<u8> {
    format!("<title>{}</title>", part.repeat(5 * SIZE / part.len())).into_bytes()
}

fn links() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    let base = format!("<base href='https://example.com/{}/'>", "b/".repeat(SIZE / 4));
    let short_base = format!("<base href='https://example.com/{}/'>", "b".repeat(8000));
    let link = |n| format!("<a href={n}>");
    let count = |page: &[u8]| page.windows(8).filter(|window| *window == b"<a href=").count();
    let row = |name, page: Vec<u8>| {
        let links = count(&page);
        (name, page, Read("link_count", links.into()))
    };
    vec![
        row("a huge base URL, and links", numbered(&base, link, "")),
        row("a base URL of 8 KB, and links", numbered(&short_base, link, "")),
        row("a huge link", numbered("<a href='", |n| format!("/{n}"), "'>")),
        row(
            "links to international hosts",
            numbered("", |n| format!("<a href='//{}{n}.example'>", "ö".repeat(20)), ""),
        ),
        row(
            "links to hosts of one long label",
            numbered("", |n| format!("<a href='//{}{n}'>", "ö".repeat(900)), ""),
        ),
        row(
            "links to Punycode hosts",
            numbered("", |n| format!("<a href='//xn--{}{n}'>", "a9".repeat(900)), ""),
        ),
    ]
}

fn encodings() -> Vec<(&'static str, Vec<u8>, &'static str, Verdict)> {
    let utf_16 = |units: &[u16]| units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<u8>>();
    let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
    let lone =
        [units("\u{feff}<title>a"), vec![0xd800, 0xdc00, 0xd800, 0x62, 0xdfff], units("</title>")].concat();
    vec![
        ("lone surrogates in UTF-16", utf_16(&lone), "text/html", title("a\u{10000}\u{fffd}b\u{fffd}")),
        (
            "UTF-7, which hides tags",
            b"<title>+ADw-script+AD4-</title>".to_vec(),
            "text/html; charset=utf-7",
            title("+ADw-script+AD4-"),
        ),
        (
            "ISO-2022-JP that nobody declared",
            b"<title>\x1b$B<script>\x1b(B</title>".to_vec(),
            "text/html",
            title("$B<script>(B"),
        ),
        (
            "ISO-2022-KR, which hides tags",
            b"<title>t</title>\x0e<script>\x0f".to_vec(),
            "text/html; charset=iso-2022-kr",
            Read("title", Value::Null),
        ),
        (
            "a <meta> that claims UTF-16",
            "<meta charset=utf-16><title>ö</title>".into(),
            "text/html",
            title("ö"),
        ),
        (
            "a <meta> against the header",
            b"<meta charset=shift_jis><title>\xf6</title>".to_vec(),
            "text/html; charset=windows-1252",
            title("ö"),
        ),
        (
            "null bytes",
            [b"<title>t\0</title>".as_slice(), &vec![0; SIZE]].concat(),
            "text/html",
            title("t\u{fffd}"),
        ),
        ("null bytes in SVG", page("<svg>", "\0<g/>"), "text/html", survives()),
        (
            "invalid UTF-8",
            [b"<title>t</title>".as_slice(), &vec![0xff; SIZE]].concat(),
            "text/html",
            survives(),
        ),
        (
            "escape sequences for a terminal",
            "<title>a\u{1b}]0;x\u{7}\u{9b}31m\u{7f}\u{85}b</title>".into(),
            "text/html",
            title("a]0;x31m b"),
        ),
        (
            "escape sequences as character references",
            "<title>a&#27;[31m&#x9b;&#127;&#0;b</title>".into(),
            "text/html",
            title("a[31m\u{203a}\u{fffd}b"),
        ),
    ]
}

fn attacks() -> Vec<Attack> {
    let html = [nesting(), floods(), attributes(), endless(), links()].into_iter().flatten();
    let html = html.map(|(name, page, verdict)| (name, page, "text/html", plain as fn() -> Spider, verdict));
    let encoded = encodings().into_iter();
    let encoded =
        encoded.map(|(name, page, kind, verdict)| (name, page, kind, plain as fn() -> Spider, verdict));
    let kinds = kinds::html().into_iter();
    let kinds = kinds.map(|(name, page, verdict)| {
        (name, page, "text/html", kinds::html_spider as fn() -> Spider, verdict)
    });
    let json = kinds::json().into_iter();
    let json = json.map(|(name, page, verdict)| {
        (name, page, "application/json", kinds::json_spider as fn() -> Spider, verdict)
    });
    let all = html.chain(encoded).chain(kinds).chain(json);
    all.map(|(name, page, content_type, spider, verdict)| Attack {
        name,
        page,
        content_type,
        spider,
        verdict,
    })
    .collect()
}

/// Fields by selector beside the default ones.
fn plain() -> Spider {
    let fields = [("heading", "h1"), ("nested", "div > p a[href]::attr(href)")];
    let fields: BTreeMap<_, _> =
        fields.into_iter().map(|(name, css)| (name.to_owned(), css.to_owned())).collect();
    let settings = settings::Items { links: true, fields, ..settings::Items::default() };
    Spider::without_file(SpiderName::default(), &settings)
}

fn extract(attack: &Attack) -> Result<Map<String, Value>, Failure> {
    let response = answer(attack.content_type, attack.page.clone());
    let extractor = Extractor::new(&(attack.spider)()).expect("sound selectors");
    let extraction = extractor.extract(&url(), &response, &AtomicBool::new(false))?;
    Ok(extraction.items.into_iter().next().expect("an item").fields)
}

fn answer(content_type: &'static str, body: Vec<u8>) -> Response {
    Response {
        status: 200,
        headers: Headers::from_iter([("content-type", content_type)]),
        redirected_to: None,
        fetched_at: UnixMs(0),
        address: None,
        body: body.into(),
    }
}

fn url() -> CanonicalUrl {
    "https://example.com/dir/page".parse().expect("a URL")
}

#[test]
fn every_attack_ends_soon_in_an_item_or_a_failure_that_hurts_nobody() {
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Parsing");
    let mut wrong = Vec::new();
    for attack in attacks() {
        let start = Instant::now();
        let result = extract(&attack);
        let took = start.elapsed();
        let (name, kilobytes) = (attack.name, attack.page.len() / 1024);
        eprintln!("{:8} ms, {kilobytes:8} KB: {name}", took.as_millis());
        section.row(name, &result.as_ref().map_or_else(ToString::to_string, |_| "read".to_owned()));
        if let Some(trouble) = judge(&attack.verdict, &result, took) {
            wrong.push(format!("{name}: {trouble}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    section.check();
}

/// Returns the fault in the result of an attack, if there is one.
fn judge(verdict: &Verdict, result: &Result<Map<String, Value>, Failure>, took: Duration) -> Option<String> {
    if took > LONGEST {
        return Some(format!("took {took:?}"));
    }
    match (verdict, result) {
        (Refused(why), Err(failure)) if failure.class == Class::Parse && failure.detail == *why => None,
        (Read(field, value), Ok(fields)) => {
            let line = serde_json::to_string(&fields).expect("an item");
            if line.len() > MAX_ITEM {
                return Some(format!("an item of {} bytes", line.len()));
            }
            if line.contains(char::is_control) {
                return Some("control characters in the item".to_owned());
            }
            let shown = |value: &Value| value.to_string().chars().take(80).collect::<String>();
            (fields[*field] != *value).then(|| format!("{field} is {}", shown(&fields[*field])))
        }
        (_, Err(failure)) => Some(failure.to_string()),
        (_, Ok(_)) => Some("read".to_owned()),
    }
}
