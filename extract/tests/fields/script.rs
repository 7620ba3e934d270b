//! Tests of `script`: data in scripts.

use std::time::{Duration, Instant};

use serde_json::json;

use super::*;

/// The value of a script of this name on a page.
fn of(name: &str, page: &str) -> Value {
    value(&format!("{{ script = '{name}', type = 'json' }}"), page)
}

#[test]
fn the_data_of_frameworks_is_one_line() {
    for (field, page, expected) in [
        (
            "{ script = '__NEXT_DATA__', path = '/props/pageProps/product/name' }",
            r#"<script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":{"product":{"name":"Hat"}}}}</script>"#,
            json!("Hat"),
        ),
        (
            "{ script = '__next_f.push', list = true, path = '$[1]' }",
            r#"<script>(self.__next_f=self.__next_f||[]).push([0])</script><script>self.__next_f.push([1,"a\nb"])</script>
               <script>self.__next_f.push([1,"c"])</script>"#,
            json!(["a b", "c"].map(|text| text.replace(' ', "\n"))),
        ),
        (
            "{ script = '__NUXT_DATA__', path = '$.data.product.price', type = 'number' }",
            r#"<script type="application/json" id="__NUXT_DATA__">[["ShallowReactive",1],{"data":2,"once":5},["Reactive",3],{"product":4},
               {"price":6,"name":7,"none":-1},["Set"],9.5,"Hat"]</script>"#,
            json!(9.5),
        ),
        (
            "{ script = '__NUXT__', path = '/data/0/product' , type = 'json' }",
            r#"<script>window.__NUXT__=(function(a,b,c){return {layout:"default",data:[{product:{name:a,old:b,price:c,a}}],f:function(){return 1}}}("Hat",null,12.5));</script>"#,
            json!({"name": "Hat", "old": null, "price": 12.5, "a": "Hat"}),
        ),
        (
            "{ script = 'window.__INITIAL_STATE__', path = '/items/0/id', type = 'integer' }",
            "<script>var x = 1; window.__INITIAL_STATE__ = {items: [{id: 0x11, 'n': \"</b>\"}],};\n(function(){}())</script>",
            json!(17),
        ),
        (
            "{ script = '__APOLLO_STATE__', path = '/a' }",
            r#"<script>window["__APOLLO_STATE__"] = JSON.parse("{\"a\": \"\u00e9\\n\"}");</script>"#,
            json!("é\n"),
        ),
        (
            "{ script = '__PRELOADED_STATE__', path = '/a', type = 'integer' }",
            "<script>window.__PRELOADED_STATE__ = JSON.parse(decodeURIComponent('%7B%22a%22%3A1%7D'))</script>",
            json!(1),
        ),
        (
            "{ script = 'dataLayer.push', path = '/ecommerce/value', type = 'number' }",
            "<script>window.dataLayer = window.dataLayer || []; dataLayer.push({event: 'view'});\n\
             dataLayer.push({ecommerce: {value: 9.99}})</script>",
            json!(9.99),
        ),
        (
            "{ script = '__remixContext', path = '/state/loaderData/root/n', type = 'integer' }",
            "<script>window.__remixContext = {\"state\":{\"loaderData\":{\"root\":{\"n\":3}}}};__remixContext.p = function(v) {}</script>",
            json!(3),
        ),
    ] {
        assert_eq!(value(field, page), expected, "{field}");
    }
}

#[test]
fn literals_are_read_as_programs_write_them_and_code_is_null() {
    for (literal, expected) in [
        (r#"{"a": 1, b: 'x', $c_1: [1,, 2,], 'd': {}}"#, json!({"a": 1, "b": "x", "$c_1": [1, 2], "d": {}})),
        (
            "{a: !0, b: !1, c: void 0, d: undefined, e: NaN}",
            json!({"a": true, "b": false, "c": null, "d": null, "e": null}),
        ),
        (
            "{a: 1.5, b: .5, c: -2, d: 1e3, e: 0xff, f: 12345678901234567890, g: 9007199254740993n}",
            json!({"a": 1.5, "b": 0.5, "c": -2, "d": 1000.0, "e": 255, "f": "12345678901234567890", "g": 9_007_199_254_740_993_i64}),
        ),
        (
            r#"{a: "\x41\u00e9\u{1F600}\ud83d\ude00\/\'", b: `t ${x}`}"#,
            json!({"a": "Aé😀😀/'", "b": "t ${x}"}),
        ),
        ("{/* c */ a: 1, // d }\n b: 2}", json!({"a": 1, "b": 2})),
        (
            "{a: f(1, {b: 2}), c: function(x) { return {} }, d: x => ({}), e: 1 + 2, g: 'x'}",
            json!({"a": null, "c": null, "d": null, "e": null, "g": "x"}),
        ),
        (
            "{a: new Date('2024-05-01'), b: Object.freeze({c: 1}), m() { return 1 }, ...rest, d: 1}",
            json!({"a": "2024-05-01", "b": {"c": 1}, "d": 1}),
        ),
        ("window.x || {a: 1}", json!({"a": 1})),
        ("[1, [2, [3]]]", json!([1, [2, [3]]])),
        ("'text'", json!("text")),
        ("{a: 1} /* end */", json!({"a": 1})),
        ("{a: 1", json!(null)),
        ("{a: 1]", json!(null)),
        ("'a' + b", json!(null)),
        ("f(1)", json!(null)),
        ("=> 1", json!(null)),
        ("= 1", json!(null)),
    ] {
        let found =
            value("{ script = 'x', type = 'json' }", &format!("<script>var x = {literal};\nvar y</script>"));
        assert_eq!(found, expected, "{literal}");
    }
}

#[test]
fn a_name_is_a_whole_name() {
    let page = "<script>var max = {a: 1}, x2 = {a: 2}, y = {x: {a: 3}}; if (x == 3) {}; x.y = 5; x => {}; x={a: 4}</script>";
    assert_eq!(of("x", page), json!({"a": 4}));
    assert_eq!(of("x.y", page), json!(5));
    assert_eq!(of("z", page), json!(null));
    assert_eq!(of("x", "<script id=x>no JSON</script><script id=x type=text/json>[1]</script>"), json!([1]));
    assert_eq!(
        of("x", "<!-- <script>x = 1</script> --><p>x = 2</p><svg><script>x = &quot;3&quot;</script></svg>"),
        json!("3")
    );
}

#[test]
fn scripts_yield_items_fields_links_and_lists() {
    let state = r#"{"list": [{"id": 1, "url": "/p/1", "tags": [{"n": "a"}]}, {"id": 2, "url": "/p/2", "tags": []}], "next": "/list?p=2"}"#;
    let page = html(&format!("<title>t</title><script>window.STATE = {state}</script>"));
    let file = r#"
        [follow]
        links = false
        next = [{ script = "STATE", path = "/next" }]
        [[items]]
        each = { script = "STATE", path = "$.list[*]" }
        [items.fields]
        id = { json = "/id", type = "integer" }
        title = { page = "title" }
        tags = { each = "/tags", list = true, fields = { n = { json = "/n" } } }
    "#;
    assert_eq!(
        items(file, &page),
        [json!({"id": 1, "title": "t", "tags": [{"n": "a"}]}), json!({"id": 2, "title": "t", "tags": []}),]
    );
    let links: Vec<_> =
        extract(&spider(file), &page).links.into_iter().map(|link| link.url.to_string()).collect();
    assert_eq!(links, ["https://example.com/list?p=2"]);
    let file = r#"
        [[page]]
        name = "list"
        match.selector = { script = "STATE", path = "/list/0" }
        [[page.follow]]
        each = { script = "STATE", path = "/list" }
        link = "/url"
        carry = { id = { json = "/id", type = "integer" } }
        [[paginate]]
        next = { script = "STATE", path = "/next" }
        entries = { script = "STATE", path = "/list" }
    "#;
    let found = extract(&spider(file), &page);
    let links: Vec<_> = found.links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(links, ["https://example.com/p/1", "https://example.com/p/2", "https://example.com/list?p=2"]);
    assert_eq!(found.list.unwrap().end, None);
    assert!(!Extractor::new(&spider(file)).unwrap().needs_tree(), "a stream is enough");
}

#[test]
fn no_script_keeps_a_worker_busy() {
    for page in [
        "x=f(".repeat(500_000),
        "x={".repeat(500_000),
        "x={a:[".repeat(200_000),
        format!("x={}", "{a:".repeat(500_000)),
        format!("x={}", "[(".repeat(500_000)),
        format!("x={}", "'".repeat(1_000_000)),
        format!("x=(function(a){{return [{}]}}('{}'))", "a,".repeat(100_000), "y".repeat(100_000)),
        format!("x={}", "/*".repeat(500_000)),
        "x=\\".repeat(500_000),
    ] {
        let begun = Instant::now();
        of("x", &format!("<script>{page}</script>"));
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", &page[..20]);
    }
    let bomb: Vec<_> = (0..60).map(|place| json!([place + 1, place + 1])).collect();
    let bomb = json!([json!(["Reactive", 1])].into_iter().chain(bomb).collect::<Vec<_>>());
    let begun = Instant::now();
    of("__NUXT_DATA__", &format!("<script id=__NUXT_DATA__>{bomb}</script>"));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn mistakes_have_their_places() {
    one("[fields]\na = { script = 'x', path = 'y' }", "2:28 fields.a.path: is neither a JSON Pointer");
    one(
        "[fields]\na = { css = 'x', path = '/y' }",
        "2:25 fields.a.path: is for `json_ld`, `microdata` and `script` alone",
    );
    one("[follow]\narea = { script = 'x' }", "2:19 follow.area: must find elements: a script has none");
    one(
        "[follow]\nnext = [{ scrpt = 'x' }]",
        "2:11 there is no key `follow.next.scrpt`: did you mean `script`?",
    );
    one(
        "[[items]]\neach = { script = 'x' }\nfields = { a = 'b' }",
        "3:16 fields.a: `b` is looked for in HTML, but `each` finds a value of JSON",
    );
}
