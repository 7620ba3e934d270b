//! The links that are followed.

use super::*;

fn found(follow: Follow, page: &str) -> Extraction {
    found_in(follow, &response(page))
}

fn found_in(follow: Follow, response: &Response) -> Extraction {
    extraction(
        &spider_of(vec![rule([("title", Field::new(FieldSource::Page(PageField::Title)))])], Some(follow)),
        response,
    )
}

/// Returns the paths of the followed links below `https://example.com/`.
fn links(follow: Follow, page: &str) -> Vec<String> {
    let path = |link: Link| link.url.as_str().strip_prefix("https://example.com/").unwrap().to_owned();
    found(follow, page).links.into_iter().map(path).collect()
}

#[test]
fn links_come_in_page_order_absolute_and_each_once() {
    let page = "<base href=/b/><a href=2>x</a><map><area href=1></map><a href='2#y'>y</a><a href=mailto:x></a><a href=/3></a>";
    assert_eq!(links(Follow::default(), page), ["b/2", "b/1", "3"]);
}

#[test]
fn queries_are_in_the_encoding_of_the_page_whoever_finds_them() {
    let page = "<meta charset=windows-1251><base href='/b?я'><link rel=canonical href='/c?я'><a href='/п?я'></a><a href></a>";
    let (page, ..) = encoding_rs::WINDOWS_1251.encode(page);
    let response = Response { headers: Headers::default(), ..response(&page) };
    let of = |follow: Follow| {
        found_in(follow, &response).links.into_iter().map(|link| String::from(link.url)).collect::<Vec<_>>()
    };
    let streamed = ["https://example.com/%D0%BF?%FF", "https://example.com/b?%FF"];
    assert_eq!(of(Follow::default()), streamed);
    assert_eq!(of(Follow { area: Some(sited("body").into()), ..Follow::default() }), streamed, "in the tree");
    let canonical = found_in(Follow { canonical: true, ..Follow::default() }, &response).canonical;
    assert_eq!(canonical.map(String::from).as_deref(), Some("https://example.com/c?%FF"));
    let fields = [
        ("canonical", Field::new(FieldSource::Page(PageField::Canonical))),
        ("links", Field::new(FieldSource::Page(PageField::Links))),
        ("url", Field { kind: Kind::Url, ..css("a::attr(href)") }),
    ];
    let items = extraction(&spider_of(vec![rule(fields)], None), &response).items;
    assert_eq!(items[0].fields["canonical"], "https://example.com/c?%FF");
    assert_eq!(items[0].fields["links"], json!(streamed));
    assert_eq!(items[0].fields["url"], streamed[0]);
}

#[test]
fn none_are_followed_unless_the_spider_says_so() {
    let spider = spider_of(vec![], None);
    assert_eq!(extraction(&spider, &response("<a href=x>")).links, []);
}

#[test]
fn an_area_bounds_where_links_are_looked_for() {
    let page = "<a href=0></a><div class=list><a href=1></a><div class=list><a href=2></a></div></div><a class=list href=3></a>";
    let area = Some(sited(".list").into());
    assert_eq!(links(Follow { area, ..Follow::default() }, page), ["dir/1", "dir/2", "dir/3"]);
}

#[test]
fn what_comes_next_is_followed_besides_links_or_in_place_of_them() {
    let page = "<a href=1></a><a class=next href=2></a><div data-next=3 class=more></div>";
    let next = || vec![sited("a.next::attr(href)").into(), sited("div.more::attr(data-next)").into()];
    assert_eq!(links(Follow { next: next(), ..Follow::default() }, page), ["dir/2", "dir/3", "dir/1"]);
    assert_eq!(links(Follow { next: next(), links: false, ..Follow::default() }, page), ["dir/2", "dir/3"]);
    let area = Some(sited("p").into());
    assert_eq!(links(Follow { next: next(), area, ..Follow::default() }, page), ["dir/2", "dir/3"]);
    let kinds: Vec<LinkKind> = found(Follow { next: next(), ..Follow::default() }, page)
        .links
        .iter()
        .map(|link| link.kind)
        .collect();
    assert_eq!(kinds, [LinkKind::Next, LinkKind::Next, LinkKind::Page]);
}

#[test]
fn nofollow_is_honoured_by_link_page_and_header() {
    let page = "<a href=1 rel='ugc NoFollow'></a><a href=2></a>";
    let anyway = || Follow { nofollow: false, ..Follow::default() };
    let area = || Some(sited("body").into());
    assert_eq!(links(Follow::default(), page), ["dir/2"]);
    assert_eq!(links(Follow { area: area(), ..Follow::default() }, page), ["dir/2"]);
    assert_eq!(links(anyway(), page), ["dir/1", "dir/2"]);
    let page = "<meta name=Robots content='noarchive, NOFOLLOW'><a href=1></a>";
    assert_eq!((links(Follow::default(), page), links(anyway(), page)), (vec![], vec!["dir/1".to_owned()]));
    for (header, count) in
        [("nofollow", 0), ("none", 0), ("googlebot: nofollow", 1), ("max-snippet: 5, nofollow", 0)]
    {
        let headers = Headers::from_iter([("content-type", "text/html"), ("x-robots-tag", header)]);
        let response = Response { headers, ..response("<a href=1>") };
        assert_eq!(found_in(Follow::default(), &response).links.len(), count, "{header}");
    }
}

#[test]
fn a_page_that_is_not_to_be_indexed_yields_no_item() {
    for content in ["noindex", "nofollow,none"] {
        let page = format!("<meta name=robots content='{content}'><a href=1>");
        assert_eq!(found(Follow::default(), &page).items, []);
        assert_eq!(found(Follow { noindex: false, ..Follow::default() }, &page).items.len(), 1);
    }
    assert_eq!(links(Follow::default(), "<meta name=robots content=noindex><a href=1>"), ["dir/1"]);
}

#[test]
fn a_page_says_of_which_it_is_another_form() {
    let follow = || Follow { canonical: true, ..Follow::default() };
    let page = "<a href=1></a><link rel=canonical href=/other><a href=/other></a>";
    let canonical = |follow, page| found(follow, page).canonical.map(String::from);
    assert_eq!(canonical(follow(), page).as_deref(), Some("https://example.com/other"));
    assert_eq!(canonical(follow(), "<link rel=canonical href='page#x'>"), None);
    assert_eq!(canonical(Follow::default(), page), None);
    assert_eq!(
        (links(follow(), page), found(follow(), page).items.len()),
        (vec!["dir/1".to_owned(), "other".to_owned()], 1)
    );
}

#[test]
fn a_refresh_is_followed() {
    let page = "<meta http-equiv=Refresh content=\"0; url='../new'\"><a href=1>";
    assert_eq!(links(Follow::default(), page), ["new", "dir/1"]);
    assert_eq!(links(Follow { refresh: false, ..Follow::default() }, page), ["dir/1"]);
    let headers = Headers::from_iter([("content-type", "text/html"), ("refresh", "0; url=/header")]);
    let response = Response { headers, ..response(page) };
    for (refresh, count) in [(true, 3), (false, 1)] {
        assert_eq!(found_in(Follow { refresh, ..Follow::default() }, &response).links.len(), count);
    }
}

#[test]
fn the_links_of_a_page_are_bounded() {
    let many: String = (0..20_000).map(|number| format!("<a href={number}>")).collect();
    let extraction = found(Follow::default(), &many);
    assert_eq!((extraction.links.len(), extraction.left_out), (10_000, 10_000));
    let long: String = (0..1_000).map(|number| format!("<a href={number}{}>", "x".repeat(7_000))).collect();
    let Extraction { links, left_out, .. } = found(Follow::default(), &long);
    let bytes: usize = links.iter().map(|link| link.url.as_str().len()).sum();
    assert_eq!(links.len() as u64 + left_out, 1_000);
    assert!((MAX_LINKS - 8_192..=MAX_LINKS).contains(&bytes), "{bytes}");
}
