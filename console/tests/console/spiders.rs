//! Spiders: deployed, checked, tried, removed.

use reqwest::Method;

use crate::fixture::{Fixture, OPERATOR, Person, Shown, VIEWER};

const DEPLOY: &str = "/spiders/deploy";
const TEXT: &str = "[arguments]\ncategory = { help = 'as in its URLs' }\npage = '1'\n\
                    [start]\nurls = ['http://a.example/{arg.category}/{arg.page}']\n\
                    [follow]\n[fields]\nname = 'h1::text'\n";

async fn deploy(person: &Person<'_>, version: &str, text: &str) -> Shown {
    let fields = [("project", "shop"), ("version", version), ("spider", "books"), ("text", text)];
    person.upload(DEPLOY, DEPLOY, &fields, None).await
}

#[tokio::test]
async fn a_spider_is_deployed_shown_with_what_it_does_and_removed_after_a_question() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    assert!(anna.get("/spiders").await.has("No spider is known here"));
    for version in ["r1", "r2"] {
        assert_eq!(deploy(&anna, version, TEXT).await.location(), "/projects/shop");
    }
    let shown = anna.get("/spiders").await;
    assert!(shown.has("href=\"/spiders/shop/books\"") && shown.has(">r2<"), "{}", shown.text);
    let shown = anna.get("/spiders/shop/books").await;
    for text in [
        "no mistakes",
        "latest version r2",
        "category (as in its URLs), which must be given",
        "robots.txt as it speaks to",
        "[follow]",
    ] {
        assert!(shown.has(text), "{text}: {}", shown.text);
    }
    assert!(anna.get("/spiders/shop/books?version=r1").await.has("version r1"));
    assert!(anna.get("/spiders/deploy?project=shop&spider=books").await.has("as in its URLs"));
    let (project, remove) = ("/projects/shop", "/projects/shop/remove");
    assert!(anna.get(project).await.has("r1"));
    let question = anna.get(&format!("{remove}?version=r2")).await;
    assert!(question.has("Remove version r2 of project shop?"), "{}", question.text);
    assert!(question.has("The latest is version r1 then."), "{}", question.text);
    assert!(anna.get(project).await.has(">r2 "), "a question does nothing");
    assert_eq!(anna.submit(&format!("{remove}?version=r2"), remove, &[]).await.location(), project);
    assert!(anna.get("/spiders").await.has(">r1<"));
    assert_eq!(anna.submit(remove, remove, &[]).await.location(), "/spiders");
    assert!(anna.get("/spiders").await.has("No spider is known here"));
}

#[tokio::test]
async fn a_mistake_is_said_with_its_place_and_nothing_is_deployed_or_lost() {
    let console = Fixture::open().await;
    let person = console.nobody();
    let shown = deploy(&person, "r1", "max_pages = 0\n").await;
    assert_eq!(shown.status, 400);
    assert!(shown.has("Line 1, column 13") && shown.has("max_pages = 0</textarea>"), "{}", shown.text);
    let fields = [("spider", "books"), ("text", TEXT), ("do", "check")];
    let shown = person.upload(DEPLOY, DEPLOY, &fields, None).await;
    assert!(shown.status == 200 && shown.has("No mistakes"), "{}", shown.text);
    for (fields, says) in [
        (vec![], "choose a file"),
        (vec![("text", TEXT)], "spider: say"),
        (vec![("text", TEXT), ("spider", "No Spider")], "No Spider"),
        (vec![("text", TEXT), ("spider", "books"), ("version", "a b")], "a b"),
        (vec![("text", TEXT), ("spider", "books"), ("project", "../etc")], "../etc"),
    ] {
        let shown = person.upload(DEPLOY, DEPLOY, &fields, None).await;
        assert!(matches!(shown.status, 400 | 404) && shown.has("role=\"alert\""), "{says}: {}", shown.text);
        assert!(shown.has(says), "{says}: {}", shown.text);
    }
    assert!(person.get("/spiders").await.has("No spider is known here"));
}

#[tokio::test]
async fn a_file_is_deployed_by_its_name_and_what_it_would_leave_out_is_asked_about() {
    let console = Fixture::open().await;
    let person = console.nobody();
    let send = async |fields: &[(&str, &str)], name: &str, bytes: &[u8]| {
        person.upload(DEPLOY, DEPLOY, fields, Some((name, bytes))).await
    };
    let both = crate::hostile::tar(&[("books.toml", TEXT), ("hats.toml", TEXT)]);
    assert_eq!(send(&[], "both.tar", &both).await.location(), "/projects/default");
    let shown = send(&[], "books.toml", TEXT.as_bytes()).await;
    assert!(shown.status == 409 && shown.has("has other spiders: hats."), "{}", shown.text);
    assert!(person.get("/spiders").await.has("hats"));
    let shown = send(&[("alone", "yes")], "books.toml", TEXT.as_bytes()).await;
    assert_eq!(shown.location(), "/projects/default");
    assert!(!person.get("/spiders").await.has("hats"));
}

#[tokio::test]
async fn a_spider_is_tried_on_a_page_and_what_the_page_says_is_text() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person, "r1", TEXT).await;
    let (spider, path) = ("/spiders/shop/books", "/spiders/shop/books/try#trial");
    let fields = [("url", "http://a.example/hat"), ("arg.category", "hats")];
    let shown = person.submit(spider, path, &fields).await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    for text in ["allows it", "status 200", "alert(1)", "http://a.example/next?", ">yes<", "value=\"hats\""] {
        assert!(shown.has(text), "{text}: {}", shown.text);
    }
    assert!(!shown.has("<script>alert") && !shown.has("<img"), "{}", shown.text);
    let shown = person.submit(spider, path, &[("url", "no url"), ("arg.category", "\"><b>x")]).await;
    assert!(shown.status == 400 && shown.has("role=\"alert\"") && !shown.has("<b>x"), "{}", shown.text);
    let shown = person.submit(spider, path, &[("url", "http://a.example/")]).await;
    assert!(shown.has("Nothing was asked for") && shown.has("has no default"), "{}", shown.text);
}

#[tokio::test]
async fn a_new_crawl_has_a_field_for_each_argument_of_its_spider() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person, "r1", TEXT).await;
    let form = "/crawls/new?spider=books&project=shop";
    let shown = person.get(form).await;
    assert!(
        shown.has("name=\"arg.category\" value=\"\" required") && shown.has("as in its URLs"),
        "{}",
        shown.text
    );
    assert!(shown.has("name=\"arg.page\" value=\"\" placeholder=\"1\""), "{}", shown.text);
    assert!(person.get("/crawls/new").await.has("<option value=\"books\">"));
    let fields = [
        ("spider", "books"),
        ("project", "shop"),
        ("arguments", "category=hats\nx=1"),
        ("show", "arguments"),
    ];
    let shown = person.submit("/crawls/new", "/crawls/new", &fields).await;
    assert!(
        shown.has("name=\"arg.category\" value=\"hats\"") && shown.has(">x=1</textarea>"),
        "{}",
        shown.text
    );
    let fields = [("spider", "books"), ("project", "shop"), ("arg.category", "hats"), ("arg.page", "")];
    let shown = person.submit(form, "/crawls/new", &fields).await;
    let shown = person.get(shown.location()).await;
    assert!(shown.has("<dt>category</dt><dd>hats</dd>") && !shown.has("<dt>page</dt>"), "{}", shown.text);
}

#[tokio::test]
async fn a_viewer_reads_a_spider_and_what_is_wrong_in_it_and_deploys_nothing() {
    let console = Fixture::embedded().await;
    deploy(&console.log_in(OPERATOR).await, "r1", TEXT).await;
    let viewer = console.log_in(VIEWER).await;
    let shown = viewer.get("/spiders/shop/books").await;
    assert!(
        shown.has("no mistakes")
            && shown.has("category (as in its URLs), which must be given")
            && !shown.has("<form class=\"row\""),
        "{}",
        shown.text
    );
    let fields = [("project", "shop"), ("version", "r2"), ("spider", "books"), ("text", TEXT)];
    assert_eq!(viewer.upload_unproved(DEPLOY, &fields, None).await.status, 403);
    assert_eq!(viewer.post_unproved("/projects/shop/remove", &[]).await.status, 403);
    let csrf = viewer.get("/crawls").await;
    assert!(!csrf.has("/spiders/deploy"));
    assert!(!viewer.get("/spiders").await.has(DEPLOY));
}

#[tokio::test]
async fn a_version_is_taken_away_after_a_question_that_says_what_remains() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person, "r1", TEXT).await;
    deploy(&person, "r2", TEXT).await;
    let remove = "/projects/shop/remove";
    for (version, says) in [("r1", "It is not the latest."), ("r2", "The latest is version r1 then.")] {
        let shown = person.get(&format!("{remove}?version={version}")).await;
        assert!(shown.has(&format!("<h1>Remove version {version} of project shop?</h1>")), "{}", shown.text);
        assert!(shown.has(says), "{}", shown.text);
    }
    assert!(person.get(remove).await.has("It has 2 versions."));
    let shown = person.get(&format!("{remove}?version=r3")).await;
    assert_eq!(shown.status, 404, "{}", shown.text);
    assert!(shown.has("no version r3"), "{}", shown.text);
    let shown = person.submit(&format!("{remove}?version=r2"), remove, &[]).await;
    assert_eq!(shown.location(), "/projects/shop", "what is left is shown");
    let shown = person.submit(&format!("{remove}?version=r1"), remove, &[]).await;
    assert_eq!(shown.location(), "/spiders", "nothing is left");
}

#[tokio::test]
async fn an_address_fills_in_no_more_of_a_form_than_which_spider_it_is_about() {
    let console = Fixture::open().await;
    let sent = "text=evil&urls=http%3A%2F%2Fevil.example%2F&arguments=a%3Devil&arg.a=evil&version=evil&priority=evil";
    for path in ["/crawls/new", DEPLOY] {
        let shown = console.nobody().get(&format!("{path}?project=shop&{sent}")).await;
        assert!(shown.has("value=\"shop\"") && !shown.has("evil"), "{path}: {}", shown.text);
    }
}

#[tokio::test]
async fn a_file_without_what_its_form_proves_itself_by_is_not_deployed() {
    let console = Fixture::embedded().await;
    let anna = console.log_in(OPERATOR).await;
    let fields = [("spider", "books"), ("text", TEXT)];
    for forged in [&fields[..], &[fields[0], fields[1], ("csrf", "x")]] {
        let shown = anna.upload_unproved(DEPLOY, forged, None).await;
        assert_eq!(shown.status, 403, "{}", shown.text);
    }
    let request = console.request(Method::POST, DEPLOY).header("origin", "http://evil.example");
    assert_eq!(anna.send(request).await.status, 403);
    assert_eq!(console.nobody().upload_unproved(DEPLOY, &fields, None).await.status, 401);
    assert!(anna.get("/spiders").await.has("No spider is known here"));
}

#[tokio::test]
async fn what_turns_the_direction_of_a_file_is_seen_where_it_is_edited() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    let text =
        "[start]\nurls = [\"http://a.example/\u{202e}x\u{200b}\"] # \u{e0041}\n[fields]\nname = 'h1::text'\n";
    let deployed = deploy(&anna, "r1", text).await;
    assert_eq!(deployed.location(), "/projects/shop", "{}", deployed.text);
    let fields = [("spider", "books"), ("text", text), ("do", "check")];
    let edited = anna.get("/spiders/deploy?project=shop&spider=books").await;
    for shown in [edited, anna.upload(DEPLOY, DEPLOY, &fields, None).await] {
        assert!(
            !shown.has("\u{202e}") && !shown.has("\u{200b}") && !shown.has("\u{e0041}"),
            "{}",
            shown.text
        );
        assert!(
            shown.has("http://a.example/\\u202Ex\\u200B") && shown.has("# \\U000E0041"),
            "{}",
            shown.text
        );
        assert!(shown.has("turn the reading direction"), "{}", shown.text);
    }
}
