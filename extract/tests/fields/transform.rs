//! Tests of `transform`.

use serde_json::json;
use trawl_common::spider::Kind;

use super::*;

#[test]
fn each_step_changes_the_values() {
    let page = "<p>  Price:\n 1.234,50 EUR </p><ul><li>red<li>Green, blue<li> </ul><a href='/c/17?x=1#y'>Éa</a>\
        <b>05/06/2024</b><i>ja</i><u data-p='{\"a\": [1, {\"b\": \"z\"}], \"n\": null}'>x</u>";
    for (field, expected) in [
        ("{ css = 'p', transform = ['lower'] }", json!("price: 1.234,50 eur")),
        ("{ css = 'p', transform = ['upper', { strip = 'PRICEU: ' }] }", json!("1.234,50")),
        ("{ css = 'p', whitespace = 'keep', transform = ['strip'] }", json!("Price:\n 1.234,50 EUR")),
        (
            r"{ css = 'p', transform = [{ replace = ['(\w+):\s*(.*)', '$2 ($1)'] }] }",
            json!("1.234,50 EUR (Price)"),
        ),
        (r"{ css = 'p', transform = [{ replace = ['\d', ''] }, { regex = '[.]' }] }", json!(".")),
        (r"{ css = 'p', transform = [{ regex = '([\d.,]+)' }, 'number'] }", json!(1234.5)),
        (r"{ css = 'p', transform = [{ regex = '([\d.,]+)' }], type = 'number' }", json!(1234.5)),
        (
            r"{ css = 'p', transform = [{ regex = '([\d.]+)' }, { number = { decimal = '.' } }] }",
            json!(1.234),
        ),
        (r"{ css = 'p', transform = [{ matches = '\d+' }], list = true }", json!(["1", "234", "50"])),
        (
            r"{ css = 'p', transform = [{ matches = '\d+' }, { join = '' }], type = 'integer' }",
            json!(123_450),
        ),
        ("{ css = 'li', transform = [{ split = ',' }], list = true }", json!(["red", "Green", "blue"])),
        ("{ css = 'li', transform = [{ split = ',' }, { slice = [-1] }] }", json!("blue")),
        (
            "{ css = 'li', transform = [{ split = ',' }, { slice = [1, 9] }], list = true }",
            json!(["Green", "blue"]),
        ),
        ("{ css = 'li', transform = [{ slice = [5, 2] }], list = true }", json!([])),
        ("{ css = 'li', transform = ['strip', { join = \"\\n\" }] }", json!("red\nGreen, blue\n")),
        ("{ css = 'a', transform = [{ chars = [0, 1] }, 'lower'] }", json!("é")),
        ("{ css = 'a', transform = [{ chars = [-1] }] }", json!("a")),
        ("{ css = 'a', transform = [{ chars = [7] }] }", json!(null)),
        (
            r"{ css = 'a::attr(href)', transform = [{ regex = '/c/(\d+)' }, { template = '/p/{value}?of={value}' }, 'url'] }",
            json!("https://example.com/p/17?of=17"),
        ),
        ("{ css = 'h1', transform = [{ default = 'none' }, 'upper'] }", json!("NONE")),
        ("{ css = 'li', transform = [{ regex = 'x' }, { default = 'none' }], list = true }", json!(["none"])),
        ("{ css = 'li', transform = [{ default = 'none' }], list = true }", json!(["red", "Green, blue"])),
        (
            "{ css = 'b', transform = [{ date = { format = '%d/%m/%Y' } }, { chars = [0, 4] }], type = 'integer' }",
            json!(2024),
        ),
        ("{ css = 'b', transform = [{ date = { format = '%d/%m/%Y' } }] }", json!("2024-06-05")),
        ("{ css = 'i', transform = [{ boolean = { true = 'ja' } }] }", json!(true)),
        ("{ css = 'u::attr(data-p)', transform = [{ path = '/a/1/b' }, 'upper'] }", json!("Z")),
        ("{ css = 'u::attr(data-p)', transform = [{ path = '/a' }], type = 'json' }", json!([1, {"b": "z"}])),
        (
            "{ css = 'u::attr(data-p)', transform = [{ path = '/a' }, { slice = [0, 1] }, 'integer'] }",
            json!(1),
        ),
        ("{ css = 'u::attr(data-p)', transform = [{ path = '/n' }] }", json!(null)),
        ("{ page = 'link_count', transform = [{ template = '{value} links' }] }", json!("1 links")),
        (
            "{ css = 'a', type = 'html', transform = [{ replace = [' href=\"[^\"]*\"', ''] }] }",
            json!("<a>Éa</a>"),
        ),
    ] {
        assert_eq!(value(field, page), expected, "{field}");
    }
}

#[test]
fn json_is_read_as_programs_write_it() {
    let response = response("application/json", r#"{"a": "1.234", "b": {"c": [1, 2]}, "d": " x\n y "}"#);
    for (field, expected) in [
        ("{ json = '/a', transform = ['number'] }", json!(1.234)),
        ("{ json = '/a', transform = [{ number = { decimal = ',' } }] }", json!(1234)),
        ("{ json = '/b', transform = [{ path = '$.c[*]' }], list = true, type = 'integer' }", json!([1, 2])),
        ("{ json = '/b', transform = [{ template = '{value}!' }] }", json!("{\"c\":[1,2]}!")),
        ("{ json = '/d', transform = ['upper'] }", json!(" X\n Y ")),
    ] {
        let spider = spider(&format!("[fields]\nx = {field}\n"));
        assert_eq!(extract(&spider, &response).items[0].fields["x"], expected, "{field}");
    }
}

#[test]
fn a_refused_value_is_shown_after_each_step() {
    let page = "<b>Price: 12 - 15 EUR</b><b>free</b>";
    let text = r"{ css = 'b', transform = [{ split = '-' }, { regex = '\d+ ?\w*$' }, 'number'] }";
    let found = extract(&spider(&format!("[fields]\nx = {text}\n")), &html(page));
    assert_eq!((&found.items[0].fields["x"], &found.unfit[..]), (&json!(12), &[][..]));
    let text = text.replace("css = 'b'", "css = 'b + b'");
    let found = extract(&spider(&format!("[fields]\nx = {text}\n")), &html(page));
    assert_eq!(found.items[0].fields["x"], json!(null));
    let unfit = &found.unfit[0];
    assert_eq!((&*unfit.value, unfit.reason), ("free", "the regular expression does not match"));
    assert_eq!(unfit.steps, ["split: `free`", "regex: the regular expression does not match"]);
}

#[test]
fn no_page_makes_texts_and_lists_without_end() {
    let long = format!("<p>{}</p>", "a,".repeat(600_000));
    for field in [
        "{ css = 'p', transform = [{ replace = ['a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'] }] }",
        "{ css = 'p', transform = [{ template = '{value}{value}' }] }",
        "{ css = 'p', transform = [{ split = ',' }, { template = '{value}{value}{value}{value}' }], list = true }",
        "{ css = 'p', transform = [{ split = ',' }, { join = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }] }",
    ] {
        let spider = spider(&format!("[fields]\nx = {field}\n"));
        let found = extract(&spider, &html(&long));
        assert_eq!(found.unfit.len(), 1, "{field}");
        assert!(found.items[0].fields["x"].to_string().len() < 1 << 20, "{field}");
    }
}

#[test]
fn steps_are_read_with_the_place_of_each_mistake() {
    let spider = spider(
        "[fields]\na = { css = 'a', transform = ['strip', { strip = '*' }, { split = ',' }, { slice = [1, -1] }, 'date'] }\n",
    );
    let (_, field) = &spider.items[0].fields[0];
    assert_eq!((field.transform.len(), field.kind), (5, Kind::Date));
    for (steps, expected) in [
        ("'strap'", "2:31 fields.a.transform: there is no `strap`: did you mean `strip`?"),
        ("'strip', 'split'", "2:40 fields.a.transform: `split` needs a value: { split = ... }"),
        ("{ splat = ',' }", "2:33 there is no key `fields.a.transform.splat`: did you mean `split`?"),
        ("{ split = ',', join = ';' }", "2:31 fields.a.transform: a step has one of the keys `strip`"),
        ("{}", "2:31 fields.a.transform: a step has one of the keys `strip`"),
        ("{ split = '' }", "2:41 fields.a.transform.split: must not be empty"),
        ("{ replace = ['('] }", "2:43 fields.a.transform.replace: a list of a regular expression and its"),
        (
            "{ replace = ['(', ''] }",
            "2:44 fields.a.transform.replace: is not a regular expression: unclosed group",
        ),
        (
            "{ replace = ['(a)', '$1b'] }",
            "2:43 fields.a.transform.replace: the regular expression has no group `1b`",
        ),
        ("{ replace = ['a', '$$1 ${0}'] }, 'upper', 'down'", "2:73 fields.a.transform: there is no `down`"),
        ("{ template = 'x' }", "2:44 fields.a.transform.template: has no `{value}`"),
        ("{ slice = 3 }", "2:41 fields.a.transform.slice: a list of one or two whole numbers is wanted"),
        ("{ path = 'a' }", "2:40 fields.a.transform.path: is neither a JSON Pointer"),
        (
            "{ number = { format = '%d' } }",
            "2:53 fields.a.transform.number.format: is for `type = \"date\"` alone",
        ),
        (
            "{ date = { formt = '%d' } }",
            "2:42 there is no key `fields.a.transform.date.formt`: did you mean `format`?",
        ),
    ] {
        one(&format!("[fields]\na = {{ css = 'a', transform = [{steps}] }}\n"), expected);
    }
    one(
        "[fields]\na = { css = 'a', regex = 'x', transform = ['strip'] }",
        "2:26 fields.a.regex: is a step as well: put it into `transform`",
    );
    let many = vec!["'strip'"; 33].join(", ");
    one(
        &format!("[fields]\na = {{ css = 'a', transform = [{many}] }}\n"),
        "2:30 fields.a.transform: a field has 32 steps at most",
    );
}
