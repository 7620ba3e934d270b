//! XML that expands, nests, does not end, or deceives.

use crate::{Attack, MAX_BYTES, around, attack, entry, settings, try_all};

const MARKUP: &[&str] = &["markup longer than 1048576 bytes, after 1 entry"];

pub(crate) fn attacks() -> Vec<Attack> {
    let loc = |text: &str| entry(&format!("<loc>{text}</loc>"));
    let doctype = |inside: &str, text: &str| format!("<!DOCTYPE urlset {inside}>{}", loc(text));
    let laughs: String =
        (1..10).map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10))).collect();
    let large = "x".repeat(2 << 20);
    vec![
        attack(
            "a billion laughs",
            doctype(&format!("[<!ENTITY l0 \"lol\">{laughs}]"), "http://a.example/&l9;"),
            2,
            1,
            &[],
        ),
        attack(
            "one entity of half a megabyte, named 1,000 times",
            doctype(&format!("[<!ENTITY a \"{}\">]", "a".repeat(1 << 19)), &"&a;".repeat(1000)),
            2,
            1,
            &[],
        ),
        attack(
            "an external entity, `file:///etc/passwd`",
            doctype("[<!ENTITY x SYSTEM \"file:///etc/passwd\">]", "http://a.example/?&x;"),
            2,
            1,
            &[],
        ),
        attack(
            "an external entity on the metadata service",
            doctype("[<!ENTITY x SYSTEM \"http://169.254.169.254/\">]", "&x;"),
            2,
            1,
            &[],
        ),
        attack(
            "a parameter entity with a document type elsewhere",
            doctype("[<!ENTITY % x SYSTEM \"http://127.0.0.1/x.dtd\"> %x; %y;]", "&z;"),
            2,
            1,
            &[],
        ),
        attack(
            "an external document type",
            doctype("SYSTEM \"http://127.0.0.1/x.dtd\"", "http://a.example/3"),
            3,
            0,
            &[],
        ),
        attack(
            "a document type of 2 MB",
            doctype(&format!("[<!--{large}-->]"), "x"),
            0,
            0,
            &["markup longer than 1048576 bytes, after 0 entries"],
        ),
        attack(
            "XInclude of `file:///etc/passwd`",
            around("<xi:include href=\"file:///etc/passwd\" parse=\"text\"/>"),
            2,
            0,
            &[],
        ),
        attack(
            "a million open elements",
            around(&"<a>".repeat(1_000_000)),
            1,
            0,
            &["elements nested deeper than 256, after 1 entry"],
        ),
        attack(
            "elements with names of 500 KB",
            around(&format!("<{}>", "x".repeat(500_000)).repeat(5)),
            1,
            0,
            &["a name longer than 1024 bytes, after 1 entry"],
        ),
        attack("an attribute of 2 MB", around(&format!("<x y='{large}'/>")), 1, 0, MARKUP),
        attack(
            "100,000 attributes in a tag that is read",
            format!(
                "<feed><entry><link {} href=\"http://a.example/\"/></entry></feed>",
                (0..100_000).map(|n| format!("a{n}='' ")).collect::<String>(),
            ),
            1,
            0,
            &[],
        ),
        attack("a tag that never ends", around(&format!("<url {}", "x ".repeat(1 << 20))), 1, 0, MARKUP),
        attack("a comment of 2 MB", around(&format!("<!--{large}-->")), 1, 0, MARKUP),
        attack("a CDATA section of 2 MB", loc(&format!("<![CDATA[{large}]]>")), 1, 0, MARKUP),
        attack("200,000 CDATA sections in one location", loc(&"<![CDATA[x]]>".repeat(200_000)), 2, 1, &[]),
        attack("3 MB of text in one location", loc(&"x".repeat(3 << 20)), 2, 1, &[]),
        attack("500,000 references in one location", loc(&"&amp;".repeat(500_000)), 2, 1, &[]),
        attack("one location of 500,000 elements", loc(&"<b/>".repeat(500_000)), 2, 1, &[]),
        attack(
            "100,000 locations in one entry",
            entry(&"<loc>x</loc>".repeat(100_000)),
            1,
            10_000,
            &[
                "more than 50000 entries, after 50,000 entries",
                "49999 entries are no URLs, of which 10000 became dead letters",
            ],
        ),
        attack(
            "100,000 empty entries",
            around(&"<url/>".repeat(100_000)),
            1,
            10_000,
            &[
                "more than 50000 entries, after 50,000 entries",
                "49999 entries are no URLs, of which 10000 became dead letters",
            ],
        ),
        attack(
            "XML that says UTF-16 and is not",
            around("").replacen("<urlset>", "<?xml version='1.0' encoding='UTF-16'?><urlset>", 1),
            2,
            0,
            &[],
        ),
        attack("XML in UTF-16 without a byte order mark or declaration", utf16(&around("")), 2, 0, &[]),
        attack("XML in UTF-7", "<?xml version='1.0' encoding='UTF-7'?>+ADw-urlset+AD4-", 0, 0, &["no root"]),
        attack("invalid UTF-8 in a location", replaced(&loc("http://a.example/?")), 2, 1, &[]),
        attack("NUL bytes in a location, which are encoded", loc("http://a.example/\0\0"), 3, 0, &[]),
        attack("NUL bytes between the entries", around(&"\0".repeat(1 << 20)), 2, 0, &[]),
        attack(
            "HTML",
            "<!doctype html><html><title>Not found</title></html>",
            0,
            0,
            &["is a web page, not a list of pages"],
        ),
        attack(
            "two million empty elements, beyond the size allowed",
            around(&"<a/>".repeat(2_000_000)),
            1,
            0,
            &["more than 4194304 bytes, after 1 entry"],
        ),
        attack(
            "an escape sequence in the name of the root",
            "<\u{1b}]0;pwned\u{7}>",
            0,
            0,
            &["root element"],
        ),
    ]
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Replaces the question marks in `text` with a byte that is invalid in UTF-8.
fn replaced(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte == b'?' { 0xff } else { byte }).collect()
}

#[tokio::test]
async fn xml_neither_expands_nor_grows() {
    assert!(attacks().len() > 20 && MAX_BYTES > 3 << 20);
    try_all(settings(), attacks()).await;
}
