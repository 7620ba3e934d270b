//! Steps that a spider takes in its pages.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use trawl_testkit::script_site::ScriptSite;

use crate::render::manners::check_pace;
use crate::render::support::{Workspace, stats};

/// Screens of a page that loads more of them as it is scrolled.
const SCREENS: usize = 5;

/// Makes the site a list of hats, four on a screen: a script asks for the next screen when the last is at its end.
fn endless_list(site: &ScriptSite) {
    site.page(
        "/",
        "<main></main><div id=end>More</div><script>
        let screen = 0;
        const more = async () => {
            const answer = await fetch(`/api/screen/${screen++}`);
            for (const name of await answer.json())
                document.querySelector('main').insertAdjacentHTML('beforeend', `<article style='height: 400px'><h2>${name}</h2></article>`);
        };
        new IntersectionObserver(([seen]) => seen.isIntersecting && more()).observe(document.getElementById('end'));
        </script>",
    );
    for screen in 0..=SCREENS {
        let hats: Vec<String> = (0..4).map(|hat| format!("Hat {screen}.{hat}")).collect();
        let hats = if screen == SCREENS { json!([]) } else { json!(hats) };
        site.json(&format!("/api/screen/{screen}"), hats.to_string());
    }
}

const LIST: &str = "render = 'always'
steps = [{ scroll = 'end' }]
[[items]]
each = 'article'
fields = { name = 'h2::text' }
";

#[tokio::test]
async fn a_list_that_grows_as_it_is_scrolled_is_read_to_its_end_at_its_hosts_pace() {
    let site = ScriptSite::serve().await;
    endless_list(&site);
    let workspace = Workspace::new(&site);
    workspace.write("shop.toml", LIST);
    let stats = stats(&workspace.crawl_with(&["--rate", "2/s"], &[]).await);
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(1), &json!(0)), "{stats}");
    let items = workspace.items();
    let names: BTreeSet<&str> = items.iter().map(|item| item["fields"]["name"].as_str().unwrap()).collect();
    assert_eq!((items.len(), names.len()), (SCREENS * 4, SCREENS * 4), "{names:?}");
    assert_eq!(site.paths().len(), 1 + SCREENS + 1);
    check_pace(&site.log());
}

#[tokio::test]
async fn as_many_screens_are_read_as_the_spider_wants() {
    let site = ScriptSite::serve().await;
    endless_list(&site);
    let workspace = Workspace::new(&site);
    workspace.write("shop.toml", &LIST.replace("'end'", "2"));
    workspace.crawl(&[]).await;
    // The first is there before the page is scrolled.
    assert_eq!(workspace.items().len(), 3 * 4);
}

/// A search that shows what it finds a while after it was asked, behind a wall that has to be clicked away.
const SEARCH: &str = "<div id=wall style='position: fixed; inset: 0; background: white'><button>OK</button></div>
<form><input name=q oninput='typed.textContent = value'><select name=in><option value=a>All<option value=h>Hats</select></form>
<p id=typed></p>
<script>
const [wall, form] = [document.getElementById('wall'), document.forms[0]];
wall.firstChild.onclick = event => event.isTrusted && wall.remove();
let chosen = 'nothing';
form.in.onchange = () => chosen = form.in.value;
form.onsubmit = event => {
    event.preventDefault();
    const search = new URLSearchParams(new FormData(form));
    setTimeout(async () => {
        const { name } = await (await fetch('/api/find?' + search)).json();
        document.body.insertAdjacentHTML('beforeend', `<h1>${name}, ${typed.textContent}, ${chosen}, ${document.title}</h1>`);
    }, 800);
};
</script>";

const SEARCHES: &str = r#"render = 'always'
steps = [
    { click = '#wall button' },
    { select = { xpath = '//select' }, with = 'Hats' },
    { fill = 'input[name=q]', with = 'bowler' },
    { evaluate = "document.title = await Promise.resolve('Titled')" },
    { press = 'Enter' },
    { wait = 'h1' },
    { wait = { text = 'Bowler' } },
]
fields = { name = 'h1::text' }
"#;

#[tokio::test]
async fn a_form_is_filled_in_and_sent_and_what_comes_is_waited_for() {
    let site = ScriptSite::serve().await;
    site.page("/", SEARCH);
    site.json("/api/find?q=bowler&in=h", "{\"name\": \"Bowler\"}");
    let workspace = Workspace::new(&site);
    workspace.write("shop.toml", SEARCHES);
    let stats = workspace.crawl(&[]).await;
    assert_eq!(stats["done"], 1, "{stats}");
    assert_eq!(workspace.items()[0]["fields"]["name"], json!("Bowler, bowler, h, Titled"));
}

#[tokio::test]
async fn where_a_click_leads_is_asked_at_the_hosts_pace_and_read_for_each_page_that_leads_there() {
    let site = ScriptSite::serve().await;
    let click = "<h1>Here</h1><a class=next href=/there>next</a>";
    site.page("/", format!("{click}<a href=/other>other</a>"));
    site.page("/other", click);
    site.page("/there", "<h1>There</h1><a href=/other>other</a>");
    let workspace = Workspace::new(&site);
    let spider = "render = 'always'\nsteps = [{ click = 'a.next' }, { wait = 'h1' }]\n[follow]\n[fields]\nname = 'h1::text'\n";
    workspace.write("shop.toml", spider);
    let stats = stats(&workspace.crawl_with(&["--rate", "2/s"], &[]).await);
    assert_eq!((&stats["done"], &stats["skipped"]), (&json!(2), &json!(0)), "{stats}");
    let there = json!(format!("{}/there", site.origin));
    let items = workspace.items();
    let read: Vec<_> = items.iter().map(|item| (&item["fields"]["name"], &item["final_url"])).collect();
    assert_eq!(read, [(&json!("There"), &there); 2]);
    assert_eq!(site.paths(), ["/", "/there", "/other", "/there"]);
    check_pace(&site.log());
}

#[tokio::test]
async fn a_step_leads_no_page_out_of_its_spiders_domains() {
    let site = ScriptSite::serve().await;
    site.page("/", "<h1>Here</h1>");
    for step in
        ["goto = 'http://elsewhere.example/'", "evaluate = \"location = 'http://elsewhere.example/'\""]
    {
        let workspace = Workspace::new(&site);
        let spider = format!(
            "allowed_domains = ['127.0.0.1']\nrender = 'always'\nsteps = [{{ {step} }}]\nfields = {{ name = 'h1::text' }}\n"
        );
        workspace.write("shop.toml", &spider);
        let stats = workspace.crawl(&[]).await;
        assert_eq!(stats["reasons"]["skipped:scope"], 1, "{step}: {stats}");
    }
}

/// A page of which no step but the first succeeds.
const REFUSES: &str =
    "<h1>Here</h1><button disabled>Go</button><p>text</p><a style='display: none' href=/x>x</a>";

#[tokio::test]
async fn a_step_that_cannot_be_taken_says_which_and_why() {
    let site = ScriptSite::serve().await;
    site.page("/", REFUSES);
    let workspace = Workspace::new(&site);
    for (step, said) in [
        ("wait = '.never'", "timeout: step 2, wait `.never`: nothing is found after 1s"),
        ("wait = { text = 'Sold' }", "timeout: step 2, wait for the text `Sold`: it is not shown after 1s"),
        ("click = 'button'", "timeout: step 2, click `button`: what is found is disabled after 1s"),
        ("click = 'a'", "timeout: step 2, click `a`: what is found is not shown after 1s"),
        ("fill = 'p', with = 'x'", "body: step 2, fill `p`: what is found is no field for a text"),
        ("select = 'p', with = 'x'", "body: step 2, select `p`: what is found is no list of options"),
        ("evaluate = 'nothing()'", "body: step 2, evaluate: ReferenceError: nothing is not defined"),
        ("evaluate = 'for (;;) {}'", "timeout: step 2, evaluate: it is not over after 1s"),
        ("evaluate = 'await new Promise(() => {})'", "timeout: step 2, evaluate: it is not over after 1s"),
    ] {
        let steps = format!("render = 'always'\nsteps = [{{ wait = 'h1' }}, {{ {step}, within = '1s' }}]\n");
        workspace.write("shop.toml", &steps);
        let page = format!("{}/", site.origin);
        let tried = workspace.command(&["spider", "try", "shop.toml", &page]).await;
        let (out, error) = (String::from_utf8_lossy(&tried.stdout), String::from_utf8_lossy(&tried.stderr));
        assert!(!tried.status.success() && error.contains(said), "{step}: {error}");
        assert!(out.contains("step 1") && !out.contains("step 2"), "{step}: {out}");
    }
}

#[tokio::test]
async fn a_page_at_a_step_of_which_it_fails_is_tried_again_and_others_go_on() {
    let site = ScriptSite::serve().await;
    site.page("/", "<h1>Here</h1><p class=there><a href=/lacks>lacks</a>");
    site.page("/lacks", "<h1>Lacks</h1>");
    let workspace = Workspace::new(&site);
    let steps = "render = 'always'\nsteps = [{ wait = '.there', within = '500ms' }]\n[follow]\n[fields]\nname = 'h1::text'\n";
    workspace.write("shop.toml", steps);
    let settings = [("TRAWL__RETRY__MAX", "1"), ("TRAWL__RETRY__BACKOFF", "100ms")];
    let stats = stats(&workspace.crawl_with(&[], &settings).await);
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(1), &json!(1)), "{stats}");
    assert_eq!(site.paths(), ["/", "/lacks", "/lacks"]);
}

#[tokio::test]
async fn each_kind_of_page_has_its_own_steps() {
    let site = ScriptSite::serve().await;
    let click =
        "<h1>Sent</h1><button onclick=\"document.querySelector('h1').textContent = 'Clicked'\">x</button>";
    site.page("/", format!("{click}<a href=/a></a><a href=/b></a>"));
    site.page("/a", click);
    site.page("/b", click);
    let workspace = Workspace::new(&site);
    let kind = |name: &str, steps: &str| {
        format!(
            "[[page]]\nname = '{name}'\nmatch.url = '/{name}$'\n{steps}fields = {{ name = 'h1::text' }}\n"
        )
    };
    let kinds = [kind("a", ""), kind("b", "steps = []\n")].concat();
    let spider = format!("render = 'always'\nsteps = [{{ click = 'button' }}]\n[follow]\n{kinds}");
    workspace.write("shop.toml", &spider);
    workspace.crawl(&[]).await;
    let mut read: Vec<_> = workspace
        .items()
        .iter()
        .map(|item| {
            format!("{} {}", item["item"].as_str().unwrap(), item["fields"]["name"].as_str().unwrap())
        })
        .collect();
    read.sort();
    assert_eq!(read, ["a Clicked", "b Sent"]);
}

#[tokio::test]
async fn a_trial_shows_each_step_with_its_time_and_the_page_as_a_picture() {
    let site = ScriptSite::serve().await;
    site.page("/", SEARCH);
    site.json("/api/find?q=bowler&in=h", "{\"name\": \"Bowler\"}");
    let workspace = Workspace::new(&site);
    workspace.write("shop.toml", SEARCHES);
    let page = format!("{}/", site.origin);
    let words = ["spider", "try", "shop.toml", &page, "--json", "--screenshot", "page.png"];
    let tried: Value = serde_json::from_slice(&workspace.command(&words).await.stdout).unwrap();
    let steps = tried["rendering"]["steps"].as_array().unwrap();
    let named: Vec<_> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(
        named,
        [
            "click `#wall button`",
            "select `//select`",
            "fill `input[name=q]`",
            "evaluate",
            "press Enter",
            "wait `h1`",
            "wait for the text `Bowler`"
        ]
    );
    assert!(steps.iter().all(|step| step["seconds"].as_f64().unwrap() > 0.0), "{steps:?}");
    let picture = fs::read(workspace.path().join("page.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 1_000);
    let shown = workspace.command(&words[..4]).await.stdout;
    assert!(String::from_utf8(shown).unwrap().contains("click `#wall button` in "));
}

#[tokio::test]
async fn a_trial_shows_the_page_at_which_a_step_fails() {
    let site = ScriptSite::serve().await;
    site.page("/", REFUSES);
    let workspace = Workspace::new(&site);
    workspace.write("shop.toml", "render = 'always'\nsteps = [{ wait = '.never', within = '100ms' }]\n");
    let page = format!("{}/", site.origin);
    let words = ["spider", "try", "shop.toml", &page, "--screenshot", "page.png"];
    assert!(!workspace.command(&words).await.status.success());
    assert!(fs::read(workspace.path().join("page.png")).unwrap().starts_with(b"\x89PNG"));
    workspace.write("plain.toml", "[fields]\nname = 'h1::text'\n");
    let words = ["spider", "try", "plain.toml", &page, "--screenshot", "other.png"];
    let error = String::from_utf8(workspace.command(&words).await.stderr).unwrap();
    assert!(error.contains("no browser renders this page: add --render"), "{error}");
}
