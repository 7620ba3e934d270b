//! Pages that would keep a browser for themselves: each beside honest ones, which are read, and none leaves a process
//! behind. `tests/attacks.md` lists the same rows.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{sleep, timeout};
use trawl_testkit::attacks::Section;
use trawl_testkit::script_site::ScriptSite;

use crate::bounds::browsers;
use crate::support::{LIMIT, Workspace, stats};

/// A page, and the required outcome: `read: ` with its name, or the class of the failure with words of it.
struct Attack {
    what: &'static str,
    page: String,
    gets: &'static str,
}

fn attack(what: &'static str, gets: &'static str, page: impl Into<String>) -> Attack {
    Attack { what, gets, page: page.into() }
}

/// Returns a page with a heading and a script.
fn script(script: &str) -> String {
    format!("<h1>Shown</h1><script>{script}</script>")
}

const READ: &str = "read: Shown";
const NOT_THERE: &str = "timeout: its document is not there after 5s";
const CRASH: &str = "crash: process";

/// Crawls all of these pages, with an honest one beside each, and compares the outcomes with the section of the list.
async fn check(site: &ScriptSite, title: &'static str, attacks: &[Attack]) {
    let mut home = String::new();
    for (number, attack) in attacks.iter().enumerate() {
        site.page(&format!("/attack/{number}"), &attack.page);
        site.page(
            &format!("/honest/{number}"),
            script(&format!("fetch('/api/name').then(answer => answer.text()).then(name => document.querySelector('h1').textContent = name + {number})")),
        );
        home += &format!("<a href=/attack/{number}></a><a href=/honest/{number}></a>");
    }
    site.page("/", home);
    site.json("/api/name", "Honest ");
    let workspace = Workspace::new(site);
    let settings = [
        ("TRAWL__FETCH__TIMEOUT", "5s"),
        ("TRAWL__FETCH__MAX_BODY", "1 MB"),
        ("TRAWL__RETRY__MAX", "1"),
        ("TRAWL__RETRY__BACKOFF", "100ms"),
    ];
    let crawl = workspace.start(&[], &settings).wait_with_output();
    let output = timeout(LIMIT, crawl).await.unwrap().unwrap();
    let outcomes = outcomes(&workspace).await;
    let outcome = |path: &str| outcomes.get(path).map_or("nothing", String::as_str);
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), title);
    for (number, Attack { what, gets, .. }) in attacks.iter().enumerate() {
        section.tried(what, gets, outcome(&format!("/attack/{number}")));
        assert_eq!(
            outcome(&format!("/honest/{number}")),
            format!("read: Honest {number}"),
            "{}",
            stats(&output)
        );
    }
    section.check();
    let ending = async {
        while !browsers(&workspace).is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, ending).await.unwrap();
}

/// Returns what became of each page, by its path.
async fn outcomes(workspace: &Workspace<'_>) -> HashMap<String, String> {
    let path = |value: &Value| {
        let url = value["url"].as_str().unwrap().splitn(4, '/').last().unwrap();
        format!("/{url}")
    };
    let said = workspace.command(&["dlq", "list", "--json", "--state", "crawl.db"]).await.stdout;
    let letters: Vec<Value> =
        String::from_utf8(said).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed = letters.iter().map(|letter| {
        let text = |key: &str| letter[key].as_str().unwrap_or_default();
        (path(letter), format!("{}: {}", text("class"), text("error")))
    });
    let items = workspace.items();
    let read = items
        .iter()
        .map(|item| (path(item), format!("read: {}", item["fields"]["name"].as_str().unwrap_or_default())));
    failed.chain(read).collect()
}

#[tokio::test]
async fn pages_that_fill_the_memory_fail_alone() {
    let site = ScriptSite::serve().await;
    let attacks = [
        attack(
            "objects without an end",
            NOT_THERE,
            script("const all = []; for (;;) all.push({ all, text: 'x' + all.length })"),
        ),
        attack(
            "typed arrays without an end",
            READ,
            script("const all = []; for (;;) all.push(new Uint8Array(1e8).fill(1))"),
        ),
        attack(
            "a document that grows for ever",
            "size: more than `fetch.max_body`",
            script("for (let i = 0; i < 30; i++) document.body.append('x'.repeat(1e5))"),
        ),
        attack(
            "100,000 elements inside each other",
            CRASH,
            script(
                "let at = document.body; for (let i = 0; i < 1e5; i++) at = at.appendChild(document.createElement('b'))",
            ),
        ),
        attack(
            "databases without an end",
            READ,
            script(
                "const open = indexedDB.open('x'); open.onupgradeneeded = () => open.result.createObjectStore('x'); open.onsuccess = () => { const put = key => { const done = open.result.transaction('x', 'readwrite').objectStore('x').put(new Uint8Array(1e7), key); done.onsuccess = () => put(key + 1) }; put(0) }",
            ),
        ),
    ];
    check(&site, "Memory", &attacks).await;
}

#[tokio::test]
async fn pages_that_open_windows_or_leave_for_ever_get_nowhere() {
    let site = ScriptSite::serve_https().await;
    site.page("/away", script("location = '/away?' + Math.random()"));
    let attacks = [
        attack("dialogs without an end", NOT_THERE, script("for (;;) alert(1)")),
        attack(
            "a dialog when the page is left",
            READ,
            script(
                "onbeforeunload = event => { event.preventDefault(); return 'x' }; alert(1); confirm(2); prompt(3); print()",
            ),
        ),
        attack("100 windows", READ, script("for (let i = 0; i < 100; i++) open('/window?' + i)")),
        attack("a way that leads ever on", "redirect: ", script("location = '/away?0'")),
        attack("a page that loads itself again and again", "redirect: ", script("location.reload()")),
        attack("a page that closes itself", READ, script("close()")),
        attack(
            "full screen, and keys and mouse for itself",
            READ,
            script(
                "document.documentElement.requestFullscreen().catch(() => {}); document.documentElement.requestPointerLock(); navigator.keyboard?.lock?.()",
            ),
        ),
    ];
    check(&site, "Windows", &attacks).await;
    assert!(!site.paths().iter().any(|path| path.starts_with("/window")));
}
