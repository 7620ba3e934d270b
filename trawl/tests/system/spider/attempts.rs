//! `trawl spider try`.

use serde_json::{Value, json};
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::site::Site;

use super::{Workspace, printed, shown};

#[tokio::test]
async fn try_shows_what_one_page_gives() {
    let site = Site::serve(3).await;
    let workspace = Workspace::new();
    workspace.write("shop.toml", "[fields]\nheading = 'title::text'\nnothing = 'h6::text'\n");
    let page = site.page(1);
    let output = workspace.run(&["spider", "try", "--allow-private", "shop.toml", &page]).await;
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let text = shown(&output);
    assert!(text.starts_with(&format!("200 {page}\n")), "{text}");
    assert!(text.contains("heading        Page 1\n") && text.contains("nothing        -\n"), "{text}");
    let output = workspace.run(&["spider", "try", "--json", "--allow-private", "shop.toml", &page]).await;
    let json: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!((&json["status"], &json["items"][0]["fields"]["heading"]), (&200.into(), &"Page 1".into()));
    let refused = workspace.run(&["spider", "try", "shop.toml", &page]).await;
    assert!(refused.status.code() == Some(1) && printed(&refused).contains("is not a public address"));
}

#[tokio::test]
async fn try_follows_a_redirect_where_a_worker_does_and_nowhere_else() {
    let world = ManyHosts::serve(&[Plan::default(), Plan { pages: 1, ..Plan::default() }]).await.unwrap();
    let workspace = Workspace::new();
    let (from, to) = (world.url(0, "/to/0"), world.url(1, "/page/0"));
    let mut ended = Vec::new();
    let rules = ["", "allowed_domains = ['127.0.0.0']", "[ban]\nredirect = ['/page/']"];
    for rules in rules {
        workspace.write("mine.toml", &format!("{rules}\n[fields]\nheading = 'title::text'\n"));
        let output = workspace.run(&["spider", "try", "--allow-private", "mine.toml", &from]).await;
        ended.push((output.status.code(), printed(&output)));
    }
    assert_eq!(ended[0].0, Some(0), "{}", ended[0].1);
    let elsewhere = format!("redirected to {to}, which is not within the spider's domains");
    assert!(ended[1].0 == Some(1) && ended[1].1.contains(&elsewhere), "{}", ended[1].1);
    assert!(ended[2].0 == Some(1) && ended[2].1.contains("banned"), "{}", ended[2].1);
    assert_eq!(world.log().iter().filter(|arrival| arrival.host == 1).count(), 1);
}

#[tokio::test]
async fn try_reads_a_page_that_was_saved_as_if_it_came_from_its_url() {
    let workspace = Workspace::new();
    workspace
        .write("spiders/shop.toml", "[follow]\n[fields]\nlink = { css = 'a::attr(href)', type = 'url' }\n");
    workspace.write("page.html", "<meta charset=utf-8><a href=x>\u{e4}</a>");
    let words = ["spider", "try", "shop", "page.html", "--url", "https://a.example/dir/", "--json"];
    let output = workspace.run(&words).await;
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let json: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!(json["items"][0]["fields"]["link"], "https://a.example/dir/x");
    assert_eq!(json["links"][0]["url"], "https://a.example/dir/x");
    workspace.write("strict.toml", "allowed_domains = ['a.example']\n[follow]\nexclude = ['/x']\n");
    workspace.write("links.html", "<a href=/y>1</a><a href=/x>2</a><a href=//b.example/>3</a>");
    let words = ["spider", "try", "strict.toml", "links.html", "--url", "https://a.example/", "--links"];
    let listed = shown(&workspace.run(&words).await);
    for line in [
        "  follow https://a.example/y\n",
        "  leave  https://a.example/x (pattern)\n",
        "  leave  https://b.example/ (domain)\n",
    ] {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    workspace.write("api.toml", "[fields]\nname = { json = '/name' }\n");
    workspace.write("page.json", "{\"name\": \"x\"}");
    let output = workspace.run(&["spider", "try", "api.toml", "page.json", "--json"]).await;
    let json: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!(json["items"][0]["fields"]["name"], "x", "{}", printed(&output));
    let none = workspace.run(&["spider", "try", "shop", "none.html"]).await;
    assert!(none.status.code() == Some(2) && printed(&none).contains("none.html: "), "{}", printed(&none));
}

#[tokio::test]
async fn a_shell_answers_selectors_as_they_are_typed() {
    let workspace = Workspace::new();
    let page = "<h1>Tea</h1><p>Black<p>Green<a href=/next>next</a><b>1.50 EUR</b>";
    workspace.write("page.html", page);
    workspace.write("page.json", r#"{"offers": [{"price": 1.5}, {"price": 2}]}"#);
    let words = ["shell", "page.html", "--url", "http://site.example/a", "--json"];
    let lines = "p::text\n//h1\n:links\n{ css = 'b', type = 'number' }\n\nem\n:quit\nnever";
    let answered = workspace.run_with(&words, lines).await;
    assert_eq!(
        shown(&answered),
        "[\"Black\",\"Green\"]\n[\"Tea\"]\n[\"http://site.example/next\"]\n[1.5]\n[]\n",
        "{}",
        printed(&answered)
    );
    assert_eq!(answered.status.code(), Some(0));

    let answered =
        workspace.run_with(&["shell", "page.json"], "/offers/1\n$.offers[*].price\noffers[0].price").await;
    let shown = shown(&answered);
    assert!(shown.contains("{\"price\":2}\n1 value\n1.5\n2\n2 values\n1.5\n1 value\n"), "{shown}");
}

#[tokio::test]
async fn a_shell_says_what_is_wrong_with_a_line_and_goes_on() {
    let workspace = Workspace::new();
    workspace.write("page.html", "<h1>Tea</h1>");
    let lines = "h1[\n{ css = 'h1', type = 'number' }\n:fetch\nh1";
    let answered = workspace.run_with(&["shell", "page.html", "--json"], lines).await;
    assert_eq!(shown(&answered), "[\"Tea\"]\n");
    let said = printed(&answered);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].starts_with("`h1[`") && said[1].contains("`Tea`") && said[2].contains("URL"), "{said:?}");
    assert_eq!(answered.status.code(), Some(1));
}

#[tokio::test]
async fn a_recorded_page_shows_what_a_change_of_the_spider_makes_of_it() {
    let workspace = Workspace::new();
    let site = Site::serve(3).await;
    let page = site.page(1);
    let file = |field: &str| workspace.write("spiders/shop.toml", &format!("[follow]\n[fields]\n{field}\n"));
    file("title = 'title::text'\nteaser = { carried = 'teaser' }");
    let test = async |words: &[&str]| workspace.run(&[&["spider", "test", "shop"], words].concat()).await;
    let none = test(&[]).await;
    assert!(none.status.code() == Some(2) && printed(&none).contains("--record"), "{}", printed(&none));
    let words = ["--record", &page, "--carry", "teaser=new", "--allow-private"];
    let recorded = test(&words).await;
    assert_eq!(recorded.status.code(), Some(0), "{}", printed(&recorded));
    let requests = site.log().len();

    let same = test(&[]).await;
    assert_eq!((same.status.code(), shown(&same).trim()), (Some(0), "1 page, 0 differ"));
    file("title = 'title::text'\nteaser = { carried = 'teaser', transform = ['upper'] }");
    let differs = test(&["--json"]).await;
    let json: Value = serde_json::from_str(&shown(&differs)).unwrap();
    assert_eq!(differs.status.code(), Some(6), "{json}");
    assert_eq!(json["differences"], json!(["items[0].fields.teaser: \"new\", now \"NEW\""]));
    assert_eq!(test(&["--accept"]).await.status.code(), Some(0));
    assert_eq!(test(&[]).await.status.code(), Some(0));
    file("title = { css = '.gone::text', required = true }");
    assert!(shown(&test(&[]).await).contains("missing: 0 of them, now 1"));
    // The site was asked for what was recorded, and never again.
    assert_eq!(site.log().len(), requests);
}

#[tokio::test]
async fn try_shows_step_by_step_how_far_a_refused_value_came() {
    let workspace = Workspace::new();
    let price = r"{ css = 'b', transform = [{ split = '/' }, 'upper', { regex = '(\d+) EUR' }, 'number'] }";
    workspace.write("spiders/shop.toml", &format!("[fields]\nprice = {price}\n"));
    workspace.write("page.html", "<b>12 usd / 11 gbp</b>");
    let words = ["spider", "try", "shop", "page.html", "--url", "https://a.example/"];
    let output = workspace.run(&words).await;
    let text = shown(&output);
    let steps = "refused price: `12 usd / 11 gbp`: the regular expression does not match\n        \
        split: `12 usd`, `11 gbp`\n        upper: `12 USD`, `11 GBP`\n        regex: the regular expression does not match\n";
    assert!(text.contains(steps), "{text}");
    let output = workspace.run(&[&words[..], &["--json"]].concat()).await;
    let json: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!(json["refused"][0]["steps"][1], "upper: `12 USD`, `11 GBP`");
}
