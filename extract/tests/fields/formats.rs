//! Tests of XML and CSV.

use serde_json::json;

use super::*;

const FEED: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE rss [<!ENTITY x "y">]>
    <rss xmlns:g="http://base.google.com/ns/1.0" version="2.0"><channel><title>Shop &amp; more</title>
    <item sku="1"><title><![CDATA[A <b>hat</b>]]></title><g:price>12.50 EUR</g:price><link>/p/1</link>
        <g:shipping><g:country>DE</g:country></g:shipping><pubDate>Wed, 01 May 2024 10:00:00 GMT</pubDate><size/></item>
    <item sku="2"><title>A cap&nbsp;&#233;</title><g:price>9</g:price><link>/p/2</link><!-- note --></item>
    </channel></rss>"#;

fn xml(body: &str) -> Response {
    response("application/rss+xml", body)
}

fn failure(file: &str, response: &Response) -> String {
    let url = "https://example.com/".parse().expect("a URL");
    let extractor = Extractor::new(&spider(file)).expect("a sound spider");
    let failure = extractor.extract(&url, response, &AtomicBool::new(false)).expect_err("a broken document");
    failure.to_string()
}

#[test]
fn elements_of_xml_are_items() {
    for (each, price, link) in [
        ("'item'", r"'g\:price'", "{ css = 'link', type = 'url' }"),
        ("{ xpath = '//item' }", "{ xpath = 'g:price' }", "{ xpath = 'link', type = 'url' }"),
        (
            "{ xpath = '/rss/channel/item' }",
            "{ xpath = './/*[local-name() = \"price\"]' }",
            "{ xpath = 'string(link)', type = 'url' }",
        ),
    ] {
        let file = format!(
            "[xml]\n[follow]\nlinks = false\nnext = [{{ xpath = '//item/link/text()' }}]\n[[items]]\neach = {each}\n[items.fields]\n\
             title = 'title'\nprice = {price}\nlink = {link}\nsku = '::attr(sku)'\nday = {{ css = 'pubDate', type = 'date' }}\n"
        );
        let hat = json!({"title": "A <b>hat</b>", "price": "12.50 EUR", "link": "https://example.com/p/1", "sku": "1", "day": "2024-05-01T10:00:00Z"});
        let cap = json!({"title": "A cap é", "price": "9", "link": "https://example.com/p/2", "sku": "2", "day": null});
        assert_eq!(items(&file, &xml(FEED)), [hat, cap], "{each}");
        assert_eq!(extract(&spider(&file), &xml(FEED)).links.len(), 2);
    }
}

#[test]
fn a_namespace_has_the_prefix_of_the_spider_whatever_the_document_calls_it() {
    let file = "[xml]\nnamespaces = { p = 'urn:p', atom = 'http://www.w3.org/2005/Atom' }\n[fields]\n\
                a = { xpath = '//p:price/@p:unit' }\nb = { xpath = 'string(/atom:feed/atom:title)' }\nc = { xpath = '//other:x' }\n";
    let document = "<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title><q:price xmlns:q='urn:p' q:unit='kg' unit='no'/>\
                    <other:x>y</other:x></feed>";
    assert_eq!(items(file, &xml(document)), [json!({"a": "kg", "b": "t", "c": "y"})]);
    let inner =
        "<a xmlns:p='urn:other'><b xmlns:p='urn:p'><p:price p:unit='1'/></b><p:price p:unit='2'/></a>";
    assert_eq!(items(file, &xml(inner))[0]["a"], "1");
}

#[test]
fn xml_is_read_by_spiders_that_say_so() {
    let reads = |file: &str, response: &Response| Extractor::new(&spider(file)).unwrap().reads(response);
    let fields = "[fields]\na = 'title'\n";
    assert!(!reads(fields, &xml(FEED)) && reads(&format!("[xml]\n{fields}"), &xml(FEED)));
    assert!(reads(&format!("[xml]\n{fields}"), &response("text/plain", FEED)));
    let page = html("<title>t</title><p>x");
    assert_eq!(items(&format!("[xml]\n{fields}"), &page), [json!({"a": "t"})]);
    let xhtml = response("application/xml", "<?xml version='1.0'?><html><title>t</title></html>");
    assert_eq!(items(fields, &xhtml), [json!({"a": "t"})]);
    let latin =
        response("text/xml", b"<?xml version='1.0' encoding='iso-8859-1'?><r><title>caf\xe9</title></r>");
    assert_eq!(items(&format!("[xml]\n{fields}"), &latin), [json!({"a": "café"})]);
}

#[test]
fn what_is_no_xml_fails_with_the_reason_and_nothing_is_unbounded() {
    let file = "[xml]\n[fields]\na = 'title'\n";
    for (document, reason) in [
        ("<a><b></a>", "not XML at byte "),
        ("<a>", "not XML: it ends within an element"),
        ("text", "not XML: it has no element"),
        (&"<a>".repeat(300), "more than 256 open elements"),
        (&format!("<a>{}</a>", "<b/>".repeat(500_001)), "more than 500000 nodes"),
        (
            &format!("<a {}/>", (0..300).map(|n| format!("a{n}='' ")).collect::<String>()),
            "more than 256 attributes",
        ),
        (
            &format!("<a>{}</a>", (0..5000).map(|n| format!("<a{n}/>")).collect::<String>()),
            "more than 4096 different names",
        ),
    ] {
        assert!(
            failure(file, &xml(document)).contains(reason),
            "{reason}: {}",
            failure(file, &xml(document))
        );
    }
    let laughs = "<!DOCTYPE r [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]><r><title>&b;</title></r>";
    assert_eq!(items(file, &xml(laughs)), [json!({"a": "&b;"})]);
}

#[test]
fn rows_of_csv_are_items() {
    let file = "[csv]\n[[items]]\neach = '$[*]'\n[items.fields]\nname = { json = '/name' }\nprice = { json = '/price', type = 'number' }\n";
    let expected = [json!({"name": "Hat, red", "price": 12.5}), json!({"name": "Cap", "price": null})];
    for (content_type, body) in [
        ("text/csv", "name,price\n\"Hat, red\",12.5\nCap,\n"),
        ("text/csv; charset=utf-8", "\u{feff}name;price;x\r\n\"Hat, red\";12.5\r\nCap;;1;2\r\n"),
        ("text/tab-separated-values", "name\tprice\nHat, red\t12.5\nCap\t\n"),
        ("application/csv", "price|name\n12.5|Hat, red\n|Cap\n"),
        ("text/plain", "name,price\n\"Hat, red\",12.5\nCap,\n"),
    ] {
        assert_eq!(items(file, &response(content_type, body)), expected, "{content_type}");
    }
    let german = "[csv]\ndelimiter = ';'\n[fields]\na = { json = '/0/1' }\nb = { json = '$[*].n', list = true, type = 'number', decimal = ',' }\n";
    let rows = response("text/csv; charset=iso-8859-1", b";n\ncaf\xe9;1,5\nx;2,5\n");
    assert_eq!(items(german, &rows), [json!({"a": "café", "b": [1.5, 2.5]})]);
    assert!(
        !Extractor::new(&spider("[fields]\na = { json = '/a' }"))
            .unwrap()
            .reads(&response("text/csv", "a\n1\n"))
    );
    let many = response("text/csv", "a,b\n".repeat(300_000));
    assert!(failure(file, &many).contains("CSV of more than 500000 values"));
}

#[test]
fn mistakes_of_formats_have_their_places() {
    one("[xml]\nnamespaces = { 'g:' = 'x' }", "2:16 xml.namespaces.g:: a prefix is a name, as `g`");
    one("[xml]\nnamespace = {}", "2:1 there is no key `xml.namespace`: did you mean `namespaces`?");
    one("[csv]\ndelimiter = ';;'", "2:13 csv.delimiter: is one mark, as \";\"");
}
