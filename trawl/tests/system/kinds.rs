//! Kinds of pages, values carried between them, and lists of several pages: one process, no server.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use trawl_testkit::shop_site::{CATEGORIES, PAGES, PER_PAGE, SPIDER, ShopSite, VARIANTS, check};

use crate::support::workspace::{Crawl, Workspace};

/// Returns a folder with the spider `shop`, whose file has this text after its start.
fn shop(site: &ShopSite, start: &str, text: &str) -> Workspace {
    Workspace::new("shop.toml", &format!("start.urls = ['{}{start}']\n{text}\n", site.origin), &[], &[])
}

/// Returns what `trawl spider try` shows of a page, as JSON.
async fn tries(folder: &Workspace, words: &[&str]) -> Value {
    let all = [&["spider", "try", "shop.toml", "--allow-private", "--json"], words].concat();
    let output = folder.run(&all).await;
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn what_a_list_says_is_carried_to_details_and_their_variants_and_each_is_there_once() {
    let site = ShopSite::serve().await;
    let folder = shop(&site, "/", SPIDER);
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&site.origin, &crawl.items);
    let ids: BTreeSet<_> = crawl.items.iter().map(|item| item["id"].as_str()).collect();
    assert_eq!(ids.len(), crawl.items.len());
    assert!(site.asked().values().all(|count| *count == 1), "{:?}", site.asked());
    let pages = 1 + CATEGORIES.len() * PAGES * (1 + PER_PAGE * (1 + VARIANTS));
    assert_eq!((site.asked().len(), &crawl.stats["done"]), (pages, &json!(pages)));
    let shown = folder.run(&["url", &format!("{}/p/3", site.origin), "--state=crawl.db", "--json"]).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert!(shown["url"].as_str().unwrap().contains("/p/3#request:"), "{shown}");
    assert_ne!(shown["spiders"], json!([]), "{shown}");
}

#[tokio::test]
async fn pages_that_values_are_carried_to_are_archived_like_any_other() {
    let site = ShopSite::serve().await;
    let archive = "[[sinks]]\nkind = 'warc'\npath = 'archive'";
    let folder = shop(&site, "/", &format!("{SPIDER}\n{archive}"));
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    let files = fs::read_dir(folder.path().join("archive")).unwrap().map(|file| file.unwrap().path());
    let index = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "cdxj")).unwrap();
    let archived = fs::read_to_string(index).unwrap().lines().count();
    assert_eq!((archived, &crawl.stats["done"]), (site.asked().len(), &json!(archived)));
}

#[tokio::test]
async fn a_killed_crawl_goes_on_with_what_was_carried() {
    let site = ShopSite::serve().await;
    let folder = shop(&site, "/", SPIDER);
    site.gate.hold_after(30);
    let mut crawl = folder.crawling("shop.toml").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    site.gate.asked_for(31).await;
    crawl.kill().await.unwrap();
    site.gate.answer_all();
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&site.origin, &crawl.items);
}

#[tokio::test]
async fn a_page_that_matches_says_so_and_why_it_is_none_of_the_others() {
    let site = ShopSite::serve().await;
    let folder = shop(&site, "/", SPIDER);
    let tried = tries(&folder, &[&format!("{}/c/1", site.origin), "--links"]).await;
    let why: Vec<_> = tried["pages"].as_array().unwrap().iter().map(|kind| kind["why_not"].clone()).collect();
    let earlier = "an earlier kind matches";
    assert_eq!(why, [Value::Null, json!(earlier), json!(earlier)]);
    assert_eq!((&tried["page"], &tried["list"]["ends"]), (&json!("category"), &Value::Null));
    let link = &tried["links"][0];
    assert_eq!(link["request"]["data"]["category"], CATEGORIES[1]);
    let url = format!("{}/p/3", site.origin);
    let tried = tries(&folder, &[&url]).await;
    assert_eq!(tried["pages"][0]["why_not"], "no pattern of `url` matches its URL");
    assert_eq!(tried["pages"][1]["why_not"], "no page or rule of details led to it");
    assert_eq!((&tried["page"], &tried["items"]), (&Value::Null, &json!([])));
    let tried = tries(&folder, &[&url, "--from=details", "--carry=category=Books"]).await;
    assert_eq!(
        (&tried["page"], &tried["items"][0]["fields"]["category"]),
        (&json!("product"), &json!("Books"))
    );
    let shown = folder.run(&["spider", "try", "shop.toml", "--allow-private", &url]).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("product: no page or rule of details led to it"), "{shown}");
    assert!(shown.contains("of no kind"), "{shown}");
    let checked = folder.run(&["spider", "check", "shop.toml"]).await;
    let checked = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.contains("category: the next page by `a.next::attr(href)`, 1000 pages"), "{checked}");
    assert!(checked.contains("product: from details") && checked.contains("carries category"), "{checked}");
}

#[tokio::test]
async fn each_mistake_in_kinds_of_pages_is_named_where_it_stands() {
    let site = ShopSite::serve().await;
    for (text, mistake) in [
        ("[[page]]\nmatch.url = 'x'", "2:1: page: `name` is missing"),
        ("[[page]]\nname = 'a'\nmach.url = 'x'", "4:1: there is no key `page.mach`: did you mean `match`?"),
        (
            "[[page]]\nname = 'a'\nmatch.from = 'b'\n[[page]]\nname = 'bb'",
            "4:14: page.match.from: there is no kind of page and no rule of one with the name `b`",
        ),
        ("[[page]]\nname = 'a'\nmatch.url = '('", "4:13: page.match.url: is not a regular expression"),
        (
            "[[page]]\nname = 'a'\nmatch.selector = 'p['",
            "4:18: page.a.match.selector: `p[` is not a selector",
        ),
        ("[[page]]\nname = 'a'\nmatch.content_type = 'html'", "page.match.content_type: write a media type"),
        ("[[page]]\nname = 'a'\n[[page]]\nname = 'b'", "comes after `a`, which has no `match`"),
        (
            "[[page]]\nname = 'a'\nmatch.url = 'x'\n[[page]]\nname = 'a'",
            "two kinds of pages, or rules of them, with the name `a`",
        ),
        (
            "[[page]]\nname = 'a'\nfollow.depth = 3",
            "4:16: page.follow.depth: holds for all pages: put it into [follow]",
        ),
        (
            "[[page]]\nname = 'a'\ncarry = { '$x' = 'h1::text' }",
            "a carried value's name does not begin with `$`",
        ),
        ("[[page]]\nname = 'a'\n[[page.follow]]\neach = '$.x[*]'", "name the URLs in them by `link`"),
        ("[fields]\na = 'h1'\n[[page]]\nname = 'a'", "with [[page]], items are those of kinds of pages"),
        (
            "[[paginate]]\nmost = 3",
            "says how the next page is reached by one of `next`, `number`, `offset` and `cursor`",
        ),
        ("[[paginate]]\noffset = 'start'", "`step` is missing"),
        ("[[paginate]]\nnext = 'a'", "finds elements, not URLs: add `::attr(href)`"),
        ("[[paginate]]\ncursor = 'a::text'", "`to` is missing"),
        ("[[paginate]]\nnumber = 'p'\npage = 'x'", "there is no [[page]] with the name `x`"),
        ("[[paginate]]\nnumber = 'p'\nmost = 0", "must be 1 or more"),
    ] {
        let said = shop(&site, "/", text).mistakes().await;
        assert!(said.contains(mistake), "{text}\n{said}");
    }
}

/// Crawls a list, and returns the ids of its entries in order, what the log says of its end, and how many pages of
/// it were requested.
async fn listed(start: &str, paginate: &str) -> (Vec<Value>, String, usize) {
    let site = ShopSite::serve().await;
    let text = format!(
        "[[items]]\neach = '$.entries[*]'\nfields = {{ id = {{ json = '/id', type = 'json' }} }}\n[[paginate]]\n{paginate}"
    );
    let crawl = shop(&site, start, &text).crawl().await;
    let mut ids: Vec<Value> = crawl.items.iter().map(|item| item["fields"]["id"].clone()).collect();
    ids.sort_by_key(|id| id.as_u64());
    let end = crawl.log.lines().filter(|line| line.contains("a list ends")).collect::<Vec<_>>().join("\n");
    (ids, end, site.asked().len())
}

#[tokio::test]
async fn a_list_goes_on_by_a_cursor_until_there_is_none() {
    let all: Vec<Value> = (0..3 * PER_PAGE).map(|id| json!(id)).collect();
    let (ids, end, pages) = listed("/api", "cursor = { json = '/next' }\nto = 'cursor'").await;
    assert_eq!((ids, pages), (all, 3));
    assert!(end.contains("the page names no next page") && end.contains("pages=3"), "{end}");
}

#[tokio::test]
async fn a_cursor_that_never_ends_ends_at_a_limit_and_one_that_returns_where_it_was() {
    let (ids, end, pages) = listed("/endless", "cursor = { json = '/next' }\nto = 'cursor'\nmost = 20").await;
    assert_eq!((ids.len(), pages), (20, 20));
    assert!(end.contains("as many pages as `most` allows"), "{end}");
    let (ids, _, pages) = listed("/again", "cursor = { json = '/next' }\nto = 'cursor'").await;
    assert_eq!((ids.len(), pages), (3, 3), "`a` without and with the parameter, and `b`");
}

#[tokio::test]
async fn lists_go_on_by_next_links_headers_numbers_and_offsets_and_say_how_they_end() {
    let ends = ["the page names no next page", "the page is empty", "the page repeats the one before it"];
    for (start, paginate, end, pages) in [
        ("/c/0", "next = 'a.next::attr(href)'", ends[0], PAGES),
        ("/linked", "next = { header = 'next' }", ends[0], PAGES),
        ("/c/0", "number = 'page'\nentries = 'article'", ends[1], PAGES + 1),
        ("/offset/0?start=0", "offset = 'start'\nstep = 4\nentries = 'article'", ends[1], PAGES + 1),
        ("/same", "number = 'page'\nentries = 'li'", ends[2], 2),
        ("/c/0", "next = 'a.next::attr(href)'\nmost = 2", "as `most` allows", 2),
    ] {
        let site = ShopSite::serve().await;
        let text =
            format!("[[items]]\neach = 'article'\nfields = {{ title = 'a' }}\n[[paginate]]\n{paginate}");
        let crawl = shop(&site, start, &text).crawl().await;
        assert!(crawl.log.contains(end), "{paginate}: {}", crawl.log);
        assert_eq!(site.asked().len(), pages, "{paginate}: {:?}", site.asked());
        let at_limit = end == "as `most` allows";
        assert_eq!(crawl.stats["reasons"]["left_out:list_pages"] == 1, at_limit, "{}", crawl.stats);
    }
}

#[tokio::test]
async fn values_too_long_to_carry_are_one_clear_error_and_no_page_is_lost() {
    let site = ShopSite::serve().await;
    let carry = "[[page]]\nname = 'home'\nmatch.url = '/$'\nfollow = {}\ncarry = { x = { css = 'title::text', default = 'D' }, y = 'nav' }\n[[page]]\nname = 'any'\nfields = { title = 'h1' }";
    let long = "z".repeat(20_000);
    let text =
        carry.replace("css = 'title::text', default = 'D'", &format!("css = '.none', default = '{long}'"));
    let crawl = shop(&site, "/", &text).crawl().await;
    assert_eq!((crawl.code, &crawl.stats["failed"]), (Some(3), &json!(1)), "{}", crawl.log);
    assert!(crawl.log.contains("page `home`: `carry` has 20"), "{}", crawl.log);
}

#[tokio::test]
async fn kinds_that_lead_to_each_other_end() {
    let site = ShopSite::serve().await;
    let text = "[[page]]\nname = 'product'\nmatch.url = '/p/\\d+$'\nfollow = { area = '.related' }\ncarry = { before = 'h1' }\nfields = { title = 'h1' }";
    let crawl = shop(&site, "/p/0", text).crawl().await;
    // Each product leads to the next, and the last one to the first; `depth` is 16.
    assert_eq!((crawl.items.len(), &crawl.stats["done"]), (17, &json!(17)), "{}", crawl.log);
    let last = crawl.items.iter().find(|item| item["fields"]["title"] == "Product 16").unwrap();
    assert_eq!(last["fields"]["before"], "Product 15");
    assert_eq!(last["path"].as_array().unwrap().len(), 17);
}

/// The fields of the only item.
fn only(crawl: &Crawl) -> &Value {
    assert_eq!((crawl.code, crawl.items.len()), (Some(0), 1), "{}", crawl.log);
    &crawl.items[0]["fields"]
}

const FOUND: &str = "[[page]]\nname = 'found'\nfields = { method = { json = '/method' }, type = { json = '/type' }, query = { json = '/query', type = 'json' }, body = { json = '/body' } }";

#[tokio::test]
async fn a_form_is_sent_with_its_hidden_fields_and_what_it_is_filled_with() {
    let site = ShopSite::serve().await;
    let form = "[[page]]\nname = 'form'\nmatch.url = '/search$'\ncarry = { heading = 'title' }\n[[page.follow]]\nform = 'form#search'\nfill = { q = 'a {carried.heading}&', note = [], extra = [1, 2] }";
    let crawl = shop(&site, "/search", &format!("{form}\n{FOUND}")).crawl().await;
    let expected = json!({
        "method": "POST", "type": "application/x-www-form-urlencoded", "query": {}, "heading": "Search",
        "body": "token=t%261&q=a+Search%26&stock=on&sort=b&go=Go&extra=1&extra=2",
    });
    assert_eq!(*only(&crawl), expected);
    let none = form.replace("form#search", "form#none");
    let crawl = shop(&site, "/search", &format!("{none}\n{FOUND}")).crawl().await;
    assert_eq!((crawl.code, crawl.items.len()), (Some(3), 0));
    assert!(crawl.log.contains("page `form`: `form`: the page has no `form#none`"), "{}", crawl.log);
}

#[tokio::test]
async fn a_rule_makes_requests_of_what_its_entries_say() {
    let site = ShopSite::serve().await;
    let rule = "[[page]]\nname = 'list'\nmatch.url = '/api$'\n[[page.follow]]\neach = '$.entries[*]'\ncarry = { id = { json = '/id', type = 'integer' } }\n[page.follow.request]\nurl = '/find?n={carried.id}'\njson = { id = '{carried.id}' }\nheaders = { X-Id = '{carried.id}' }";
    let crawl = shop(&site, "/api", &format!("{rule}\n{FOUND}")).crawl().await;
    assert_eq!((crawl.code, crawl.items.len()), (Some(0), PER_PAGE), "{}", crawl.log);
    for item in &crawl.items {
        let fields = &item["fields"];
        let id = fields["id"].as_u64().unwrap();
        let sent = (&fields["method"], &fields["body"], &fields["query"]["n"], &fields["type"]);
        let expected = (
            json!("POST"),
            json!(format!("{{\"id\":{id}}}")),
            json!(id.to_string()),
            json!("application/json"),
        );
        assert_eq!(sent, (&expected.0, &expected.1, &expected.2, &expected.3));
    }
}

#[tokio::test]
async fn a_search_by_post_goes_on_by_its_cursor_for_each_row_that_it_starts_from() {
    let site = ShopSite::serve().await;
    let text = format!(
        "[[start.requests]]\nurl = '{}/api/search'\njson = {{ q = '{{carried.term}}', page = {{ size = 4 }} }}\nrows = {{ term = ['hat', 'cap'] }}\n\
         [[items]]\neach = '$.entries[*]'\nfields = {{ id = {{ json = '/id', type = 'integer' }} }}\n\
         [[paginate]]\ncursor = {{ json = '/next' }}\nto = '/page/cursor'",
        site.origin
    );
    let folder = shop(&site, "/", "");
    fs::write(folder.path().join("shop.toml"), text).unwrap();
    let crawl = folder.crawl().await;
    let mut found: Vec<(String, u64)> = Vec::new();
    for item in &crawl.items {
        let fields = &item["fields"];
        found.push((fields["term"].as_str().unwrap().to_owned(), fields["id"].as_u64().unwrap()));
    }
    found.sort();
    let expected = ["cap", "hat"]
        .into_iter()
        .flat_map(|term| (0..3 * PER_PAGE as u64).map(move |id| (term.to_owned(), id)));
    assert_eq!(found, expected.collect::<Vec<_>>(), "{}", crawl.log);
    let sent = r#"POST /api/search {"page":{"cursor":"c4","size":4},"q":"cap"}"#;
    assert_eq!(site.asked().get(sent), Some(&1), "{:?}", site.asked());
}

#[tokio::test]
async fn a_crawl_starts_from_ranges_and_from_the_lines_of_a_file() {
    let site = ShopSite::serve().await;
    let folder = shop(&site, "/", "");
    let text = format!(
        "[[start.requests]]\nurl = '{0}/p/{{carried.n}}'\nrows = {{ n = '3..5' }}\n\
         [[start.requests]]\nurl = '{0}/p/{{carried.id}}'\nrows = {{ csv = 'ids.csv' }}\n\
         [fields]\ntitle = 'h1'\nkind = {{ carried = 'kind', default = 'range' }}",
        site.origin
    );
    fs::write(folder.path().join("shop.toml"), text).unwrap();
    fs::write(folder.path().join("ids.csv"), "id,kind\n7,\"a, b\"\n8,c\n").unwrap();
    let crawl = folder.crawl().await;
    let mut found: Vec<Value> = crawl.items.iter().map(|item| item["fields"].clone()).collect();
    found.sort_by_key(|fields| fields["title"].to_string());
    let expected = [
        json!({"title": "Product 3", "kind": "range", "n": 3}),
        json!({"title": "Product 4", "kind": "range", "n": 4}),
        json!({"title": "Product 5", "kind": "range", "n": 5}),
        json!({"title": "Product 7", "kind": "a, b", "id": "7"}),
        json!({"title": "Product 8", "kind": "c", "id": "8"}),
    ];
    assert_eq!(found, expected, "{}", crawl.log);
    fs::remove_file(folder.path().join("ids.csv")).unwrap();
    let missing = folder.run(&["crawl", "--spider=shop.toml", "--allow-private", "--state=other.db"]).await;
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(missing.status.code() == Some(2) && said.contains("ids.csv: No such file"), "{said}");
}

#[tokio::test]
async fn each_mistake_in_requests_is_named_where_it_stands() {
    let site = ShopSite::serve().await;
    for (text, mistake) in [
        (
            "[[start.requests]]\nurl = 'http://a.example/'\nrows = { n = '5..1' }",
            "rows.n: write a list, or a range as `1..500`",
        ),
        (
            "[[start.requests]]\nurl = 'http://a.example/'\nrows = { n = '1..50000' }",
            "`rows` of a file are 10000 at most",
        ),
        (
            "[[start.requests]]\nurl = 'http://a.example/{carried.x}'\nrows = { n = '1..5' }",
            "there is no carried value `x`",
        ),
        ("[[start.requests]]\nurl = 'http://a.example/{carried.x'", "has no `}` behind it"),
        (
            "[[start.requests]]\nurl = 'http://a.example/'\nform = { a = 1 }\nbody = 'x'",
            "`body`, `base64`, `form` and `json` exclude each other",
        ),
        ("[[start.requests]]\nurl = 'http://a.example/'\nfrom = 1", "`from`"),
        ("[[page]]\nname = 'a'\nfollow.request.data = 1", "`data`: leave it out"),
        ("[[page]]\nname = 'a'\nfollow.fill = { a = 1 }", "is for `form` alone"),
        (
            "[[page]]\nname = 'a'\nfollow = { form = 'form', area = 'p' }",
            "is for links: leave it out, or `form`",
        ),
    ] {
        let text = text.replace("[[page]]", "[follow]\n[[page]]");
        let folder = shop(&site, "/", "");
        fs::write(folder.path().join("shop.toml"), &text).unwrap();
        let said = folder.mistakes().await;
        assert!(said.contains(mistake), "{text}\n{said}");
    }
}
