//! The cases of RFC 9309, and those that Google publishes with its parser, where they say something of a file's
//! meaning. Where the two differ, the RFC's.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn url(path: &str) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("https://www.example.com{path}")).unwrap()
}

/// Checks which paths files allow `trawl`: each after `+` is allowed, each after `-` is not.
fn check(cases: &[(&str, &str)]) {
    for (file, paths) in cases {
        check_for("trawl", file.as_bytes(), paths);
    }
}

fn parse(file: &[u8], crawler: &str) -> Robots {
    Robots::parse(file, &crawler.parse().unwrap())
}

fn check_for(agent: &str, file: &[u8], paths: &str) {
    let robots = parse(file, agent);
    for path in paths.split_whitespace() {
        let (expected, path) = path.split_at(1);
        let shown = String::from_utf8_lossy(&file[..file.len().min(200)]);
        assert_eq!(robots.allows(&url(path)), expected == "+", "{agent} at {path} by {shown:?}");
    }
}

/// The rules of a group that names the crawler.
fn check_rules(cases: &[(&str, &str)]) {
    for (rules, paths) in cases {
        check_for("trawl", format!("user-agent: trawl\n{rules}").as_bytes(), paths);
    }
}

#[test]
fn lines_are_a_key_a_colon_and_a_value() {
    check(&[
        ("", "+/ +/x"),
        ("user-agent: trawl\ndisallow: /\n", "-/ -/x/y"),
        ("user-agent:trawl\ndisallow:/\n", "-/"),
        (" \tuser-agent \t: \ttrawl \t\n\t disallow :\t / \t\n", "-/x"),
        ("USER-AGENT: trawl\nALLOW: /x/\nDISALLOW: /\n", "+/x/y -/a"),
        ("uSeR-aGeNt: trawl\nAlLoW: /x/\ndIsAlLoW: /\n", "+/x/y -/a"),
        ("foo: trawl\nbar: /\n", "+/x"),
        ("user-agent: trawl\ndisallow: /", "-/x"),
        ("user-agent: trawl # that's us\ndisallow: /x#y\n#disallow: /z\n # disallow: /z", "-/x -/xy +/z"),
        ("user-agent: trawl\nnonsense\n:\n:/x\n: : :\n\0\ndisallow: /x", "-/x +/y"),
    ]);
}

#[test]
fn lines_end_as_on_any_system() {
    let lines = ["user-agent: trawl", "disallow: /", "user-agent: other", "", "", "allow: /x"];
    for end in ["\n", "\r\n", "\r", "\n\r"] {
        let file = lines.join(end);
        check_for("trawl", file.as_bytes(), "-/x -/");
        check_for("other", file.as_bytes(), "+/x +/");
    }
    check(&[("user-agent: trawl\r\ndisallow: /x\ruser-agent: other\n\r\n\ndisallow: /y\r\n", "-/x +/y")]);
}

#[test]
fn a_colon_may_be_forgotten_and_a_key_misspelt() {
    check(&[
        ("user-agent trawl\ndisallow /\n", "-/x"),
        ("user-agent\ttrawl\ndisallow \t /x\n", "-/x +/y"),
        ("user-agent: trawl\ndisallow /x and /y\n", "+/x +/y"),
        ("user-agent: trawl\ndisallow\n", "+/x"),
        ("useragent: trawl\ndisallow: /", "-/x"),
        ("user agent: trawl\ndisallow: /", "-/x"),
        ("user-agents: trawl\ndisallow: /", "+/x"),
    ]);
    for key in ["dissallow", "dissalow", "disalow", "diasllow", "disallaw", "Dissallow"] {
        check_for("trawl", format!("user-agent: trawl\n{key}: /x").as_bytes(), "-/x +/y");
    }
}

#[test]
fn a_group_ends_where_the_next_one_is_named() {
    let file = b"allow: /before/\n\nuser-agent: a\ndisallow: /\nallow: /x/\nuser-agent: b\ndisallow: /\nallow: /y/\n\n\n\
        allow: /w/\nuser-agent: c\n\nuser-agent: A\nallow: /z/\ndisallow: /\n";
    check_for("a", file, "+/x/b +/z/d -/y/c -/w/a -/before/");
    check_for("b", file, "+/y/c +/w/a -/z/d -/x/b -/before/");
    check_for("c", file, "+/z/d -/x/b -/y/c -/before/");
    check_for("d", file, "+/x/b +/before/ +/");
}

#[test]
fn agents_before_the_first_rule_share_a_group() {
    let file = b"user-agent: a\nuser-agent: b\n\n\nuser-agent: c # and so on\ndisallow: /x\nuser-agent: d\ndisallow: /y";
    for agent in ["a", "b", "c"] {
        check_for(agent, file, "-/x +/y");
    }
    check_for("d", file, "+/x -/y");
}

#[test]
fn other_records_neither_end_a_group_nor_start_one() {
    for record in [
        "sitemap: https://www.example.com/s.xml",
        "unknown: /x",
        "clean-param: a /b",
        "host: example.com",
        "nonsense",
    ] {
        let file =
            format!("user-agent: a\n{record}\nuser-agent: b\n{record}\ndisallow: /x\n{record}\ndisallow: /y");
        check_for("a", file.as_bytes(), "-/x -/y +/z");
        check_for("b", file.as_bytes(), "-/x -/y +/z");
        check_for("c", file.as_bytes(), "+/x +/y");
    }
}

#[test]
fn an_empty_rule_forbids_nothing_and_still_ends_the_list_of_agents() {
    check(&[
        ("user-agent: trawl\ndisallow:\n", "+/ +/x"),
        ("user-agent: trawl\ndisallow:\nallow:\n", "+/x"),
        ("user-agent: trawl\nallow:\ndisallow: /x\n", "-/x +/y"),
        ("user-agent: trawl\ndisallow:\nuser-agent: *\ndisallow: /\n", "+/x"),
        ("user-agent: *\ndisallow: /\n\nuser-agent: trawl\n", "+/x"),
    ]);
}

#[test]
fn all_groups_of_one_agent_are_one() {
    check(&[
        (
            "user-agent: trawl\ndisallow: /x\nuser-agent: b\ndisallow: /y\nuser-agent: TRAWL\ndisallow: /z",
            "-/x +/y -/z",
        ),
        (
            "user-agent: *\ndisallow: /x\nuser-agent: b\ndisallow: /y\nuser-agent: *\ndisallow: /z",
            "-/x +/y -/z",
        ),
        ("user-agent: trawl\nuser-agent: *\ndisallow: /x\nuser-agent: *\ndisallow: /y", "-/x +/y"),
        // The example in section 5.1 of the RFC.
        (
            "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
             User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
             User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\nUser-Agent: quxbot\n",
            "-/a.gif +/a.gifs -/example/x +/publications/x +/ -/publications.gif",
        ),
    ]);
}

#[test]
fn everyones_rules_are_for_those_who_have_none_of_their_own() {
    check(&[
        ("user-agent: *\ndisallow: /\nuser-agent: trawl\nallow: /\n", "+/x"),
        ("user-agent: *\nallow: /\nuser-agent: trawl\ndisallow: /\n", "-/x"),
        ("user-agent: other\ndisallow: /\nuser-agent: *\ndisallow: /x\n", "-/x +/y"),
        ("user-agent: other\ndisallow: /\n", "+/x"),
        ("user-agent: *\ndisallow: /x/\nuser-agent: trawl\ndisallow: /y/\n", "+/x/page -/y/page"),
        ("user-agent: * and others\ndisallow: /x\n", "-/x +/y"),
        ("user-agent: *bot\ndisallow: /x\n", "+/x"),
        ("user-agent:\ndisallow: /x\n", "+/x"),
    ]);
}

#[test]
fn an_agent_is_known_by_its_product_token_alone() {
    for agent in
        ["trawl", "TRAWL", "Trawl/1.0", "trawl bot", "trawl*", "trawl;x", "trawl/1.0 (+https://a.example)"]
    {
        check_for("trawl", format!("user-agent: {agent}\ndisallow: /").as_bytes(), "-/x");
    }
    for agent in ["trawler", "traw", "trawl-images", "trawl_bot", "a trawl", "/trawl", "\u{30c4}", "007"] {
        check_for("trawl", format!("user-agent: {agent}\ndisallow: /").as_bytes(), "+/x");
    }
    check_for("Trawl-Images_x", b"user-agent: trawl-images_X\ndisallow: /", "-/x");
}

#[test]
fn a_name_with_digits_or_dots_is_obeyed() {
    for (crawler, line) in [
        ("MJ12bot", "MJ12bot"),
        ("mj12bot", "MJ12bot/v1.4.8"),
        ("archive.org_bot", "archive.org_bot"),
        ("mybot2", "MyBot2 (the new one)"),
        ("360Spider", "360Spider"),
        ("trawl", "trawl2"),
    ] {
        check_for(
            crawler,
            format!("user-agent: *\nallow: /\nuser-agent: {line}\ndisallow: /").as_bytes(),
            "-/x",
        );
    }
    for (crawler, line) in
        [("MJ12bot", "MJ"), ("mybot2", "mybot"), ("mybot2", "mybot3"), ("archive.org_bot", "archive.org")]
    {
        check_for(crawler, format!("user-agent: {line}\ndisallow: /").as_bytes(), "+/x");
    }
}

#[test]
fn a_line_may_list_crawlers_or_repeat_a_whole_user_agent() {
    for line in [
        "otherbot, shopbot",
        "shopbot,otherbot",
        "Mozilla/5.0 (compatible; shopbot/1.0)",
        "Mozilla/5.0 (compatible; Shopbot/2.1; +https://shop.example/bot)",
    ] {
        check_for("shopbot", format!("user-agent: {line}\ndisallow: /").as_bytes(), "-/x");
    }
    for line in [
        "otherbot (not shopbot)",
        "otherbot/1.0 (compatible; shopbot/1.0)",
        "Mozilla/5.0 (compatible; otherbot/1.0)",
    ] {
        check_for("shopbot", format!("user-agent: {line}\ndisallow: /").as_bytes(), "+/x");
    }
}

#[test]
fn the_longest_match_wins_and_allow_wins_a_tie() {
    check_rules(&[
        ("disallow: /x/page.html\nallow: /x/", "-/x/page.html +/x/"),
        ("allow: /x/page.html\ndisallow: /x/", "+/x/page.html -/x/"),
        ("disallow: /\nallow: /", "+/x"),
        ("disallow: /x\nallow: /x/", "-/x +/x/ +/y"),
        ("disallow: /x/page.html\nallow: /x/page.html", "+/x/page.html"),
        ("allow: /page\ndisallow: /*.html", "-/page.html +/page"),
        ("allow: /x/page.\ndisallow: /*.html", "+/x/page.html -/x/y.html"),
        ("allow: /p\ndisallow: /", "+/page -/x"),
        ("allow: /folder\ndisallow: /folder", "+/folder/page"),
        ("allow: /$\ndisallow: /", "+/ -/page.html -/?x"),
        (
            "allow: /example/page/\ndisallow: /example/page/disallowed.gif",
            "-/example/page/disallowed.gif +/example/page/",
        ),
        ("disallow: /a*\nallow: /ab", "+/ab -/ac"),
    ]);
}

#[test]
fn paths_are_case_sensitive() {
    check_rules(&[("disallow: /x/", "-/x/y +/X/y"), ("disallow: /X/", "+/x/y -/X/y")]);
}

#[test]
fn a_pattern_fits_from_the_start_of_the_path() {
    check_rules(&[
        ("disallow: /\nallow: /fish", "+/fish +/fish.html +/fish/salmon.html +/fishheads +/fish.html?id=1"),
        ("disallow: /\nallow: /fish", "-/Fish.asp -/catfish -/?id=fish -/desert/fish -/bar"),
        (
            "disallow: /\nallow: /fish*",
            "+/fish +/fishheads/yummy.html +/fish.html?id=1 -/Fish -/catfish -/?id=fish",
        ),
        (
            "disallow: /\nallow: /fish/",
            "+/fish/ +/fish/?id=1 +/fish/salmon.htm -/fish -/fish.html -/Fish/Salmon",
        ),
        ("disallow: /a?b=c", "-/a?b=c -/a?b=cd +/a?b +/a +/a?x&b=c"),
        ("disallow: /?", "-/?a +/ +/a?b"),
        ("disallow: /a;p=1", "-/a;p=1 +/a"),
        ("disallow: x\ndisallow: https://www.example.com/y", "+/x +/y"),
        ("disallow: //x", "-//x +/x"),
    ]);
}

#[test]
fn a_star_stands_for_anything_and_a_dollar_for_the_end() {
    check_rules(&[
        (
            "disallow: /\nallow: /*.php",
            "+/f.php +/d/f.php?p +/any.php.html +/f.php/ +/index?f=f.php/ -/php -/w.PHP",
        ),
        ("disallow: /\nallow: /*.php$", "+/f.php +/d/f.php -/f.php?p -/f.php/ -/f.php5 -/php/ -/w.PHP"),
        ("disallow: /\nallow: /fish*.php", "+/fish.php +/fishheads/catfish.php?p -/Fish.PHP -/fish.html"),
        ("disallow: /foo/bar/quz\nallow: /foo/*/qux", "-/foo/bar/quz +/foo/quz +/foo//quz +/foo/bax/quz"),
        ("disallow: /foo/bar$\nallow: /foo/bar/qux", "-/foo/bar +/foo/bar/qux +/foo/bar/ +/foo/bar/baz"),
        ("disallow: *.gif$", "-/a.gif +/a.gif?x +/gif"),
        ("disallow: *", "-/ -/x"),
        ("disallow: /**x***y*$", "-/xy -/axbyc +/x +/yx"),
        ("disallow: /*/", "-/a/ -/a/b +/a"),
        ("disallow: /x$y", "-/x$y -/x%24y +/x +/xy"),
        ("disallow: /x$*", "-/x$ -/x$y +/x"),
        ("disallow: /x$$", "-/x$ +/x +/x$y"),
        ("disallow: $", "+/ +/x"),
        ("disallow: /*a$", "-/a -/ba -/aba +/ab"),
        ("disallow: /a*a$", "+/a -/aa -/aba"),
    ]);
}

#[test]
fn stars_and_dollars_of_the_path_itself_are_written_encoded() {
    check_rules(&[
        ("disallow: /path/file-with-a-%2A.html", "-/path/file-with-a-*.html -/path/file-with-a-%2a.html"),
        ("disallow: /path/file-with-a-%2A.html", "+/path/file-with-a-x.html"),
        ("disallow: /path/foo-%24", "-/path/foo-$ -/path/foo-$bar -/path/foo-%24 +/path/foo-"),
    ]);
}

#[test]
fn the_spelling_of_an_octet_does_not_matter() {
    check_rules(&[
        // The table in section 2.2.2 of the RFC.
        ("disallow: /foo/bar?baz=quz", "-/foo/bar?baz=quz"),
        ("disallow: /foo/bar?baz=https://foo.bar", "-/foo/bar?baz=https://foo.bar"),
        (
            "disallow: /foo/bar/\u{30c4}",
            "-/foo/bar/%E3%83%84 -/foo/bar/%e3%83%84 -/foo/bar/\u{30c4} +/foo/bar/",
        ),
        ("disallow: /foo/bar/%E3%83%84", "-/foo/bar/%E3%83%84 -/foo/bar/\u{30c4}"),
        ("disallow: /foo/bar/%e3%83%84", "-/foo/bar/%E3%83%84"),
        ("disallow: /foo/bar/%62%61%7A", "-/foo/bar/baz -/foo/bar/%62%61%7a"),
        ("disallow: /foo/bar/baz", "-/foo/bar/%62%61%7A"),
        // A reserved character has another meaning when it is encoded.
        ("disallow: /a%2Fb", "-/a%2Fb -/a%2fb +/a/b"),
        ("disallow: /a/b", "+/a%2Fb -/a/b"),
        (
            "allow: /x?qux=taz&baz=http://foo.bar?tar&par\ndisallow: /",
            "+/x?qux=taz&baz=http://foo.bar?tar&par",
        ),
        // Characters that a canonical URL encodes.
        ("disallow: /a b", "-/a%20b +/a"),
        ("disallow: /{x}|\"<y>", "-/%7Bx%7D|%22%3Cy%3E"),
        ("disallow: /?q='a'", "-/?q='a' -/?q=%27a%27"),
        ("disallow: /100%", "-/100% -/100%25 -/100%zz"),
        ("disallow: /~joe", "-/%7Ejoe -/~joe"),
    ]);
}

#[test]
fn bytes_that_are_no_text_are_octets_like_others() {
    check_for(
        "trawl",
        b"user-agent: trawl\ndisallow: /\xe4\xff\n\xfe\xff: /\ndisallow: /z",
        "-/%E4%FF +/a -/z",
    );
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_start_only() {
    let file = "user-agent: trawl\ndisallow: /x\nallow: /x/y\n";
    for mark in [&b"\xef\xbb\xbf"[..], b"\xef\xbb", b"\xef"] {
        check_for("trawl", &[mark, file.as_bytes()].concat(), "-/x +/x/y");
    }
    check_for("trawl", &[b"\xef\x11\xbf", file.as_bytes()].concat(), "+/x +/x/y");
    check_for("trawl", file.replace("allow: /x/y", "\u{feff}allow: /x/y").as_bytes(), "-/x -/x/y");
}

#[test]
fn an_index_page_that_is_allowed_allows_its_folder() {
    check_rules(&[
        ("allow: /a/index.html\ndisallow: /", "+/a/ +/a/index.html -/a/index.htm -/a/x -/a -/b"),
        ("disallow: /a/index.html", "-/a/index.html +/a/"),
        ("allow: /a/myindex.html\ndisallow: /", "+/a/myindex.html -/a/my -/a/"),
    ]);
}

#[test]
fn the_file_itself_may_always_be_asked_for() {
    check_rules(&[("disallow: /", "+/robots.txt -/robots.txt?x -/a/robots.txt -/robots.txts")]);
}

#[test]
fn a_line_of_any_length_is_a_line() {
    let long = "a".repeat(7000);
    let file = format!(
        "user-agent: trawl\ndisallow: /{long}\nallow: /{long}b\ndisallow: /{}\n",
        "z".repeat(100_000)
    );
    check_for("trawl", file.as_bytes(), &format!("-/{long} -/{long}x +/{long}b +/{}", "a".repeat(6999)));
    check_for("trawl", format!("#{}\n{file}", "x".repeat(100_000)).as_bytes(), &format!("-/{long}"));
}

#[test]
fn what_exceeds_the_limit_is_ignored_from_the_last_whole_line() {
    let start = "user-agent: trawl\ndisallow: /x\n#";
    let file = |filler: usize| format!("{start}{}\ndisallow: /yyy\ndisallow: /z", "x".repeat(filler));
    let fits = |filler: usize| parse(file(filler).as_bytes(), "trawl");
    let room = MAX_BYTES - start.len() - "\ndisallow: /yyy".len();
    assert!(!fits(room - 1).allows(&url("/yyy")), "a line that ends within the limit is whole");
    assert!(fits(room).allows(&url("/yyy")), "nobody knows whether it would have gone on");
    assert!(fits(room + 1).allows(&url("/yyy")) && fits(room + 1).allows(&url("/y")), "half a rule is none");
    assert!(!fits(room + 1).allows(&url("/x")) && fits(room - 1).allows(&url("/z")));
    assert_eq!(parse(&vec![b'x'; MAX_BYTES * 2], "trawl"), Robots::allow_all());
}

#[test]
fn of_a_file_that_was_cut_off_at_the_limit_the_last_rule_is_not_read_by_half() {
    let whole = format!("user-agent: trawl\ndisallow: /x\n#{}\ndisallow: /private/\n", "x".repeat(MAX_BYTES));
    let end = whole.find("private").unwrap();
    let cut = &whole.as_bytes()[end - MAX_BYTES..end];
    let start = b"user-agent: trawl\ndisallow: /x\n";
    let cut = [start, &cut[start.len()..]].concat();
    assert!(cut.len() == MAX_BYTES && cut.ends_with(b"disallow: /"));
    check_for("trawl", &cut, "+/y -/x");
}

#[test]
fn what_is_made_to_take_long_is_forbidden_and_a_full_file_of_honest_rules_is_not() {
    let file = |count: usize, rule: &dyn Fn(usize) -> String| {
        let rules: String = (0..count).map(|number| format!("disallow: /{}\n", rule(number))).collect();
        assert!((400_000..MAX_BYTES).contains(&rules.len()), "{}", rules.len());
        parse(format!("user-agent: *\n{rules}").as_bytes(), "trawl")
    };
    // No rule matches, but each has to be searched to its end to find that out.
    let hostile = file(40, &|number| "*abab".repeat(2_001 + number));
    assert!(!hostile.allows(&url(&format!("/{}", "ab".repeat(4_000)))));
    let long = url(&format!("/{}", "list/category-x/item.html?page=7&sort=price&".repeat(46)));
    for honest in [
        file(13_000, &|number| format!("*/category-{number}/*?sort=")),
        file(16_000, &|number| format!("*/item-{number}.html")),
        file(18_000, &|number| format!("item-{number}.html")),
        file(22_000, &|number| format!("*?p{number}=")),
    ] {
        assert!(honest.allows(&long));
    }
}

#[test]
fn a_crawl_delay_is_that_of_the_agents_above_it() {
    let delay = |file: &str| parse(file.as_bytes(), "trawl").crawl_delay().map(|delay| delay.as_millis());
    for (file, expected) in [
        ("user-agent: trawl\ncrawl-delay: 5", Some(5000)),
        ("user-agent: trawl\nCrawl-Delay:0.25 # s\ndisallow: /x", Some(250)),
        ("user-agent: trawl\ncrawl-delay 2", Some(2000)),
        ("user-agent: trawl\ndisallow: /x\ncrawl-delay: 3", Some(3000)),
        ("user-agent: trawl\ncrawl-delay: 0", Some(0)),
        ("user-agent: *\ncrawl-delay: 5", Some(5000)),
        ("user-agent: *\ncrawl-delay: 5\nuser-agent: trawl\ndisallow: /x", None),
        ("user-agent: *\ncrawl-delay: 5\ndisallow:\nuser-agent: trawl\ndisallow:", None),
        ("user-agent: *\ncrawl-delay: 5\ndisallow:\nuser-agent: trawl\ncrawl-delay: 1", Some(1000)),
        ("user-agent: other\ncrawl-delay: 120\nuser-agent: *\ndisallow:", None),
        (
            "user-agent: trawl\ncrawl-delay: 1\nuser-agent: x\ndisallow:\nuser-agent: trawl\ncrawl-delay: 2",
            Some(2000),
        ),
        ("user-agent: trawl\ncrawl-delay: 2\ncrawl-delay: 1", Some(2000)),
        ("crawl-delay: 5\nuser-agent: trawl", None),
    ] {
        assert_eq!(delay(file), expected, "{file:?}");
    }
    for nonsense in ["", "-1", "x", "5s", "1,5", "nan", "inf", "1e300", "0x5", "5 6"] {
        assert_eq!(delay(&format!("user-agent: trawl\ncrawl-delay: {nonsense}")), None, "{nonsense}");
    }
}

#[test]
fn only_what_applies_is_kept() {
    let file = format!("user-agent: other\n{}user-agent: *\ndisallow: /y\n", "disallow: /x\n".repeat(1000));
    assert_eq!(parse(file.as_bytes(), "trawl"), parse(b"user-agent: *\ndisallow: /y", "trawl"));
}

/// Lines of a file, near enough to sense to reach everything.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "(user-agent|allow|crawl-delay|sitemap)[: ]{1,2}(trawl|other|\\*|[0-9.]{1,4}|/[ab%*$]{0,6})"
            .prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        file in proptest::collection::vec(any::<u8>(), 0..500), lines in proptest::collection::vec(line(), 0..20)
    ) {
        for file in [file, lines.join(&b'\n')] {
            let robots = parse(&file, "trawl");
            prop_assert!(robots.allows(&url("/robots.txt")));
            let _ = (robots.allows(&url("/a")), robots.crawl_delay());
        }
    }

    #[test]
    fn a_file_that_never_disallows_allows_everything(
        lines in proptest::collection::vec(line(), 0..20), path in "/[ab%*$?]{0,8}"
    ) {
        let file = lines.join(&b'\n');
        // So do all its misspellings start.
        prop_assume!(!file.to_ascii_lowercase().windows(2).any(|pair| pair == b"di"));
        prop_assert!(parse(&file, "trawl").allows(&url(&path)));
    }

    #[test]
    fn the_order_of_rules_does_not_matter(rules in proptest::collection::btree_set("(dis)?allow: /[ab*]{0,3}[$]?", 0..8)) {
        let answers = |rules: Vec<&str>| -> BTreeSet<String> {
            let robots = parse(format!("user-agent: *\n{}", rules.join("\n")).as_bytes(), "trawl");
            ["/", "/a", "/b", "/ab", "/ba", "/aab", "/bab"].iter()
                .filter(|path| robots.allows(&url(path))).map(|path| path.to_string()).collect()
        };
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        prop_assert_eq!(answers(rules.iter().copied().rev().collect()), answers(rules));
    }
}

#[test]
fn short_rules_weigh_what_they_take_and_not_what_their_file_has() {
    let rules: String = (0..10_000).map(|number| format!("Allow:/{number}\n")).collect();
    let robots = parse(format!("User-agent: *\n{rules}").as_bytes(), "trawl");
    assert_eq!(robots.bytes(), rules.len() - "Allow:\n".len() * 10_000 + 10_000 * 12);
    assert_eq!(Robots::allow_all().bytes(), 0);
}
