use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    CanonicalUrl::parse(text).unwrap().to_string()
}

#[test]
fn spellings_of_one_url_become_one() {
    let expected = "https://example.com/a/b?x=1&y=2";
    for text in ["https://example.com/a/b?x=1&y=2", "  HTTPS://EXAMPLE.com:443/a/./c/../b?x=1&y=2#part \n"] {
        assert_eq!(canonical(text), expected);
    }
    assert_eq!(canonical("http://bücher.example/ä"), "http://xn--bcher-kva.example/%C3%A4");
}

#[test]
fn escapes_and_the_final_dot_of_a_host_have_one_spelling() {
    for (text, expected) in [
        ("http://a.example/%7ea", "http://a.example/~a"),
        ("http://a.example./%7Ea", "http://a.example/~a"),
        ("http://a.example.:8080?%6c=%2d", "http://a.example:8080/?l=-"),
        ("http://a.example/a%2fb?c%2fd", "http://a.example/a%2Fb?c%2Fd"),
        ("http://a.example/?%75tm_source=x&y", "http://a.example/?utm_source=x&y"),
        ("http://a.example/a/%2E%2e/b", "http://a.example/b"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://a.example../", "http://a.example../"),
    ] {
        assert_eq!(canonical(text), expected);
    }
    assert_eq!(CanonicalUrl::parse("http://./"), Err(InvalidUrl::NoHost));
}

#[test]
fn what_is_another_resource_keeps_its_spelling() {
    for text in [
        "http://a.example/a%2Fb",
        "http://a.example/a/b",
        "http://a.example/?a=1+2",
        "http://a.example/?a=1%2B2",
        "http://a.example/?a=1%202",
        "http://a.example/?",
        "http://a.example/a/",
        "http://a.example//a",
        "http://a.example/A",
        "http://a.example/;p",
        "http://a.example/%3Bp",
        "http://a.example/%2541",
    ] {
        assert_eq!(canonical(text), text);
    }
}

#[test]
fn a_url_as_it_is_written_is_canonical_but_for_its_escapes() {
    for (text, written, canonical) in [
        ("HTTP://a.example.:80/%7ejoe#x", "http://a.example/%7ejoe", "http://a.example/~joe"),
        ("http://a.example/?sig=a%2fb", "http://a.example/?sig=a%2fb", "http://a.example/?sig=a%2Fb"),
        ("http://a.example/x", "http://a.example/x", "http://a.example/x"),
    ] {
        let url = CanonicalUrl::as_written(text.parse().unwrap()).unwrap();
        assert_eq!((url.as_str(), url.normalised().as_str()), (written, canonical));
    }
    let canonical: CanonicalUrl = "http://a.example/~joe".parse().unwrap();
    let spelling = |text: &str| canonical.spelling(text.parse().unwrap()).map(|url| url.to_string());
    assert_eq!(spelling("http://a.example/%7Ejoe#x").as_deref(), Some("http://a.example/%7Ejoe"));
    assert_eq!([spelling("http://a.example/~joe"), spelling("http://a.example/%7Eann")], [None, None]);
    assert!(CanonicalUrl::as_written("ftp://a.example/".parse().unwrap()).is_err());
}

#[test]
fn a_recorded_url_stays_as_an_older_version_wrote_it() {
    for text in ["http://a.example./%7ea?%2f", "http://a.example/~a"] {
        assert_eq!(CanonicalUrl::recorded(text).unwrap().as_str(), text);
    }
    assert_eq!(CanonicalUrl::recorded("HTTP://a.example/%7ea#x").unwrap().as_str(), "http://a.example/~a");
    for text in ["http://user@a.example/", "ftp://a.example/", "a.example", ""] {
        assert!(CanonicalUrl::recorded(text).is_err(), "{text}");
    }
}

#[test]
fn what_cannot_be_crawled_says_why() {
    let reason = |text: &str| CanonicalUrl::parse(text).unwrap_err().to_string();
    assert_eq!(reason("/relative"), "not an absolute URL: relative URL without a base");
    assert_eq!(reason("javascript:alert(1)"), "scheme `javascript` is not http or https");
    assert_eq!(reason("ftp://example.com/"), "scheme `ftp` is not http or https");
    assert_eq!(reason("http://user:secret@example.com/"), "credentials in the URL");
    assert_eq!(reason(&format!("http://example.com/{}", "x".repeat(9000))), "longer than 8192 bytes");
    assert!(CanonicalUrl::parse("").is_err());
}

#[test]
fn a_host_has_no_port_and_keeps_its_brackets() {
    let host = |text: &str| CanonicalUrl::parse(text).unwrap().host().to_string();
    assert_eq!(host("http://Example.com:8080/x"), "example.com");
    assert_eq!(host("http://[::1]:8080/x"), "[::1]");
    assert_eq!(host("http://127.1/x"), "127.0.0.1");
}

#[test]
fn an_origin_has_a_port_if_it_is_not_the_usual_one() {
    let origin = |text: &str| CanonicalUrl::parse(text).unwrap().origin().to_string();
    assert_eq!(origin("http://Example.com:8080/x/y?z"), "http://example.com:8080");
    assert_eq!(origin("https://[::1]:443?x=/"), "https://[::1]");
    let robots = CanonicalUrl::parse("http://a.example/b").unwrap().origin().robots_txt();
    assert_eq!(robots.as_str(), "http://a.example/robots.txt");
}

#[test]
fn a_domain_holds_its_subdomains_and_no_lookalikes() {
    let host = |text: &str| CanonicalUrl::parse(text).unwrap().host();
    assert!(host("http://www.httpbin.org/").is_within("httpbin.org"));
    assert!(host("http://httpbin.org/").is_within("httpbin.org"));
    assert!(!host("http://nothttpbin.org/").is_within("httpbin.org"));
}

#[test]
fn a_fingerprint_is_the_start_of_sha_256() {
    let fingerprint = Fingerprint::from_text("abc");
    assert_eq!(fingerprint.to_string(), "ba7816bf8f01cfea414140de5dae2223");
    assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    assert_eq!(fingerprint.short(), 0xba78_16bf_8f01_cfea_u64 as i64);
    for nonsense in ["", "ba78", "+a7816bf8f01cfea414140de5dae2223", "xa7816bf8f01cfea414140de5dae2223"] {
        assert_eq!(nonsense.parse::<Fingerprint>(), Err(InvalidFingerprint));
    }
}

/// Decodes a path or a query into its parts, like a server.
fn decoded(text: &str) -> Vec<Vec<u8>> {
    let decode = |part: &str| {
        let (mut out, mut rest) = (Vec::new(), part.as_bytes());
        while let Some(first) = rest.first() {
            let octet = escape::escaped(rest);
            out.push(octet.unwrap_or(*first));
            rest = &rest[if octet.is_some() { 3 } else { 1 }..];
        }
        out
    };
    text.split(['/', '?', '&', '=', ';', '+']).map(decode).collect()
}

proptest! {
    #[test]
    fn the_canonical_form_is_a_fixed_point(path in "([ -~]|%[0-9a-fA-F]{2}){0,40}", query in "([ -~]|%[0-9a-fA-F]{2}){0,40}") {
        for host in ["example.com", "example.com."] {
            if let Ok(once) = CanonicalUrl::parse(&format!("http://{host}/{path}?{query}")) {
                let twice = CanonicalUrl::parse(once.as_str()).unwrap();
                let recorded = CanonicalUrl::recorded(once.as_str()).unwrap();
                let host = once.host();
                prop_assert_eq!(host.as_str(), "example.com");
                prop_assert_eq!(&recorded, &once);
                prop_assert_eq!(once, twice);
            }
        }
    }

    #[test]
    fn a_server_is_asked_for_what_the_text_means(path in "([a-z/.]|%[0-9a-fA-F]{1,2}){0,20}", query in "([a-z&=/+]|%[0-9a-fA-F]{1,2}){0,20}") {
        let url = Url::parse(&format!("http://example.com/{path}?{query}")).unwrap();
        let canonical = CanonicalUrl::from_url(url.clone()).unwrap().to_url();
        prop_assert_eq!(decoded(canonical.path()), decoded(url.path()));
        prop_assert_eq!(decoded(canonical.query().unwrap_or_default()), decoded(url.query().unwrap_or_default()));
    }

    #[test]
    fn what_is_admitted_is_visible_ascii(host in "(.|[a-z]){0,6}", rest in "(?s:.){0,40}") {
        if let Ok(url) = CanonicalUrl::parse(&format!("http://{host}example.com/{rest}")) {
            prop_assert!(url.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "{url:?}");
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = CanonicalUrl::parse(&text);
    }
}
