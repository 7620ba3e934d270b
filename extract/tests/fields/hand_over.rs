//! Tests of `[[hand_over]]`: links and tasks for other spiders.

use serde_json::json;
use trawl_common::frontier::Request;
use trawl_extract::{LinkKind, ListEnd};

use super::*;

const PAGE: &str = r#"<h1>Contract 7</h1><a href=/next>next</a>
    <p class=tender><a href="/tender/1?ref=x">one</a></p><p class=tender><a href="https://other.example/2">two</a></p>
    <table><tr><td class=id>11<td class=sum>5</tr><tr><td class=id>12<td class=sum>6</tr></table>"#;

/// Returns the links and the tasks that a page hands over, as JSON, and the links that are left to follow.
fn handed(file: &str) -> (Vec<Value>, Vec<Value>, Vec<String>) {
    let Extraction { handed, tasks, links, .. } = extract(&spider(file), &html(PAGE));
    let handed = handed.into_iter().map(|(spider, link)| {
        let request = link.request.map(|request| serde_json::to_value(*request).expect("JSON"));
        json!([spider, link.url.as_str(), request])
    });
    let tasks = tasks.into_iter().map(|task| serde_json::to_value(task).expect("JSON"));
    (handed.collect(), tasks.collect(), links.into_iter().map(|link| link.url.to_string()).collect())
}

#[test]
fn a_link_is_handed_over_in_place_of_being_followed_with_what_the_rule_carries() {
    let file = "[follow]\n[[hand_over]]\nspider = 'tenders'\narea = '.tender'";
    let (links, tasks, followed) = handed(file);
    let [one, two] = ["https://example.com/tender/1?ref=x", "https://other.example/2"];
    assert_eq!(
        links,
        [json!(["tenders", one, null]), json!(["tenders", two, null])],
        "as any link of theirs"
    );
    assert_eq!((tasks.len(), followed), (0, vec!["https://example.com/next".to_owned()]));
    let carry = "[[hand_over]]\nspider = 'tenders'\neach = '.tender'\ncarry = { name = 'a::text' }";
    let (links, _, followed) = handed(carry);
    let request = |url: &str, name: &str| json!({"url": url, "data": {"name": name}});
    let expected =
        [json!(["tenders", one, request(one, "one")]), json!(["tenders", two, request(two, "two")])];
    assert_eq!((links, followed.len()), (expected.to_vec(), 0), "without [follow] nothing else is taken");
}

#[test]
fn a_request_is_made_of_what_the_page_says_and_may_be_unique_by_it() {
    let file = r#"[[hand_over]]
        spider = "payments"
        each = "tr"
        carry = { id = { css = ".id::text", type = "integer" } }
        [hand_over.request]
        url = "https://pay.example/search"
        json = { id = "{carried.id}" }
        unique = "{carried.id} today""#;
    let (links, ..) = handed(file);
    assert_eq!(links.len(), 2);
    assert_eq!((&links[0][0], &links[0][1]), (&json!("payments"), &json!("https://pay.example/search")));
    let request = &links[1][2];
    assert_eq!((&request["body"], &request["data"]), (&json!("{\"id\":12}"), &json!({"id": 12})));
    assert_eq!((&request["unique"], &request["method"]), (&json!("12 today"), &json!("POST")));
}

#[test]
fn a_task_is_made_for_each_entry_with_the_values_of_it_and_of_the_page() {
    let file = r#"[[page]]
        name = "contract"
        [[hand_over]]
        spider = "payments"
        page = "contract"
        each = "tr"
        carry = { id = { css = ".id::text", type = "integer" }, sum = ".sum::text" }
        task = { recipe = { id = "{carried.id}" }, unique = "{carried.id}/{carried.sum}", priority = 2 }
        [[hand_over]]
        spider = "default"
        task = "once""#;
    let (links, tasks, _) = handed(file);
    let task = |id: u32, sum: u32| json!({"recipe": format!("{{\"id\":{id}}}"), "unique": format!("{id}/{sum}"), "priority": 2.0, "spider": "payments"});
    let once = json!({"recipe": "once", "priority": 0.0, "spider": "default"});
    assert_eq!((links.len(), tasks), (0, vec![task(11, 5), task(12, 6), once]));
    let other = "[[page]]\nname = 'a'\nmatch.url = '/none'\n[[page]]\nname = 'b'\n[[hand_over]]\nspider = 'x'\npage = 'a'\ntask = 'r'";
    assert_eq!(handed(other).1, [] as [Value; 0], "the page is of another kind");
}

#[test]
fn a_list_whose_entries_are_all_handed_over_goes_on_and_ends_where_they_repeat() {
    let file = "[[page]]\nname = 'list'\n[[paginate]]\nnumber = 'p'\n[[hand_over]]\nspider = 'tenders'\n";
    for rule in ["area = '.tender'", "each = 'tr'\ncarry = { id = '.id::text' }\ntask = '{carried.id}'"] {
        let extractor = Extractor::new(&spider(&format!("{file}{rule}"))).expect("a sound spider");
        let url = "https://example.com/list".parse().expect("a URL");
        let read = |page: &str, request: Option<&Request>| {
            let read = extractor.extract_from(&url, &html(page), request, &AtomicBool::new(false));
            read.expect("a page that can be read")
        };
        let first = read(PAGE, None);
        assert_eq!(first.list.expect("a list").end, None, "{rule}");
        let next = first.links.into_iter().find(|link| link.kind == LinkKind::Next).expect("a next page");
        let next = Request::new(next.url, *next.request.expect("a request")).expect("a key");
        assert_eq!(read(PAGE, Some(&next)).list.expect("a list").end, Some(ListEnd::Repeated), "{rule}");
        assert_eq!(read("<p>none", Some(&next)).list.expect("a list").end, Some(ListEnd::Empty), "{rule}");
    }
}

#[test]
fn tasks_are_handed_over_though_the_page_forbids_to_follow_its_links() {
    let page = format!("<meta name=robots content=nofollow>{PAGE}");
    for (rule, expected) in [("", (0, 0)), ("task = 'r'", (0, 1))] {
        let spider = spider(&format!("[[hand_over]]\nspider = 'tenders'\n{rule}"));
        let Extraction { handed, tasks, .. } = extract(&spider, &html(&page));
        assert_eq!((handed.len(), tasks.len()), expected);
    }
}

#[test]
fn a_page_without_what_a_task_or_request_needs_fails_for_good_and_says_why() {
    for (rule, reason) in [
        ("carry = { x = 'h9::text' }\ntask = '{carried.x}'", "`task`: there is no carried value `x`"),
        (
            "task = { recipe = 'r', priority = '{carried.p}' }\ncarry = { p = 'h1' }",
            "`task`: `priority` is a number",
        ),
        ("request = { url = '/{carried.x}' }", "`request`: there is no carried value `x`"),
        (
            "area = '.tender'\nrequest = { query = { q = '{carried.x}' } }",
            "`request`: there is no carried value `x`",
        ),
    ] {
        let spider = spider(&format!("[[hand_over]]\nspider = 'tenders'\n{rule}"));
        let extractor = Extractor::new(&spider).expect("a sound spider");
        let url = "https://example.com/".parse().expect("a URL");
        let failure = extractor.extract(&url, &html(PAGE), &AtomicBool::new(false)).expect_err("a failure");
        let said = failure.to_string();
        assert!(said.contains(&format!("hand_over `tenders`: {reason}")), "{said}");
    }
}

#[test]
fn mistakes_have_their_places() {
    one("[[hand_over]]\ntask = 'x'", "1:1 hand_over: `spider` is missing");
    one("[[hand_over]]\nspider = 'default'", "1:1 hand_over: its links stay with this spider");
    one("[[hand_over]]\nspider = 'A b'", "2:10 hand_over.spider: `A b` is not a name");
    one(
        "[[hand_over]]\nspider = 'x'\npage = 'lst'\n[[page]]\nname = 'list'",
        "3:8 hand_over.page: there is no [[page]] with the name `lst`: did you mean `list`?",
    );
    one(
        "[[hand_over]]\nspider = 'x'\ntask = 'r'\nlink = 'a::attr(href)'",
        "4:8 hand_over.link: is for links",
    );
    one(
        "[[hand_over]]\nspider = 'x'\ntask = { recipe = 'r', spider = 'y' }",
        "3:8 hand_over.task: a task has no `spider`",
    );
    one(
        "[[hand_over]]\nspider = 'x'\nrequest = { data = 1 }",
        "3:11 hand_over.request: `data`: leave it out",
    );
    one(
        "[[hand_over]]\nspider = 'x'\nlink = 'a:nope::attr(href)'",
        "3:8 hand_over.link: `a:nope::attr(href)` is not a selector",
    );
    one(
        "[handler]\nrun = ['x']\nmode = 'stream'\n[[hand_over]]\nspider = 'x'",
        "4:1 hand_over: the program of [handler] reads the pages",
    );
}
