//! Tests of JSON responses.

use super::*;

fn json_response(body: &Value) -> Response {
    let headers = Headers::from_iter([("content-type", "application/json; charset=utf-8"), ("etag", "x")]);
    Response { headers, ..response(body.to_string()) }
}

fn json_field(path: &str) -> Field {
    Field::new(FieldSource::Json(sited(path)))
}

#[test]
fn fields_are_found_by_pointer_and_by_path() {
    let body = json!({"a": {"b": [1, 2]}, "name": " x ", "url": "/y", "tags": ["p", "q"], "null": null});
    let fields = rule([
        ("b", Field { kind: Kind::Integer, ..json_field("/a/b/1") }),
        ("all", Field { list: true, kind: Kind::Number, ..json_field("$.a.b[*]") }),
        ("name", json_field("/name")),
        ("url", Field { kind: Kind::Url, ..json_field("/url") }),
        ("tags", Field { list: true, ..json_field("/tags") }),
        ("tag", json_field("/tags")),
        ("whole", Field { kind: Kind::Json, ..json_field("/tags") }),
        ("null", Field { default: Some(json!("-")), ..json_field("/null") }),
        ("etag", Field::new(FieldSource::Header(sited("ETag")))),
        ("heading", Field { required: Required::Warn, ..css("h1") }),
    ]);
    let found = extraction(&spider_of(vec![fields], None), &json_response(&body));
    assert_eq!(
        Value::Object(found.items[0].fields.clone()),
        json!({
            "b": 2, "all": [1, 2], "name": " x ", "url": "https://example.com/y", "tags": ["p", "q"], "tag": "p",
            "whole": ["p", "q"], "null": "-", "etag": "x", "heading": null,
        })
    );
    assert_eq!(found.missing, []);
}

#[test]
fn a_list_is_so_many_items() {
    let body = json!({"results": [{"id": 1, "sizes": [{"n": "S"}, {"n": "M"}]}, {"id": 2, "sizes": []}]});
    let sizes = FieldSource::Each(sited("$.sizes[*]").into(), vec![("n".to_owned(), json_field("/n"))]);
    let fields = [
        ("id", Field { kind: Kind::Integer, ..json_field("/id") }),
        ("sizes", Field { list: true, ..Field::new(sizes) }),
    ];
    for each in ["/results", "$.results[*]"] {
        let rule = ItemRule { each: Some(sited(each).into()), ..rule(fields.clone()) };
        let found = extraction(&spider_of(vec![rule], None), &json_response(&body)).items;
        let found: Vec<Value> = found.into_iter().map(|item| item.fields.into()).collect();
        assert_eq!(
            Value::from(found),
            json!([{"id": 1, "sizes": [{"n": "S"}, {"n": "M"}]}, {"id": 2, "sizes": []}])
        );
    }
}

#[test]
fn json_is_read_only_by_spiders_that_look_for_something_in_it() {
    let reads = |rule, follow| {
        Extractor::new(&spider_of(vec![rule], follow)).unwrap().reads(&json_response(&json!(1)))
    };
    assert!(!reads(rule([("x", css("h1"))]), None));
    assert!(reads(rule([("x", json_field("/x"))]), None));
    assert!(reads(
        rule([("x", css("h1"))]),
        Some(Follow { next: vec![sited("/next").into()], ..Follow::default() })
    ));
    assert!(reads(rule([("x", Field::new(FieldSource::Each(sited("$.x").into(), Vec::new())))]), None));
}

#[test]
fn a_kind_of_item_is_looked_for_where_its_fields_are() {
    let rules = || {
        vec![
            ItemRule {
                name: Some("html".to_owned()),
                ..rule([("x", css("h1")), ("u", Field::new(FieldSource::Page(PageField::Url)))])
            },
            ItemRule {
                name: Some("json".to_owned()),
                ..rule([("x", Field { required: Required::Warn, ..json_field("/x") })])
            },
            ItemRule {
                name: Some("either".to_owned()),
                ..rule([("u", Field::new(FieldSource::Page(PageField::Url)))])
            },
        ]
    };
    let names = |response| {
        let found = extraction(&spider_of(rules(), None), &response);
        assert_eq!(found.missing, []);
        found.items.into_iter().filter_map(|item| item.rule).collect::<Vec<_>>()
    };
    assert_eq!(names(json_response(&json!({"x": 1}))), ["json", "either"]);
    assert_eq!(names(response("<h1>x</h1>")), ["html", "either"]);
    // Only its beginning is that of JSON.
    let headers = Headers::from_iter([("content-type", "text/plain")]);
    assert_eq!(names(Response { headers, ..response("[draft] Hello") }), ["html", "either"]);
}

#[test]
fn an_api_is_followed_from_page_to_page() {
    let next = ["/next", "a.next::attr(href)", "li a::attr(href)", "$.links[*].href"]
        .map(|next| sited(next).into())
        .to_vec();
    let spider = spider_of(vec![], Some(Follow { next, links: false, ..Follow::default() }));
    let body = json!({"next": "?page=2", "links": [{"href": "/a"}, {"href": "?page=2"}, {"href": null}, {"href": "mailto:x"}]});
    let links = extraction(&spider, &json_response(&body)).links;
    assert_eq!(
        links.iter().map(|link| link.url.as_str()).collect::<Vec<_>>(),
        ["https://example.com/dir/page?page=2", "https://example.com/a",]
    );
}

#[test]
fn what_is_no_json_is_a_failure_that_says_why() {
    let extractor = Extractor::new(&spider_of(vec![rule([("x", json_field("/x"))])], None)).unwrap();
    let response = Response { body: "{\"x\": ".into(), ..json_response(&json!(1)) };
    let url = "https://example.com/".parse().unwrap();
    let failure = extractor.extract(&url, &response, &AtomicBool::new(false)).unwrap_err();
    assert_eq!(failure.class, Class::Parse);
    assert!(failure.detail.starts_with("not JSON: EOF while parsing"), "{failure}");
}
