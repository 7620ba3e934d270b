//! Fields of all kinds in HTML.

use trawl_common::mistake::Place;
use trawl_common::spider::Whitespace;

use super::*;

#[test]
fn a_field_has_its_first_value_or_all() {
    let page = "<h1> </h1><h1>one <b>big</b></h1><h1>two</h1><a href=x>x</a><a href=''>y</a>";
    let list = |selector| Field { list: true, ..css(selector) };
    let expected = json!({
        "own": "one", "all": "one", "element": "one big", "list": ["one", "two"], "every": ["one", "big", "two"],
        "href": "x", "none": null, "nothing": [],
    });
    let fields = [
        ("own", css("h1::text")),
        ("all", css("h1 ::text")),
        ("element", css("h1")),
        ("list", list("h1::text")),
        ("every", list("h1 ::text")),
        ("href", css("a::attr(href)")),
        ("none", css("h2")),
        ("nothing", list("h2")),
    ];
    assert_eq!(item(fields, page), expected);
}

#[test]
fn what_stands_on_several_lines_of_an_element_is_several_words() {
    let page = "<div><p>One</p><p>two<br>three</p><ul><li>4<li>5</ul></div><h1>a<b>b</b><my-c>c</my-c></h1>\
        <table><tr><td>x<td>y</table><i><div>12</div><div>50</div></i>";
    let fields = [
        ("words", css("div")),
        ("inline", css("h1")),
        ("cells", css("tr")),
        ("price", Field { kind: Kind::Number, ..css("i") }),
        ("kept", Field { whitespace: Some(Whitespace::Keep), ..css("div") }),
        ("lines", Field { whitespace: Some(Whitespace::Lines), ..css("div") }),
    ];
    let expected = json!({
        "words": "One two three 4 5", "inline": "abc", "cells": "x y", "price": 12, "kept": "Onetwothree45",
        "lines": "One\n\ntwo\nthree\n\n4\n5",
    });
    assert_eq!(item(fields, page), expected);
}

#[test]
fn what_belongs_to_the_page_as_a_whole_is_converted_like_any_other_value() {
    let page = "<title>7 pages</title><a href=/a>a</a><a href=/b>b</a>";
    let of = |page, kind| Field { kind, ..Field::new(FieldSource::Page(page)) };
    let fields = [
        ("number", of(PageField::Title, Kind::Integer)),
        ("scheme", Field { regex: Some(sited("^[a-z]+")), ..of(PageField::Url, Kind::Text) }),
        ("text", of(PageField::Title, Kind::Text)),
        ("count", of(PageField::LinkCount, Kind::Text)),
    ];
    assert_eq!(item(fields, page), json!({"number": 7, "scheme": "https", "text": "7 pages", "count": 2}));
}

#[test]
fn kinds_patterns_formats_and_defaults_make_values() {
    let page = "<base href=/b/><p class=price>Price: 1.234,50 €<p class=day>1 May 2024<a href=x#y>z</a><i class=sold></i>";
    let of = |kind, selector| Field { kind, ..css(selector) };
    let fields = [
        ("price", of(Kind::Number, ".price")),
        ("word", Field { regex: Some(sited(r"(\w+):")), ..css(".price") }),
        (
            "day",
            Field {
                format: Some(sited("%d %B %Y")),
                regex: Some(sited(r"^\d+ \w+ \d+")),
                ..of(Kind::Date, ".day")
            },
        ),
        ("link", of(Kind::Url, "a::attr(href)")),
        ("html", of(Kind::Html, "a")),
        ("sold", of(Kind::Boolean, ".sold")),
        ("none", Field { default: Some(json!(0)), ..of(Kind::Number, ".day + p") }),
        ("whole", of(Kind::Integer, ".price")),
    ];
    let expected = json!({
        "price": 1234.5, "word": "Price", "day": "2024-05-01", "link": "https://example.com/b/x",
        "html": "<a href=\"x#y\">z</a>", "sold": true, "none": 0, "whole": null,
    });
    assert_eq!(item(fields, page), expected);
}

#[test]
fn objects_have_fields_found_inside_them() {
    let page = "<div class=offer><b>1</b><i>a</i></div><div class=offer data-sku=s><b>2</b></div><b>3</b>";
    let fields = vec![
        ("price".to_owned(), Field { kind: Kind::Integer, ..css("b") }),
        ("name".to_owned(), Field { required: Required::Warn, ..css("i::text") }),
        ("sku".to_owned(), css("::attr(data-sku)")),
    ];
    let offers = Field { list: true, ..Field::new(FieldSource::Each(sited("div.offer").into(), fields)) };
    let first = Field { list: false, ..offers.clone() };
    let spider = spider_of(vec![rule([("offers", offers), ("first", first)])], None);
    let found = extraction(&spider, &response(page));
    let one = json!({"price": 1, "name": "a", "sku": null});
    let two = json!({"price": 2, "name": null, "sku": "s"});
    assert_eq!(Value::Object(found.items[0].fields.clone()), json!({"offers": [one, two], "first": one}));
    assert_eq!(missing(&found), ["offers.name"]);
}

#[test]
fn a_page_may_have_one_item_for_each_match() {
    let page = "<title>t</title><article><h2>a</h2></article><article><h2>b</h2></article>";
    let title = ("title", Field::new(FieldSource::Page(PageField::Title)));
    let rules = vec![
        ItemRule {
            name: Some("news".to_owned()),
            each: Some(sited("article").into()),
            ..rule([("heading", css("h2")), title.clone()])
        },
        ItemRule { name: Some("page".to_owned()), ..rule([title]) },
    ];
    let found = extraction(&spider_of(rules, None), &response(page)).items;
    let shown = found.iter().map(|item| json!([item.rule, item.number, item.fields])).collect::<Vec<_>>();
    assert_eq!(
        Value::from(shown),
        json!([
            ["news", 0, {"heading": "a", "title": "t"}],
            ["news", 1, {"heading": "b", "title": "t"}],
            ["page", 0, {"title": "t"}],
        ])
    );
}

fn missing(found: &Extraction) -> Vec<&str> {
    found.missing.iter().map(|missing| missing.field.as_str()).collect()
}

#[test]
fn required_fields_that_are_missing_are_named_once() {
    let required = |selector| Field { required: Required::Warn, ..css(selector) };
    let rule =
        ItemRule { each: Some(sited("p").into()), ..rule([("a", required("i")), ("b", required("b"))]) };
    let found = extraction(&spider_of(vec![rule], None), &response("<p><b>1</b><p><b>2</b><p>3"));
    assert_eq!(found.items.len(), 3);
    assert_eq!(missing(&found), ["a", "b"]);
}

#[test]
fn what_pages_tell_machines_is_read() {
    let page = "<meta property='OG:Title' content='A page'><meta name=author content=a><meta name=author content=b>\
        <script type=application/ld+json>{\"@graph\": [{\"@type\": \"Product\", \"offers\": {\"price\": \"3.125\"}, \
        \"image\": [\"a.png\", \"b.png\"]}]}</script><script type=application/ld+json>{\"broken\"</script>\
        <div itemscope itemtype=https://schema.org/Event><b itemprop=name>A garden party with music</b></div>\
        <table id=t><tr><th>Size<th>Price<tr><td>S<td>1</table>";
    let ld = |path: &str| Field::new(FieldSource::JsonLd(sited("Product"), Some(sited(path))));
    let fields = [
        ("og", Field::new(FieldSource::Meta(sited("og:title")))),
        ("authors", Field { list: true, ..Field::new(FieldSource::Meta(sited("author"))) }),
        ("price", Field { kind: Kind::Number, ..ld("/offers/price") }),
        ("image", Field { kind: Kind::Url, ..ld("$.image") }),
        ("images", Field { list: true, ..ld("/image") }),
        ("event", Field::new(FieldSource::Microdata(sited("Event"), Some(sited("/name"))))),
        ("sizes", Field { list: true, ..Field::new(FieldSource::Table(sited("#t").into())) }),
        ("server", Field::new(FieldSource::Header(sited("Content-Type")))),
        ("url", Field::new(FieldSource::Page(PageField::Url))),
        ("text", Field::new(FieldSource::Page(PageField::Text))),
    ];
    assert_eq!(
        item(fields, page),
        json!({
            "og": "A page", "authors": ["a", "b"], "price": 3.125, "image": "https://example.com/dir/a.png",
            "images": ["a.png", "b.png"], "event": "A garden party with music", "sizes": [{"Size": "S", "Price": "1"}],
            "server": "text/html", "url": "https://example.com/dir/page", "text": "A garden party with music",
        })
    );
}

#[test]
fn only_fields_that_need_a_tree_build_one() {
    let needs =
        |field: Field| Extractor::new(&spider_of(vec![rule([("x", field)])], None)).unwrap().needs_tree();
    for field in [
        Field::new(FieldSource::Page(PageField::Title)),
        Field::new(FieldSource::Meta(sited("og:title"))),
        Field::new(FieldSource::JsonLd(sited("Product"), None)),
        Field::new(FieldSource::Header(sited("etag"))),
        css("meta[name=author]::attr(content)"),
        css("a.next::attr(href)"),
    ] {
        assert!(!needs(field.clone()), "{field:?}");
    }
    for field in [
        css("h1"),
        css("p a::attr(href)"),
        Field::new(FieldSource::Page(PageField::Text)),
        Field::new(FieldSource::Table(sited("table").into())),
    ] {
        assert!(needs(field.clone()), "{field:?}");
    }
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    let place = |line| Some(Place { line, column: 9 });
    let at = |text: &str, line| Sited { value: text.to_owned(), place: place(line) };
    let bad = |from| Field::new(from);
    let nested = vec![("y".to_owned(), bad(FieldSource::Css(at("p::before", 5))))];
    let fields = [
        ("a", bad(FieldSource::Css(at("p..q", 1)))),
        ("b", bad(FieldSource::Json(at("a.b", 2)))),
        ("c", Field { regex: Some(at("(", 3)), ..css("p") }),
        ("d", Field { format: Some(at("%!", 4)), ..css("p") }),
        ("e", bad(FieldSource::Each(sited("p").into(), nested))),
        ("f", bad(FieldSource::Table(at("table::text", 6).into()))),
        ("g", bad(FieldSource::JsonLd(sited("Product"), Some(at("name", 7))))),
        (
            "h",
            bad(FieldSource::Each(
                sited("p").into(),
                vec![("z".to_owned(), bad(FieldSource::Json(at("/a", 8))))],
            )),
        ),
        (
            "i",
            bad(FieldSource::Each(
                sited("$.a").into(),
                vec![("z".to_owned(), bad(FieldSource::Css(at("h1", 9))))],
            )),
        ),
    ];
    let follow = Follow {
        area: Some(at("nav::text", 10).into()),
        next: vec![at("a.next", 11).into()],
        ..Follow::default()
    };
    let mut mistakes = Extractor::new(&spider_of(vec![rule(fields)], Some(follow))).unwrap_err();
    mistakes.sort_by_key(|mistake| mistake.place);
    let shown: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    for (number, (what, why)) in [
        ("fields.a: `p..q` is not a selector: ", "class"),
        ("fields.b: `a.b` is not a path: ", "a JSON Pointer begins with `/`, a JSONPath with `$`"),
        ("fields.c: `(` is not a regular expression: ", "unclosed group"),
        ("fields.d: `%!` is not how a date is written: ", ""),
        ("fields.e.y: `p::before` is not a selector: ", "write `::text` or `::attr(name)`"),
        ("fields.f: `table::text` must find elements", "leave `::...` out"),
        ("fields.g: `name` is not a path: ", "`/`"),
        ("fields.h.z: `/a` is looked for in JSON", "`each` finds an element"),
        ("fields.i.z: `h1` is looked for in HTML", "`each` finds a value of JSON"),
        ("follow.area: `nav::text` must find elements", ""),
        ("follow.next: `a.next` finds elements, not URLs: add `::attr(href)`", ""),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(shown[number].starts_with(what) && shown[number].contains(why), "{}", shown[number]);
        assert_eq!(mistakes[number].place, place(number as u32 + 1), "{}", shown[number]);
    }
    assert_eq!(shown.len(), 11);
}

#[test]
fn a_page_of_too_many_items_fails_and_says_so() {
    let rule = ItemRule { each: Some(sited("p").into()), ..rule([("x", css("b"))]) };
    let extractor = Extractor::new(&spider_of(vec![rule], None)).unwrap();
    let failure = extract_with(&extractor, "<p>".repeat(10_001)).unwrap_err();
    assert_eq!(failure.to_string(), "parse: more than 10000 items");
}

#[test]
fn what_a_publisher_reserves_is_a_value_and_keeps_pages_from_spiders_whose_items_are_for_that() {
    let page = "<meta name=robots content='index, noai'><meta name=tdm-reservation content=1>\
                <meta name=TDM-Policy content=' https://a.example/p '><h1>x</h1>";
    let headers =
        [("content-type", "text/html"), ("content-usage", "search=y"), ("content-signal", "ai-input=no")];
    let usage = || Field { kind: Kind::Json, ..Field::new(FieldSource::Page(PageField::Usage)) };
    let response = Response { headers: headers.into_iter().collect(), ..response(page) };
    let of = |used_for: &[&str]| {
        let used_for = used_for.iter().map(ToString::to_string).collect();
        let spider = spider_of(vec![rule([("usage", usage()), ("title", css("h1::text"))])], None);
        extraction(&Spider { used_for, ..spider }, &response).items
    };
    let all = json!({"train-ai": false, "tdm": false, "search": true, "ai-input": false, "tdm-policy": "https://a.example/p"});
    assert_eq!(of(&["search", "train-images"])[0].fields["usage"], all);
    for reserved in ["train-ai", "tdm", "ai-input"] {
        assert_eq!(of(&["search", reserved]), [], "{reserved}");
    }
    let spider = spider_of(vec![rule([("usage", usage())])], None);
    assert_eq!(extraction(&spider, &self::response("<h1>x</h1>")).items[0].fields["usage"], Value::Null);
}
