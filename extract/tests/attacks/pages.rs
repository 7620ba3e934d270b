//! Attacks on what pages lead to: values to carry, forms, and lists.

use trawl_common::frontier::outcome::Failure;
use trawl_common::settings;
use trawl_common::spider::{Origin, Spider, file};
use trawl_extract::{Extraction, Extractor};
use trawl_testkit::attacks::Section;

use super::{answer, url};

const CARRY: &str =
    "[[page]]\nname = 'list'\nfollow = {}\ncarry = { x = 'h1' }\nfields = { title = 'title' }";
const EACH: &str = "[[page]]\nname = 'list'\nfields = { title = 'title' }\n[[page.follow]]\neach = 'li'\ncarry = { x = 'b' }";
const FORM: &str =
    "[[page]]\nname = 'list'\nfields = { title = 'title' }\n[[page.follow]]\nform = 'form#search'";
const CURSOR: &str = "[[page]]\nname = 'list'\nfields = { x = { json = '/x' } }\n[[paginate]]\ncursor = { json = '/next' }\nto = 'c'";
const BODY: &str = "[[page]]\nname = 'list'\nfields = { x = { json = '/x' } }\n[[paginate]]\ncursor = { json = '/next' }\nto = '/c'";

fn spider(text: &str) -> Spider {
    let usual = Spider::without_file("a".parse().expect("a name"), &settings::Items::default());
    file::read(usual, text, Origin::Local, &|_| None).ready().expect("a sound file")
}

fn extract(text: &str, content_type: &'static str, page: String) -> Result<Extraction, Failure> {
    let extractor = Extractor::new(&spider(text)).expect("sound selectors");
    let response = answer(content_type, page.into_bytes());
    extractor.extract(&url(), &response, &false.into())
}

/// Returns the class and the reason of a failure, or the number of links of a page that is read.
fn outcome(result: Result<Extraction, Failure>) -> String {
    match result {
        Ok(extraction) => format!("read: {} links", extraction.links.len()),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn what_a_page_leads_to_is_bounded_or_refused_as_a_whole() {
    let (html, json) = ("text/html", "application/json");
    let links = |many: usize| (0..many).map(|n| format!("<a href=/{n}>x</a>")).collect::<String>();
    let megabyte = "z".repeat(1 << 20);
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Kinds of pages");
    for (attack, spider, kind, page, gets) in [
        (
            "a value of a megabyte to carry",
            CARRY,
            html,
            format!("<h1>{megabyte}</h1>{}", links(3)),
            "parse: page `list`: `carry` has 1048",
        ),
        (
            "a value of 10 KB to carry to 5,000 links",
            CARRY,
            html,
            format!("<h1>{}</h1>{}", "z".repeat(10_000), links(5_000)),
            "parse: page `list`: `carry` has more than 8388608 bytes of JSON for all links",
        ),
        (
            "a value of a megabyte to carry from a page without links",
            CARRY,
            html,
            format!("<h1>{megabyte}</h1>"),
            "read: 0 links",
        ),
        (
            "20,000 entries with a link and a value each",
            EACH,
            html,
            (0..20_000).map(|n| format!("<li><a href=/{n}>x</a><b>{n}</b>")).collect(),
            "read: 10000 links",
        ),
        (
            "a form that is not there",
            FORM,
            html,
            links(1),
            "parse: page `list`: `form`: the page has no `form#search`",
        ),
        (
            "something else in place of a form",
            FORM,
            html,
            "<div id=search>".to_owned(),
            "parse: page `list`: `form`: the page has no",
        ),
        (
            "a form of 100,000 controls",
            FORM,
            html,
            format!("<form id=search>{}</form>", "<input name=a value=b>".repeat(100_000)),
            "parse: page `list`: `form`: it has more than 1000 fields",
        ),
        (
            "a form that leads nowhere",
            FORM,
            html,
            "<form id=search action='http://['>".to_owned(),
            "parse: page `list`: `form`: `http://[?` is no URL",
        ),
        (
            "a form with a file",
            FORM,
            html,
            "<form id=search method=post enctype=multipart/form-data>".to_owned(),
            "parse: page `list`: `form`: it is sent as multipart/form-data",
        ),
        (
            "a cursor of a megabyte",
            CURSOR,
            json,
            format!(r#"{{"x": 1, "next": "{megabyte}"}}"#),
            "parse: the cursor of `[[paginate]]` is longer than 4096 bytes",
        ),
        (
            "a cursor for a body where there was none",
            BODY,
            json,
            r#"{"x": 1, "next": "b"}"#.to_owned(),
            "parse: [[paginate]] puts a value into the JSON body",
        ),
    ] {
        section.tried(attack, gets, &outcome(extract(spider, kind, page)));
    }
    section.check();
}
