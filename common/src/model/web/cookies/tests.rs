use std::time::Duration;

use super::*;
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

const NOW: UnixMs = UnixMs(1_700_000_000_000);

fn url(text: &str) -> CanonicalUrl {
    text.parse().unwrap()
}

/// Returns a jar with the cookies that this URL sets.
fn jar(from: &str, fields: &[&str]) -> CookieJar {
    let mut jar = CookieJar::default();
    set(&mut jar, from, fields);
    jar
}

fn set(jar: &mut CookieJar, from: &str, fields: &[&str]) {
    for field in fields {
        if let Some(cookie) = SetCookie::parse(&url(from), field, NOW) {
            jar.set(cookie, NOW);
        }
    }
}

fn sent(jar: &CookieJar, to: &str) -> String {
    jar.field(&url(to), NOW).unwrap_or_default()
}

#[test]
fn a_cookie_goes_where_its_attributes_say() {
    for (from, field, to, expected) in [
        ("https://a.example/x/y", "s=1", "https://a.example/x/z", "s=1"),
        ("https://a.example/x/y", "s=1", "https://a.example/other", ""),
        ("https://a.example/x/y", "s=1; Path=/", "https://a.example/other", "s=1"),
        ("https://a.example/x/y", "s=1; Path=no", "https://a.example/x/", "s=1"),
        ("https://a.example/", "s=1", "https://b.a.example/", ""),
        ("https://a.example/", "s=1; Domain=A.Example", "https://b.a.example/", "s=1"),
        ("https://a.example/", "s=1; Domain=.a.example", "https://a.example/", "s=1"),
        ("https://a.example/", "s=1; domain=a.example; domain=", "https://b.a.example/", ""),
        ("https://a.example/", "s=1; Path=/p", "https://a.example/pp", ""),
        ("https://a.example/", "s=1; Path=/p", "https://a.example/p/q", "s=1"),
        ("https://a.example/", "s=1; Secure", "http://a.example/", ""),
        ("http://a.example/", "s=1; Secure", "https://a.example/", ""),
        ("http://a.example/", "s=1", "https://a.example/", "s=1"),
        ("http://127.0.0.1:8080/", "s=1", "http://127.0.0.1:9090/", "s=1"),
        ("https://a.example/", " s \t= \"a b\" ;HttpOnly", "https://a.example/", "s=\"a b\""),
        ("https://a.example/", "alone", "https://a.example/", "alone"),
        ("https://a.example/", "=v", "https://a.example/", "v"),
        ("https://a.example/", "a=b=c", "https://a.example/", "a=b=c"),
    ] {
        assert_eq!(sent(&jar(from, &[field]), to), expected, "{from} {field} {to}");
    }
}

#[test]
fn no_host_sets_cookies_for_others() {
    for (from, field) in [
        ("https://a.example/", "s=1; Domain=b.example"),
        ("https://a.example/", "s=1; Domain=x.a.example"),
        ("https://a.example/", "s=1; Domain=example"),
        ("https://a.co.uk/", "s=1; Domain=co.uk"),
        ("https://me.github.io/", "s=1; Domain=github.io"),
        ("https://nota.example/", "s=1; Domain=a.example"),
        ("http://127.0.0.1/", "s=1; Domain=0.0.1"),
        ("http://127.0.0.1/", "s=1; Domain=127.0.0.2"),
        ("http://[::1]/", "s=1; Domain=::1"),
        ("https://a.example/", "s=1; Domain=%"),
    ] {
        assert_eq!(jar(from, &[field]).cookies(), [], "{from} {field}");
    }
    let own = jar("https://github.io/", &["s=1; Domain=github.io"]);
    assert_eq!((&*sent(&own, "https://github.io/"), &*sent(&own, "https://me.github.io/")), ("s=1", ""));
}

#[test]
fn a_prefix_promises_what_a_cookie_is() {
    for (field, is_kept) in [
        ("__Host-a=1; Secure; Path=/", true),
        ("__host-a=1; Secure", false),
        ("__Host-a=1; Secure; Path=/; Domain=a.example", false),
        ("__Secure-a=1; Secure", true),
        ("__Secure-a=1", false),
        ("=__Host-a=1", false),
    ] {
        assert_eq!(jar("https://a.example/x/y", &[field]).cookies().len(), usize::from(is_kept), "{field}");
    }
}

#[test]
fn longer_paths_and_older_cookies_come_first_and_a_new_value_keeps_its_place() {
    let mut jar = jar("https://a.example/x/", &["a=1; Path=/", "b=2; Path=/x", "c=3; Path=/"]);
    let later = NOW.plus(Duration::from_secs(1));
    let again = SetCookie::parse(&url("https://a.example/"), "a=9; Path=/", later).unwrap();
    assert!(jar.set(again.clone(), later) && !jar.set(again, later));
    assert_eq!(sent(&jar, "https://a.example/x/y"), "b=2; a=9; c=3");
}

#[test]
fn a_cookie_lives_as_long_as_its_server_says_and_no_longer_than_400_days() {
    let later = |seconds: u64| NOW.plus(Duration::from_secs(seconds));
    let most = Some(later(400 * 24 * 3600));
    for (attributes, expires) in [
        ("", None),
        ("Max-Age=60", Some(later(60))),
        ("Max-Age=99999999999999999999", most),
        ("Max-Age=60; Expires=Wed, 21 Oct 2099 07:28:00 GMT", Some(later(60))),
        ("Expires=Wed, 21 Oct 2099 07:28:00 GMT", most),
        ("Expires=Wed, 15-Nov-23 00:00:00 GMT", Some(UnixMs(1_700_006_400_000))),
        ("Expires=15 Nov 2023 00:00:00", Some(UnixMs(1_700_006_400_000))),
        ("Expires=Wed Nov 15 00:00:00 2023", Some(UnixMs(1_700_006_400_000))),
        ("Expires=never; Max-Age=x", None),
        ("Expires=Wed, 31 Feb 2024 00:00:00 GMT", None),
    ] {
        let jar = jar("https://a.example/", &[&format!("a=1; {attributes}")]);
        assert_eq!(jar.cookies()[0].expires, expires, "{attributes}");
        if let Some(expires) = expires {
            assert_eq!(jar.field(&url("https://a.example/"), expires), None);
        }
    }
    for gone in ["Max-Age=0", "Max-Age=-1", "Expires=Thu, 01 Jan 1970 00:00:00 GMT"] {
        let mut jar = jar("https://a.example/", &["a=1"]);
        set(&mut jar, "https://a.example/", &[&format!("a=; {gone}")]);
        assert_eq!(jar.cookies(), [], "{gone}");
    }
}

#[test]
fn an_expiry_that_moves_a_little_changes_nothing_and_one_that_moves_on_does() {
    let mut jar = jar("https://a.example/", &["a=1; Max-Age=1000"]);
    for (age, is_changed) in [(1001, false), (1100, false), (1200, true), (1100, true)] {
        let set = SetCookie::parse(&url("https://a.example/"), &format!("a=1; Max-Age={age}"), NOW).unwrap();
        assert_eq!(jar.set(set, NOW), is_changed, "{age}");
    }
}

#[test]
fn without_tls_no_cookie_of_tls_is_replaced() {
    let mut jar = jar("https://a.example/", &["s=1; Secure; Path=/"]);
    set(&mut jar, "http://a.example/", &["s=2; Path=/", "s=3; Path=/x", "s=; Max-Age=0"]);
    assert_eq!(sent(&jar, "https://a.example/x"), "s=1");
}

#[test]
fn a_hostile_site_fills_no_jar() {
    let long = "x".repeat(1 << 20);
    let refused = [&*format!("a={long}"), &*format!("{long}=1"), "a=\u{1}", "a=\u{7f}", "", ";", "="];
    assert_eq!(jar("https://a.example/", &refused).cookies(), []);
    let ignored = jar("https://a.example/", &[&format!("a=1; Path=/{long}; Domain={long}")]);
    assert_eq!(
        (sent(&ignored, "https://a.example/"), ignored.cookies()[0].host_only),
        ("a=1".to_owned(), true)
    );
    let mut jar = jar("https://mine.example/", &["mine=1"]);
    let value = "x".repeat(4000);
    for number in 0..5_000 {
        let site = number % 7;
        set(
            &mut jar,
            &format!("https://h{number}.s{site}.example/"),
            &[&format!("c{number}={value}; Domain=s{site}.example")],
        );
    }
    let bytes = serde_json::to_string(&jar).unwrap().len();
    assert!(bytes < 300_000, "{bytes}");
    let mut small = CookieJar::default();
    for number in 0..5_000 {
        set(&mut small, "https://a.example/", &[&format!("c{number}=1")]);
    }
    assert_eq!(small.cookies().len(), 150);
    assert!(sent(&jar, "https://s3.example/").len() <= 16 * 1024);
}

#[test]
fn a_jar_is_read_as_it_was_stored_and_shows_no_values() {
    let jar = jar("https://a.example/", &["a=geheim; Secure; Max-Age=60", "b=1; Domain=a.example; Path=/x"]);
    let stored = serde_json::to_string(&jar).unwrap();
    assert_eq!(serde_json::from_str::<CookieJar>(&stored).unwrap(), jar);
    assert!(!format!("{jar:?}").contains("geheim"));
}
