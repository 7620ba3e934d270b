//! Spiders tried on a page.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::response::{Html, IntoResponse, Response};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use trawl_common::politeness::rate::Rate;
use trawl_common::settings::{Fetch, Politeness, Settings};

use crate::fixture::{Answer, Fixture, VIEWER};

promises! {
    a_page_is_tried_and_what_the_spider_makes_of_it_is_told
    what_robots_txt_forbids_and_what_is_blocked_is_not_asked_for
    a_host_that_wants_to_be_left_alone_is_left_alone_by_all
    a_deployed_spider_is_tried_by_its_name
    what_cannot_be_tried_is_told_and_nothing_is_asked_for
    a_private_address_is_not_asked_unless_the_settings_allow_it
}

const TRY: &str = "/api/v1/spiders/try";
const TEXT: &str = "[arguments]\nfield = { default = 'h1' }\n[follow]\nexclude = ['/not']\ndepth = 1\n\
                    [fields]\nname = '{arg.field}::text'\nprice = { css = '.price::text', required = true }\n";
const ROBOTS: &str = "User-agent: *\nDisallow: /secret\n";
const PAGE: &str =
    "<h1>Hat</h1><h2>Red</h2><a href=/a>a</a><a href=/not>b</a><a href=http://b.example/>c</a>";

/// A site and the requests it received.
struct Site {
    origin: String,
    asked: Asked,
    _serving: JoinSet<()>,
}

type Asked = Arc<Mutex<Vec<String>>>;

impl Site {
    async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Asked::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&asked));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { origin, asked, _serving: serving }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(State(asked): State<Asked>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    asked.lock().unwrap().push(path.clone());
    match path.as_str() {
        "/robots.txt" => ROBOTS.into_response(),
        "/page" => Html(PAGE).into_response(),
        "/from" => (StatusCode::FOUND, [(LOCATION, "/page")]).into_response(),
        "/to-secret" => (StatusCode::FOUND, [(LOCATION, "/secret")]).into_response(),
        "/busy" => (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "600")]).into_response(),
        "/many" => {
            let links: String = (0..1_200).map(|number| format!("<a href=/{number}>{number}</a>")).collect();
            Html(links).into_response()
        }
        "/never" => std::future::pending().await,
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Settings with which a site on this machine is requested without delay.
fn settings() -> Settings {
    let ports = vec!["1-65535".parse().unwrap()];
    Settings {
        fetch: Fetch { allow_private: true, ports, ..Fetch::default() },
        politeness: Politeness { rate: Rate::Unlimited, ..Politeness::default() },
        ..Settings::default()
    }
}

async fn attempt(fixture: &Fixture, body: Value) -> Answer {
    fixture.post_json(TRY, &body).await
}

async fn a_page_is_tried_and_what_the_spider_makes_of_it_is_told(fixture: &Fixture) {
    let (fixture, site) = (fixture.also_with(settings()).await, Site::serve().await);
    let from = site.url("/from");
    let new = json!({ "url": from, "text": TEXT, "spider": "hats", "arguments": { "field": "h2" } });
    let Answer { status, body, .. } = attempt(&fixture, new).await;
    let link = |url: String, why: Value| json!({ "url": url, "followed": why.is_null(), "why": why });
    let expected = json!({
        "spider": "hats", "url": from, "mistakes": [], "robots": "allowed", "robots_name": "trawl",
        "redirects": [site.url("/page")], "status": 200, "bytes": PAGE.len(), "no_page": null,
        "items": [{ "item": null, "number": 0, "fields": { "name": "Red", "price": null } }],
        "items_left_out": 0, "missing": ["price"],
        "links": [
            link(site.url("/a"), Value::Null),
            link(site.url("/not"), "pattern".into()),
            link("http://b.example/".to_owned(), "domain".into()),
        ],
        "links_left_out": 0,
    });
    assert_eq!((status, &body), (200, &expected), "{body}");
    assert_eq!(site.asked(), ["/robots.txt", "/from", "/page"]);
    let many = attempt(&fixture, json!({ "url": site.url("/many"), "text": TEXT })).await.body;
    let links = many["links"].as_array().unwrap();
    assert_eq!((links.len(), &many["links_left_out"]), (1_000, &200.into()));
    let gone = attempt(&fixture, json!({ "url": site.url("/gone"), "text": TEXT })).await.body;
    assert_eq!((&gone["status"], &gone["no_page"]["reason"]), (&404.into(), &"http".into()), "{gone}");
    assert_eq!(fixture.get("/api/v1/crawls").await.body["crawls"], json!([]));
}

async fn what_robots_txt_forbids_and_what_is_blocked_is_not_asked_for(fixture: &Fixture) {
    let (fixture, site) = (fixture.also_with(settings()).await, Site::serve().await);
    for path in ["/secret", "/to-secret"] {
        let attempted = attempt(&fixture, json!({ "url": site.url(path), "text": TEXT })).await.body;
        let reason = &attempted["no_page"]["reason"];
        assert_eq!((&attempted["robots"], reason), (&"forbidden".into(), &"robots".into()), "{attempted}");
    }
    assert_eq!(site.asked(), ["/robots.txt", "/to-secret"]);
    assert_eq!(fixture.post("/api/v1/hosts/127.0.0.1/block").await.status, 200);
    let attempted = attempt(&fixture, json!({ "url": site.url("/page"), "text": TEXT })).await.body;
    assert_eq!(attempted["no_page"]["reason"], "blocked", "{attempted}");
    assert_eq!(site.asked().len(), 2);
}

async fn a_host_that_wants_to_be_left_alone_is_left_alone_by_all(fixture: &Fixture) {
    let (fixture, site) = (fixture.also_with(settings()).await, Site::serve().await);
    let attempted = attempt(&fixture, json!({ "url": site.url("/busy"), "text": TEXT })).await.body;
    assert_eq!(
        (&attempted["status"], &attempted["no_page"]["reason"]),
        (&429.into(), &"http".into()),
        "{attempted}"
    );
    let host = fixture.get("/api/v1/hosts/127.0.0.1").await.body;
    assert_eq!(host["backoff"]["status"], 429, "{host}");
    let again = attempt(&fixture, json!({ "url": site.url("/page"), "text": TEXT })).await;
    let wait: u64 = again.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(again.status == 409 && (500..=601).contains(&wait), "{wait} {}", again.body);
    assert_eq!(site.asked(), ["/robots.txt", "/busy"]);
}

async fn a_deployed_spider_is_tried_by_its_name(fixture: &Fixture) {
    let (fixture, site) = (fixture.also_with(settings()).await, Site::serve().await);
    let upload = "/api/v1/projects/shop/versions?version=r1&spider=hats";
    let sink = "[[sinks]]\nkind = 'postgres'\nurl = { env = 'PATH' }\n";
    let added = fixture.send(fixture.operator(Method::POST, upload).body(TEXT)).await;
    assert_eq!(added.status, 201, "{}", added.body);
    let new = |more: Value| {
        let mut new = json!({ "url": site.url("/page"), "spider": "hats" });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        new
    };
    for more in [json!({ "project": "shop" }), json!({ "project": "shop", "version": "r1" })] {
        let attempted = attempt(&fixture, new(more)).await.body;
        assert_eq!(attempted["items"][0]["fields"]["name"], "Hat", "{attempted}");
    }
    let with_sink = attempt(&fixture, new(json!({ "text": format!("{TEXT}{sink}") }))).await.body;
    assert_eq!(with_sink["items"][0]["fields"]["name"], "Hat", "a sink is not opened: {with_sink}");
    for more in [json!({}), json!({ "project": "shop", "version": "r2" })] {
        assert_eq!(attempt(&fixture, new(more)).await.status, 404);
    }
    assert_eq!(attempt(&fixture, new(json!({ "project": "shop", "text": TEXT }))).await.status, 400);
}

async fn what_cannot_be_tried_is_told_and_nothing_is_asked_for(fixture: &Fixture) {
    let (fixture, site) = (fixture.also_with(settings()).await, Site::serve().await);
    let url = site.url("/page");
    let home = format!("[start]\nurls = ['{url}']\n");
    for (text, key) in [
        (format!("{home}[request]\nheaders = {{ X-Key = {{ env = 'PATH' }} }}\n"), "request.headers.X-Key: "),
        (format!("{home}[request]\ncookies = {{ id = {{ env = 'PATH' }} }}\n"), "request.cookies.id: "),
        (format!("{home}[request]\nproxy = 'http://{}'\n", &site.origin[7..]), "request.proxy: "),
        (format!("{home}[request]\nproxy = {{ env = 'PATH' }}\n"), "request.proxy: "),
        ("[arguments]\npage = {}\n[fields]\nname = '{arg.page}'\n".to_owned(), "arguments.page: "),
        ("[fields]\nname = 'p:no-such'\n".to_owned(), "fields.name: "),
    ] {
        let Answer { status, body, .. } = attempt(&fixture, json!({ "url": url, "text": text })).await;
        let mistakes = body["mistakes"].as_array().unwrap();
        assert_eq!((status, mistakes.len()), (200, 1), "{text}: {body}");
        let what = mistakes[0]["what"].as_str().unwrap();
        assert!(what.starts_with(key) && mistakes[0]["line"].is_number(), "{key}{what}");
        assert_eq!((&body["status"], &body["items"]), (&Value::Null, &json!([])), "{body}");
    }
    for wrong in [json!({ "text": TEXT }), json!({ "url": "file:///etc/passwd", "text": TEXT })] {
        assert_eq!(attempt(&fixture, wrong).await.status, 400);
    }
    let body = json!({ "url": url, "text": TEXT }).to_string();
    let viewer = fixture.request(Method::POST, TRY).bearer_auth(VIEWER);
    let refused = fixture.send(viewer.header("content-type", "application/json").body(body)).await;
    assert_eq!(refused.status, 403);
    assert_eq!(site.asked(), [""; 0]);
}

async fn a_private_address_is_not_asked_unless_the_settings_allow_it(fixture: &Fixture) {
    let site = Site::serve().await;
    let fetch = Fetch { allow_private: false, ..settings().fetch };
    let fixture = fixture.also_with(Settings { fetch, ..settings() }).await;
    let attempted = attempt(&fixture, json!({ "url": site.url("/page"), "text": TEXT })).await.body;
    assert_eq!(
        (&attempted["status"], &attempted["no_page"]["reason"]),
        (&Value::Null, &"forbidden".into()),
        "{attempted}"
    );
    assert_eq!(site.asked(), [""; 0]);
}

#[tokio::test]
async fn no_more_than_four_pages_are_tried_at_once() {
    let (fixture, site) = (Fixture::embedded().await.also_with(settings()).await, Site::serve().await);
    let request = || {
        let body = json!({ "url": site.url("/never"), "text": TEXT }).to_string();
        fixture.operator(Method::POST, TRY).header("content-type", "application/json").body(body)
    };
    let mut under_way = JoinSet::new();
    for _ in 0..4 {
        under_way.spawn(request().send());
    }
    while site.asked().iter().filter(|path| *path == "/never").count() < 4 {
        tokio::task::yield_now().await;
    }
    let refused = fixture.send(request()).await;
    assert!(refused.status == 503 && refused.headers.contains_key("retry-after"), "{}", refused.body);
}
