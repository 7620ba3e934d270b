//! Sites behind a log-in: one process, no server.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use trawl_testkit::portal_site::{PAGES, PASSWORD, PER_PAGE, PortalLog, PortalSite, USER, check, spider};

use crate::support::workspace::Workspace;

const ENDLESS: Duration = Duration::from_secs(3600);

/// Returns a folder with the spider `portal`.
fn portal(spider: &str) -> Workspace {
    const ACCOUNT: [(&str, &str); 2] = [("PORTAL_USER", USER), ("PORTAL_PASSWORD", PASSWORD)];
    Workspace::new("portal.toml", spider, &ACCOUNT, &["--concurrency=8"])
}

/// Checks that each page was shown once, and that nobody logged in without need.
fn checked(log: &PortalLog) {
    let pages = log.shown.iter().filter(|(page, _)| *page != "/account");
    let shown: Vec<usize> = pages.map(|(_, count)| *count).collect();
    assert_eq!((shown.len(), shown.iter().max()), (PAGES * (PER_PAGE + 1), Some(&1)), "{log:?}");
    assert_eq!((log.needless, log.refused, log.forgetful), (0, 0, 0), "{log:?}");
}

#[tokio::test]
async fn a_crawl_logs_in_once_and_again_after_each_lapse_and_has_each_page_once() {
    let site = PortalSite::serve(50, ENDLESS).await;
    let folder = portal(&spider(&site.origin));
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&crawl.items);
    let log = site.log();
    checked(&log);
    // 220 pages and that of each log-in, 50 in a session.
    assert_eq!((log.logins, log.forms), (5, 5), "{log:?}");
    assert_eq!((&crawl.stats["done"], &crawl.stats["failed"]), (&json!(220), &json!(0)));
    assert!(!crawl.log.contains("horse"), "{}", crawl.log);
}

#[tokio::test]
async fn a_session_that_lapses_while_pages_are_under_way_is_renewed_once() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    let folder = portal(&spider(&site.origin));
    site.gate.hold_after(100);
    let (crawl, ()) = tokio::join!(folder.crawl(), async {
        site.gate.asked_for(101).await;
        site.end_session();
        site.gate.answer_all();
    });
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&crawl.items);
    checked(&site.log());
    assert_eq!(site.log().logins, 2, "{:?}", site.log());
}

#[tokio::test]
async fn a_killed_crawl_goes_on_in_the_session_that_it_had() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    let folder = portal(&spider(&site.origin));
    site.gate.hold_after(40);
    let mut crawl =
        folder.crawling("portal.toml").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    site.gate.asked_for(41).await;
    crawl.kill().await.unwrap();
    site.gate.answer_all();
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&crawl.items);
    assert_eq!((site.log().logins, site.log().sent_away), (1, 0), "{:?}", site.log());
}

#[tokio::test]
async fn a_log_in_that_keeps_failing_ends_the_crawl_with_the_reason_and_the_same_command_goes_on() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    let folder = portal(&spider(&site.origin));
    site.break_login(true);
    let crawl = folder.crawl().await;
    assert_eq!((crawl.code, &crawl.stats["status"]), (Some(1), &json!("paused")), "{}", crawl.log);
    assert!(crawl.log.contains("step 2 of the log-in: POST") && crawl.log.contains("500"), "{}", crawl.log);
    assert_eq!((site.log().failed, site.log().logins, crawl.items.len()), (3, 0, 0));
    site.break_login(false);
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&crawl.items);
    assert_eq!((site.log().failed, site.log().logins), (3, 1));
}

#[tokio::test]
async fn a_wrong_password_is_tried_three_times_and_shown_nowhere() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    let folder = portal(&spider(&site.origin));
    let output =
        folder.crawling("portal.toml").env("PORTAL_PASSWORD", "batt&ery staple").output().await.unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("step 2 of the log-in: POST"), "{log}");
    assert!(log.contains("still looks as if the session had lapsed"), "{log}");
    assert_eq!((site.log().refused, site.log().logins), (3, 0));
    for file in fs::read_dir(folder.path()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("staple"));
    }
    assert!(!log.contains("staple"), "{log}");
}

#[tokio::test]
async fn log_ins_that_help_nothing_are_given_up_after_a_few() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    site.forget_sessions();
    let text = spider(&site.origin)
        .replace("expect = { selector = \"a.logout\" }", "")
        .replace("lapsed = { url = \"/login\" }", "lapsed = { url = \"/login.next=/order\" }");
    let crawl = portal(&text).crawl().await;
    assert_eq!((crawl.code, site.log().logins), (Some(1), 3), "{} {:?}", crawl.log, site.log());
    assert!(crawl.log.contains("the next page looks as if the session had lapsed"), "{}", crawl.log);
}

#[tokio::test]
async fn a_page_that_shows_the_form_or_a_text_in_its_place_is_a_lapse_too() {
    for sign in ["selector = \"form#login\"", "text = \"(?i)sign in\""] {
        let site = PortalSite::serve(50, ENDLESS).await;
        site.show_form_inline();
        let text =
            spider(&site.origin).replace("lapsed = { url = \"/login\" }", &format!("lapsed = {{ {sign} }}"));
        let crawl = portal(&text).crawl().await;
        assert_eq!(crawl.code, Some(0), "{}", crawl.log);
        check(&crawl.items);
        checked(&site.log());
        assert_eq!(site.log().logins, 5, "{sign} {:?}", site.log());
    }
}

#[tokio::test]
async fn spiders_that_share_a_session_log_in_once() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    for (share, logins) in [("share = 'portal'", 1), ("", 3)] {
        let text = format!("{}\n[session]\n{share}\n", spider(&site.origin));
        let folder = portal(&text);
        fs::write(folder.path().join("other.toml"), &text).unwrap();
        assert_eq!(folder.crawl().await.code, Some(0));
        let other = folder.crawling("other.toml").output().await.unwrap();
        assert_eq!(other.status.code(), Some(0));
        assert_eq!(site.log().logins, logins, "{share}");
    }
}

#[tokio::test]
async fn no_form_sends_secrets_to_another_site() {
    let (site, other) = (PortalSite::serve(9, ENDLESS).await, PortalSite::serve(9, ENDLESS).await);
    let elsewhere = [other.origin.clone(), other.origin.replace("127.0.0.1", "localhost")];
    for origin in elsewhere {
        site.send_form_to(&format!("{origin}/login"));
        let crawl = portal(&spider(&site.origin)).crawl().await;
        assert_eq!(crawl.code, Some(1), "{}", crawl.log);
        assert!(crawl.log.contains("which gets no secrets"), "{}", crawl.log);
        assert_eq!(other.log(), PortalLog::default());
    }
}

#[tokio::test]
async fn a_page_that_no_log_in_opens_fails_and_holds_up_no_other() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    let text = spider(&site.origin)
        .replace("/orders\"]", &format!("/orders\", \"{}/of-another-account\"]", site.origin));
    let folder = portal(&text);
    let crawl = folder.crawl().await;
    assert_eq!((crawl.code, &crawl.stats["failed"]), (Some(3), &json!(1)), "{}", crawl.log);
    check(&crawl.items);
    assert!(site.log().logins <= 3, "{:?}", site.log());
    let listed = folder.run(&["dlq", "list", "--state", "crawl.db"]).await;
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("/of-another-account") && listed.contains("also after log-ins"), "{listed}");
}

#[tokio::test]
async fn without_a_log_in_a_session_keeps_the_cookies_of_pages_and_redirects() {
    let site = PortalSite::serve(0, ENDLESS).await;
    let urls: Vec<String> = (0..30).map(|number| format!("'{}/wall/{number}'", site.origin)).collect();
    let text = format!("start.urls = [{}]\nfields = {{ title = 'h1::text' }}\n", urls.join(", "));
    let without = portal(&text).crawl().await;
    assert_eq!((without.code, without.items.len()), (Some(3), 0), "{}", without.log);
    let before = site.log().strangers;
    let folder = portal(&format!("{text}session = {{}}\n"));
    let crawl = folder.crawl().await;
    assert_eq!((crawl.code, crawl.items.len()), (Some(0), 30), "{}", crawl.log);
    let strangers = site.log().strangers - before;
    assert!((1..=8).contains(&strangers), "{strangers}, of as many as are asked for at once");
    fs::write(folder.path().join("portal.toml"), text.replace("/wall/", "/wall/again/") + "session = {}\n")
        .unwrap();
    let crawl = folder.crawl().await;
    assert_eq!((crawl.code, site.log().strangers - before), (Some(0), strangers), "{}", crawl.log);
}

#[tokio::test]
async fn a_trial_logs_in_and_shows_the_session_without_secrets() {
    let site = PortalSite::serve(usize::MAX, ENDLESS).await;
    let folder = portal(&spider(&site.origin));
    let page = format!("{}/order/7", site.origin);
    let output = folder.run(&["spider", "try", "portal.toml", "--allow-private", "--json", &page]).await;
    let tried: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(tried["items"][0]["fields"]["title"], "Order 7");
    let cookies: Vec<_> = tried["session"]["cookies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!((&tried["session"]["logged_in"], cookies), (&json!(true), vec!["csrf", "sid", "seen"]));
    assert_eq!(tried["session"]["lapsed"], Value::Null);
    let output = folder.run(&["spider", "try", "portal.toml", "--allow-private", &page]).await;
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("logged in") && shown.contains("cookie         sid for 127.0.0.1/"), "{shown}");
    assert!(!shown.contains("s2") && !shown.contains(PASSWORD), "{shown}");
    site.break_login(true);
    let output = folder.run(&["spider", "try", "portal.toml", "--allow-private", &page]).await;
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(log.contains("the log-in failed: step 2 of the log-in: POST") && log.contains("500"), "{log}");
}

#[tokio::test]
async fn a_token_of_a_json_answer_goes_along_and_is_fetched_anew_when_it_has_lapsed() {
    let site = PortalSite::serve(8, ENDLESS).await;
    let text = r#"
        start.urls = ["ORIGIN/api/orders"]
        follow = { next = ["$.next"], links = false }
        session.headers = { Authorization = "Bearer {login.token}" }

        [[items]]
        name = "order"
        each = "$.orders[*]"
        fields = { title = { json = "$" } }

        [login]
        secret = { id = { env = "PORTAL_USER" }, secret = { env = "PORTAL_PASSWORD" } }

        [[login.steps]]
        url = "ORIGIN/token"
        form = { grant_type = "client_credentials", client_id = "{login.id}", client_secret = "{login.secret}" }
        take = { token = "$.access_token", expires_in = "$.expires_in" }
    "#;
    let crawl = portal(&text.replace("ORIGIN", &site.origin)).crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&crawl.items);
    let log = site.log();
    assert_eq!((log.logins, log.needless, log.sent_away), (3, 0, 2), "{log:?}");
}

#[tokio::test]
async fn each_mistake_of_the_sections_has_its_place() {
    for (text, mistakes) in [
        ("[login]", &["login: `steps` are missing"][..]),
        ("[login]\nsteps = []", &["2:9", "1 to 20 steps"]),
        ("[[login.steps]]\nform = 'form'", &["2:8", "begin with its `url`"]),
        ("[[login.steps]]\nurl = '/login'", &["2:7", "a whole URL"]),
        ("[[login.steps]]\nurl = 'https://a.example/'\nfill = {}", &["3:8", "is for `form` alone"]),
        (
            "[[login.steps]]\nurl = 'https://a.example/'\nform = { a = '{login.user}' }",
            &["there is no `user` in `secret`"],
        ),
        (
            "[[login.steps]]\nurl = 'https://a.example/'\nsteps = 1",
            &["3:1", "there is no key `login.steps.steps`"],
        ),
        (
            "[[login.steps]]\nurl = 'https://a.example/'\nexpect = { selector = 'a[' }",
            &["3:23", "is not a selector"],
        ),
        ("[[login.steps]]\nurl = 'https://a.example/'\nexpect = { text = '(' }", &["3:19"]),
        ("[login]\nlapsed = {}\nsteps = [{ url = 'https://a.example/' }]", &["2:10", "says of no answer"]),
        (
            "[login]\nlapsed.selector = 'a['\nsteps = [{ url = 'https://a.example/' }]",
            &["2:19", "is not a selector"],
        ),
        ("[session]\nshare = 'A b'", &["2:9", "is a name"]),
        ("[session]\ncookies = {}", &["2:1", "there is no key `session.cookies`"]),
        ("[session.headers]\nCookie = 'a'", &["2:1", "use `request.cookies`"]),
        ("[session.headers]\nX-A = 'a {login.b}'", &["add [login]"]),
    ] {
        let found = portal(&format!("{text}\n")).mistakes().await;
        for mistake in mistakes {
            assert!(found.contains(mistake), "{text}: {mistake}: {found}");
        }
    }
}
