//! Attacks on fields that are more than a selector.

use serde_json::Value;
use trawl_common::mistake::Sited;
use trawl_common::names::SpiderName;
use trawl_common::settings;
use trawl_common::spider::{Field, FieldSource, Follow, ItemRule, Kind, PageField, Spider};

use super::Verdict::{self, Read, Refused};
use super::{OPEN, filled, survives};

/// How large a page is: each is read in many ways.
const SIZE: usize = super::SIZE / 2;

fn page(start: &str, part: &str) -> Vec<u8> {
    filled(start, part, SIZE)
}

/// A title, then items of microdata of which each refers to the next `many`.
fn itemrefs(many: usize, items: usize) -> Vec<u8> {
    let item = |number: usize| {
        let next: String = (1..=many).map(|next| format!("i{} ", (number + next) % items)).collect();
        format!("<p id=i{number} itemprop=p itemscope itemtype=Product itemref='{next}'></p>")
    };
    format!("<title>t</title>{}", (0..items).map(item).collect::<String>()).into_bytes()
}

fn json_ld(json: &str) -> Vec<u8> {
    format!("<title>t</title><script type=application/ld+json>{json}</script>").into_bytes()
}

/// Attacks on what a spider may ask of HTML.
pub(crate) fn html() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    let deep = format!("{}1{}", "{\"a\":".repeat(120), "}".repeat(120));
    let nothing = |field| Read(field, Value::Null);
    vec![
        (
            "a cell that spans a million rows and columns",
            page("<table>", "<tr><td colspan=1000000 rowspan=1000000>x"),
            survives(),
        ),
        (
            "headings that span a million columns, in many tables",
            page("", "<table><tr><th colspan=1000000>x<tr><td>y</table>"),
            survives(),
        ),
        (
            "a thousand headings alike, in many tables",
            page("", &format!("<table><tr>{}<tr><td>y</table>", "<th>x".repeat(1000))),
            survives(),
        ),
        ("tables in tables", page(&"<table><tr><td>".repeat(100), "x</table><table><tr><td>"), survives()),
        ("an item of microdata that holds itself", itemrefs(1, 2), survives()),
        (
            "items of microdata that each hold all after them",
            itemrefs(20, 25),
            Refused("items of microdata in each other without end"),
        ),
        (
            "items of microdata with a whole page of text each",
            page(&"<div itemscope itemprop=p itemtype=X>".repeat(30), "<p itemprop=n>x</p>"),
            survives(),
        ),
        (
            "a thousand names for each property",
            page("<div itemscope itemtype=Product>", &format!("<p itemprop='{}'>x", "a b c d ".repeat(250))),
            survives(),
        ),
        ("JSON-LD nested without end", json_ld(&"[".repeat(SIZE)), nothing("product")),
        (
            "JSON-LD of a million values",
            json_ld(&format!("[{}1]", "1,".repeat(1_000_000))),
            nothing("product"),
        ),
        (
            "JSON-LD objects of the type asked for, in each other",
            page(
                "",
                &format!(
                    "<script type=application/ld+json>{}</script>",
                    deep.replace("\"a\"", "\"@type\":\"Product\",\"a\"")
                ),
            ),
            survives(),
        ),
        (
            "very many scripts of JSON-LD",
            page("", "<script type=application/ld+json>{\"@type\":\"Product\"}</script>"),
            survives(),
        ),
        (
            "a regular expression that backtracks elsewhere",
            page("<h1>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "),
            nothing("pattern"),
        ),
        (
            "a regular expression over a script of 10 MB",
            filled("<script id=big>", "a", 10 << 20),
            nothing("big"),
        ),
        (
            "500 <div> in each other, each with all the text in it",
            page(&"<div>".repeat(500), "text <br>"),
            survives(),
        ),
        (
            "500 <div> in each other, each an object",
            page(&"<div class=each>".repeat(500), "<b>x</b>"),
            survives(),
        ),
        ("very many objects without content", page("", "<i class=each>"), OPEN),
        ("very many texts of one letter", page("", "<b>x</b>"), survives()),
        ("a robots <meta> of commas", page("<meta name=robots content='", ","), Read("title", "t".into())),
        ("a refresh of digits", page("<meta http-equiv=refresh content='", "1"), survives()),
    ]
}

/// Attacks in JSON.
pub(crate) fn json() -> Vec<(&'static str, Vec<u8>, Verdict)> {
    let filled = |start: &str, part: &str, end: &str| {
        [start.as_bytes(), part.repeat(SIZE / part.len()).as_bytes(), end.as_bytes()].concat()
    };
    let deep = format!("{}{{\"x\":1}}{},", "{\"a\":".repeat(100), "}".repeat(100));
    vec![
        (
            "JSON nested without end",
            filled("", "[", ""),
            Refused("not JSON: recursion limit exceeded at line 1 column 128"),
        ),
        (
            "JSON of a million values",
            [b"[".as_slice(), &b"1,".repeat(1_000_000), b"1]"].concat(),
            Refused("JSON of more than 500000 values"),
        ),
        (
            "JSON that breaks off",
            b"[1,".to_vec(),
            Refused("not JSON: EOF while parsing a value at line 1 column 3"),
        ),
        (
            "JSON of closing brackets",
            filled("", "]", "x"),
            Refused("not JSON: expected value at line 1 column 1"),
        ),
        (
            "JSON of closing brackets and comments",
            filled("", "]/**/", "x"),
            Refused("not JSON: expected value at line 1 column 1"),
        ),
        (
            "JSON with a name of its own for each value",
            filled("{\"x\":1,", "\"y\":1,", "\"z\":1}"),
            Read("x", 1.into()),
        ),
        ("a JSONPath down objects nested a hundred deep", filled("[", &deep, "1]"), Read("below", 1.into())),
        (
            "a JSON text of half a megabyte",
            filled("{\"x\":1,\"text\":\"", "\\u0000\\\"ö", "\"}"),
            Read("x", 1.into()),
        ),
        ("a number of half a megabyte", filled("{\"x\":1,\"text\":0.", "1", "}"), Read("x", 1.into())),
        ("lone surrogates in JSON", b"{\"x\":1,\"text\":\"\\ud800\"}".to_vec(), Read("x", 1.into())),
    ]
}

/// A field of each kind that HTML can have.
pub(crate) fn html_spider() -> Spider {
    let sited = |text: &str| Sited::nowhere(text);
    let css = |selector| Field::new(FieldSource::Css(sited(selector)));
    let list = |field| Field { list: true, ..field };
    let pattern = |selector| Field { regex: Some(sited("(a+)+b")), ..css(selector) };
    spider(vec![
        ("title", Field::new(FieldSource::Page(PageField::Title))),
        ("text", Field::new(FieldSource::Page(PageField::Text))),
        ("rows", list(Field::new(FieldSource::Table(sited("table").into())))),
        ("microdata", list(Field::new(FieldSource::Microdata(sited("Product"), None)))),
        ("product", Field::new(FieldSource::JsonLd(sited("Product"), Some(sited("$..a"))))),
        ("products", list(Field::new(FieldSource::JsonLd(sited("Product"), None)))),
        ("pattern", pattern("h1")),
        ("big", pattern("script#big::text")),
        ("texts", list(css("div ::text"))),
        ("letters", list(css("b::text"))),
        ("elements", list(css("div"))),
        ("html", list(Field { kind: Kind::Html, ..css("div") })),
        (
            "each",
            list(Field::new(FieldSource::Each(
                sited(".each").into(),
                vec![("b".to_owned(), list(css("b")))],
            ))),
        ),
    ])
}

/// A field of each kind that JSON can have.
pub(crate) fn json_spider() -> Spider {
    let path =
        |path: &str| Field { kind: Kind::Integer, ..Field::new(FieldSource::Json(Sited::nowhere(path))) };
    let whole = Field { kind: Kind::Json, list: true, ..path("$..a") };
    spider(vec![
        ("x", path("/x")),
        ("below", path("$..x")),
        ("all", whole),
        ("text", Field { kind: Kind::Text, ..path("/text") }),
    ])
}

fn spider(fields: Vec<(&str, Field)>) -> Spider {
    let fields = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    let items = vec![ItemRule { name: None, each: None, fields, page: None }];
    let nothing = Spider::without_file(SpiderName::default(), &settings::Items::default());
    Spider { items, follow: Some(Follow::default()), ..nothing }
}
