//! Tests of XPath 1.0.

use serde_json::json;

use super::*;

const PAGE: &str = "<!doctype html><html lang=en-GB><head><title>T</title></head><body id=top>\
    <div class='a b'><p>One <b>1</b></p><p class=x>Two<br>lines</p><p>3</p></div><!--note-->\
    <ul><li><a href=/1 rel=next>n1</a></li><li><a href=/2>n2</a></li><li data-n=7>7</li></ul>\
    <table><tr><td>Price</td><td>12.50</td></tr><tr><td>Old</td><td>20</td></tr></table>\
    <svg><linearGradient id=g /></svg></body></html>";

/// All values that an expression finds in [`PAGE`].
fn all(xpath: &str) -> Value {
    let quoted = Value::from(xpath);
    value(&format!("{{ xpath = {quoted}, list = true }}"), PAGE)
}

#[test]
fn expressions_find_what_the_standard_says() {
    for (xpath, expected) in [
        // Paths and axes.
        ("/html/body/div/p[1]/text()", json!(["One"])),
        ("//p", json!(["One 1", "Two lines", "3"])),
        ("//p/text()", json!(["One", "Two", "lines", "3"])),
        ("//li/a/@href", json!(["/1", "/2"])),
        ("//@rel", json!(["next"])),
        ("body/ul/li[last()]", json!(["7"])),
        (".//b/..", json!(["One 1"])),
        ("//b/ancestor::*[2]/@class", json!(["a b"])),
        ("//b/ancestor-or-self::*[1]", json!(["1"])),
        ("//p[@class='x']/preceding-sibling::p", json!(["One 1"])),
        ("//p[@class='x']/following-sibling::*[1]", json!(["3"])),
        ("//ul/preceding::p[1]", json!(["3"])),
        ("//b/following::p", json!(["Two lines", "3"])),
        ("//li[2]/following::td[1]", json!(["Price"])),
        ("//p[2]/self::p", json!(["Two lines"])),
        ("//p[2]/self::div", json!([])),
        ("//comment()", json!(["note"])),
        ("//linearGradient/@id", json!(["g"])),
        ("//td[1] | //p[3] | //td[1]", json!(["3", "Price", "Old"])),
        ("(//li/a)[2]", json!(["n2"])),
        ("//li/a[1]", json!(["n1", "n2"])),
        ("(//li/a)[last()]/@href", json!(["/2"])),
        ("//body/descendant::p[2]", json!(["Two lines"])),
        ("//*[@id='top']/ul//a", json!(["n1", "n2"])),
        ("//tr/td[. = 'Price']/following-sibling::td", json!(["12.50"])),
        ("id('top g')/@id", json!(["top", "g"])),
        ("//p/@*", json!(["x"])),
        ("//ul/li[position() mod 2 = 1]", json!(["n1", "7"])),
        ("//ul/li[position() > 1][1]", json!(["n2"])),
        ("//li[a[@rel]]", json!(["n1"])),
        ("//li[not(a)]/@data-n", json!(["7"])),
        ("//processing-instruction()", json!([])),
        ("//namespace::*", json!([])),
        ("//attribute::href", json!(["/1", "/2"])),
        ("//div/node()[1]/node()", json!(["One", "1"])),
        // Functions.
        ("count(//p)", json!(["3"])),
        ("sum(//td[2])", json!(["32.5"])),
        ("string(//p)", json!(["One 1"])),
        ("normalize-space('  a  b ')", json!(["a b"])),
        ("concat(//td, ': ', //td[2])", json!(["Price: 12.50"])),
        ("substring-before('a=b=c', '=')", json!(["a"])),
        ("substring-after('a=b=c', '=')", json!(["b=c"])),
        ("substring('12345', 2, 3)", json!(["234"])),
        ("substring('12345', 1.5, 2.6)", json!(["234"])),
        ("substring('12345', 0, 3)", json!(["12"])),
        ("substring('12345', 0 div 0, 3)", json!([])),
        ("substring('12345', -42, 1 div 0)", json!(["12345"])),
        ("translate('bar', 'abc', 'AB')", json!(["BAr"])),
        ("translate('--a--', '-', '')", json!(["a"])),
        ("string-length('äöü')", json!(["3"])),
        ("//p[contains(@class, 'x')]", json!(["Two lines"])),
        ("//p[starts-with(., 'T')]", json!(["Two lines"])),
        ("//div[contains(concat(' ', normalize-space(@class), ' '), ' b ')]/p[3]", json!(["3"])),
        ("//div[has-class('a', 'b')]/p[3]", json!(["3"])),
        ("//a[re:test(@href, '^/[2-9]$')]", json!(["n2"])),
        ("//a[re:test(., 'N1', 'i')]", json!(["n1"])),
        ("name(//*[@id='g'])", json!(["linearGradient"])),
        ("local-name(//@href)", json!(["href"])),
        ("//p[lang('en')][1]", json!(["One 1"])),
        ("//p[lang('de')]", json!([])),
        ("boolean(//p)", json!(["true"])),
        ("not(//h1)", json!(["true"])),
        ("true() and false()", json!(["false"])),
        ("round(2.5) + round(-2.5) + floor(1.7) + ceiling(1.2)", json!(["4"])),
        // Numbers and comparisons.
        ("1 + 2 * 3 - 4 div 2", json!(["5"])),
        ("-(7) mod 3", json!(["-1"])),
        ("5 mod -2", json!(["1"])),
        ("1 div 0", json!([])),
        ("number('a')", json!([])),
        ("number(' -1.5 ')", json!(["-1.5"])),
        ("string(1 div 3)", json!(["0.3333333333333333"])),
        ("string(-0)", json!(["0"])),
        ("string(1 div 0)", json!(["Infinity"])),
        ("//td = 'Old'", json!(["true"])),
        ("//td != 'Old'", json!(["true"])),
        ("//td > 19", json!(["true"])),
        ("19 > //td", json!(["true"])),
        ("//td[2] < //li", json!(["false"])),
        ("//p = //li", json!(["false"])),
        ("//p != //li", json!(["true"])),
        ("//h1 = //h2", json!(["false"])),
        ("//h1 = false()", json!(["true"])),
        ("'1' = 1", json!(["true"])),
        ("'a' < 'b'", json!(["false"])),
        ("2 > 1 > 0", json!(["true"])),
        ("1 = 1 = 1", json!(["true"])),
        // Names that are operators as well.
        ("//div/p[2] | //mod | //and", json!(["Two lines"])),
        ("count(*) * 2", json!(["4"])),
        ("* * 2", json!([])),
    ] {
        assert_eq!(all(xpath), expected, "{xpath}");
    }
}

#[test]
fn values_become_what_the_field_is() {
    for (field, expected) in [
        ("{ xpath = 'count(//p)', type = 'integer' }", json!(3)),
        ("{ xpath = '//h1', required = false }", json!(null)),
        ("{ xpath = '//li/a/@href', type = 'url' }", json!("https://example.com/1")),
        ("{ xpath = '//p[2]', type = 'html' }", json!("<p class=\"x\">Two<br>lines</p>")),
        ("{ xpath = 'boolean(//h1)', type = 'boolean' }", json!(false)),
        ("{ xpath = '//td[2]', type = 'number' }", json!(12.5)),
        (
            "{ xpath = '//p', whitespace = 'lines', transform = [{ join = '/' }] }",
            json!("One 1/Two\nlines/3"),
        ),
        (
            "{ table = { xpath = '//table' }, list = true, type = 'json' }",
            json!([{"1": "Price", "2": "12.50"}, {"1": "Old", "2": "20"}]),
        ),
    ] {
        let found = value(field, PAGE);
        let is_table = field.contains("table =");
        assert!(
            found == expected || is_table && found.as_array().is_some_and(|rows| rows.len() == 2),
            "{field}: {found}"
        );
    }
}

#[test]
fn it_stands_wherever_css_does() {
    let file = r#"
        [follow]
        area = { xpath = "//ul/li[1]" }
        next = [{ xpath = "//a[@rel='next']/@href" }, { xpath = "string(//li[2]/a/@href)" }]
        [[items]]
        each = { xpath = "//li[a]" }
        [items.fields]
        name = { xpath = "./a" }
        count = { xpath = "count(.//a)", type = "integer" }
        nth = { xpath = "count(preceding-sibling::li) + 1", type = "integer" }
        link = "a::attr(href)"
        page = { xpath = "/html/head/title" }
        whole = { each = { xpath = "a" }, fields = { rel = { xpath = "@rel" } } }
    "#;
    let item = |name: &str, nth: i32, link: &str, rel: Value| json!({"name": name, "count": 1, "nth": nth, "link": link, "page": "T", "whole": {"rel": rel}});
    assert_eq!(
        items(file, &html(PAGE)),
        [item("n1", 1, "/1", json!("next")), item("n2", 2, "/2", json!(null))]
    );
    let links: Vec<_> =
        extract(&spider(file), &html(PAGE)).links.iter().map(|link| link.url.to_string()).collect();
    assert_eq!(links, ["https://example.com/1", "https://example.com/2"]);
    let file = r#"
        [[page]]
        name = "list"
        match.selector = { xpath = "//li[a]" }
        [[page.follow]]
        each = { xpath = "//li" }
        link = { xpath = "a/@href" }
        carry = { name = { xpath = "a" } }
        [[paginate]]
        next = { xpath = "//a[@rel='next']/@href" }
        entries = { xpath = "//li" }
    "#;
    let found = extract(&spider(file), &html(PAGE));
    assert_eq!((found.links.len(), found.kind, found.list.unwrap().end), (2, Some(0), None));
}

#[test]
fn mistakes_say_where_and_why() {
    for (xpath, expected) in [
        ("//p[", "a step is wanted at its end"),
        ("//p]", "the end is wanted before `]`"),
        ("//p[1", "`]` is wanted at its end"),
        ("p//", "a step is wanted at its end"),
        ("//p['a]", "a text in ' has no end"),
        ("//p[foo()]", "there is no function `foo`; there are "),
        ("contians(a, b)", "there is no function `contians`: did you mean `contains`?"),
        ("count()", "`count()` has 1 arguments, not 0"),
        ("count('a')", "`count()` is for nodes"),
        ("childs::p", "there is no axis `childs`: did you mean `child`?"),
        ("p/text", ""),
        ("'a'/p", "`[` and `/` come after nodes"),
        ("p | 'a'", "`|` is for nodes on both sides"),
        ("$x", "there are no variables"),
        ("p b", "an operator is wanted, not `b`"),
        ("p = = b", "a step is wanted before `= b`"),
        ("p § b", "`§` does not belong here"),
        ("re:test(., @x)", "`re:test` has a text, a pattern in quotes"),
        ("re:test(., '(')", "`(` is not a regular expression: unclosed group"),
        ("lower-case(.)", "there is no function `lower-case`"),
    ] {
        let file = format!("[fields]\na = {{ xpath = {} }}", Value::from(xpath));
        match expected {
            "" => assert_eq!(mistakes(&file), [""; 0], "{xpath}"),
            expected => {
                one(&file, &format!("2:15 fields.a: `{xpath}` is not an XPath 1.0 expression: {expected}"))
            }
        }
    }
    let many: String = (0..101).map(|n| format!("a{n} = {{ xpath = \"//a[re:test(., 'x')]\" }}\n")).collect();
    one(
        &format!("[fields]\n{many}"),
        "102:18 fields.a100: `//a[re:test(., 'x')]` is not an XPath 1.0 expression: a file may have",
    );
    for deep in
        [format!("{}1{}", "(".repeat(40), ")".repeat(40)), format!("1{}", "+1".repeat(600)), "a".repeat(5000)]
    {
        assert_eq!(mistakes(&format!("[fields]\na = {{ xpath = '{deep}' }}")).len(), 1);
    }
}

#[test]
fn mistakes_of_place_are_told_before_a_crawl() {
    one("[follow]\nnext = ['//a/@href']", "2:9 follow.next: looks like XPath: write { xpath = '//a/@href' }");
    one("[[items]]\neach = '(//li)[1]'\nfields = { a = 'b' }", "2:8 items.each: looks like XPath");
    one("[follow]\narea = '//main'", "2:8 follow.area: looks like XPath: write { xpath = '//main' }");
    one("[fields]\na = './/h1'", "2:5 fields.a: looks like XPath: write { xpath = './/h1' }");
    one("[follow]\narea = { xpath = '//a/@href' }", "2:18 follow.area: `//a/@href` must find elements");
    one(
        "[follow]\nnext = [{ xpath = '//a' }]",
        "2:19 follow.next: `//a` finds elements, not URLs: add `/@href`",
    );
    one(
        "[[items]]\neach = { xpath = '//li' }\nfields = { a = { xpath = '//b' } }",
        "3:26 fields.a: `//b` finds nodes of the whole page, not of the element: write `.//b`, or",
    );
    one(
        "[[items]]\neach = '$.a[*]'\nfields = { a = { xpath = 'b' } }",
        "3:26 fields.a: `b` is looked for in HTML",
    );
}

#[test]
fn no_page_and_no_expression_takes_forever() {
    let page = html(&format!("<p>{}</p>", "<a href=x>y</a>".repeat(100_000)));
    for xpath in [
        "count(//a[count(//a) > 1])",
        "//a[following::a/@href = preceding::a/@href]",
        "concat(//p, //p, //p)[1]",
        "//a/ancestor::*//a/ancestor::*//a/ancestor::*//a",
        "//a[string-length(translate(//p, //p, '')) = 0]",
    ] {
        let file = format!("[fields]\na = {{ xpath = {} }}", Value::from(xpath));
        let Ok(extractor) = Extractor::new(&match mistakes(&file).is_empty() {
            true => spider(&file),
            false => continue,
        }) else {
            continue;
        };
        let begun = std::time::Instant::now();
        let url = "https://example.com/".parse().unwrap();
        let found = extractor.extract(&url, &page, &AtomicBool::new(false));
        assert!(begun.elapsed().as_secs() < 30, "{xpath}");
        if let Err(failure) = found {
            assert!(failure.to_string().contains("take too many steps"), "{xpath}: {failure}");
        }
    }
}
