//! The announcement of crawl and host events by a fleet of real processes: `trawl wait`, `trawl events` and webhooks.

use std::fs;
use std::net::Ipv4Addr;
use std::process::{Output, Stdio};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

async fn output(mut command: Command) -> Output {
    timeout(LIMIT, command.output()).await.unwrap().unwrap()
}

/// Returns the output of a command that must end with `code`.
async fn run(command: Command, code: i32) -> String {
    let output = output(command).await;
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "{out}{error}");
    out
}

/// Feeds a crawl of these pages, and does not wait for its end.
async fn feed(fleet: &Fleet, crawl: &str, pages: &[String]) {
    feed_as(fleet, &fleet.name, crawl, pages).await;
}

/// Feeds a crawl of this spider.
async fn feed_as(fleet: &Fleet, spider: &str, crawl: &str, pages: &[String]) {
    let list = fleet.folder.path().join(format!("{crawl}.txt"));
    fs::write(&list, pages.join("\n")).unwrap();
    let (spider, crawl) = (format!("--spider={spider}"), format!("--crawl={crawl}"));
    run(fleet.command(&["producer", list.to_str().unwrap(), &spider, &crawl, "-q"]), 0).await;
}

/// The events that a subscriber receives, in order of arrival.
struct Following {
    _command: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn begin(fleet: &Fleet, name: &str, pattern: &str) -> Self {
        let words = ["events", "--name", name, "--type", pattern, "--follow", "--json"];
        let mut command = fleet.command(&words).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(command.stdout.take().unwrap()).lines();
        Self { _command: command, lines }
    }

    async fn next(&mut self) -> Value {
        let line = timeout(LIMIT, self.lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[tokio::test]
async fn a_subscriber_reads_each_event_once_and_can_remove_its_subscription() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    let events = |words: &[&str]| {
        let mut all = vec!["events", "--name", "later"];
        all.extend(words);
        fleet.command(&all)
    };
    assert_eq!(run(events(&["--type", "crawl.finished"]), 0).await, "", "nothing has happened");
    assert_eq!(run(fleet.command(&["events", "--name", "live"]), 0).await, "");
    let worker = fleet.worker(&[]);
    feed(&fleet, "c1", &[site.page(0), site.page(1)]).await;
    let mut live = Following::begin(&fleet, "live", "#");
    let [started, finished] = [live.next().await, live.next().await];
    assert_eq!((&started["type"], &started["id"]), (&"crawl.started".into(), &"c1.started".into()));
    assert_eq!((&finished["type"], &finished["done"]), (&"crawl.finished".into(), &2.into()));
    ends_well(worker).await;

    // An event that could not be printed counts as unread.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let status = timeout(LIMIT, events(&[]).stdout(full).stderr(Stdio::null()).status()).await.unwrap();
    assert_eq!(status.unwrap().code(), Some(1));
    let comes_again = async {
        loop {
            let shown = run(events(&["--type", "crawl.finished"]), 0).await;
            if !shown.is_empty() {
                return shown;
            }
        }
    };
    let shown = timeout(LIMIT, comes_again).await.unwrap();
    let words: Vec<&str> = shown.split_whitespace().collect();
    assert_eq!(words[1..4], ["crawl.finished", "c1", &format!("{}:", fleet.name)], "{shown}");
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert_eq!(run(events(&["--json"]), 0).await, "", "it was read");
    run(events(&["--forget"]), 0).await;
    run(events(&["--forget"]), 2).await;
    run(events(&["--state", "crawl.db"]), 2).await;
}

/// A site that answers every page with 429 and asks for a back-off of two minutes.
async fn refusing() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let refuse = async |uri: Uri| match uri.path() {
        "/robots.txt" => StatusCode::NOT_FOUND.into_response(),
        _ => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "120")]).into_response(),
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(refuse)).await });
    origin
}

#[tokio::test]
async fn a_subscriber_learns_which_hosts_back_off_and_which_are_blocked() {
    let (fleet, origin) = (Fleet::new().await, refusing().await);
    run(fleet.command(&["events", "--name", "hosts", "--type", "host.*"]), 0).await;
    let worker = fleet.worker(&[]);
    feed(&fleet, "c1", &[format!("{origin}/a"), format!("{origin}/b")]).await;
    let mut hosts = Following::begin(&fleet, "hosts", "host.*");
    let refused = hosts.next().await;
    assert_eq!(
        (&refused["type"], &refused["crawl"], &refused["spider"]),
        (&"host.backoff".into(), &"c1".into(), &Value::from(&*fleet.name))
    );
    let [host] = &refused["hosts"].as_array().unwrap()[..] else { panic!("{refused}") };
    assert_eq!((&host["host"], &host["status"]), (&"127.0.0.1".into(), &429.into()));
    run(fleet.command(&["hosts", "block", "shop.example"]), 0).await;
    let blocked = hosts.next().await;
    assert_eq!((&blocked["type"], &blocked["crawl"]), (&"host.blocked".into(), &Value::Null));
    assert_eq!(blocked["hosts"][0]["host"], "shop.example");
    run(fleet.command(&["hosts", "unblock", "shop.example"]), 0).await;
    assert_eq!(hosts.next().await["type"], "host.unblocked");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_wait_for_several_crawls_ends_with_the_last_and_as_the_worst() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    feed(&fleet, "good", &[site.page(0)]).await;
    feed(&fleet, "bad", &[site.page(1), format!("{}/missing", site.origin)]).await;
    feed(&fleet, "held", &[site.page(2)]).await;
    run(fleet.command(&["pause", "held"]), 0).await;
    let worker = fleet.worker(&[]);
    let shown = run(fleet.command(&["wait", "good", "bad", "--json", "-q"]), 3).await;
    let mut ended: Vec<String> = shown
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["crawl"].as_str().unwrap().to_owned())
        .collect();
    ended.sort_unstable();
    assert_eq!(ended, ["bad", "good"]);
    let shown = run(fleet.command(&["wait", "good", "nosuch", "--json", "-q"]), 2).await;
    assert_eq!(shown.lines().count(), 1, "the others are waited for: {shown}");
    let of_spider =
        |limit: &str| fleet.command(&["wait", "--spider", &fleet.name, "--timeout", limit, "--json", "-q"]);
    // It waits before the crawl goes on, which may end at once: the second wait starts, looks and gives up meanwhile.
    let waiting = tokio::spawn(run(of_spider("1m"), 0));
    assert_eq!(run(of_spider("100ms"), 124).await, "");
    run(fleet.command(&["resume", "held"]), 0).await;
    let shown = waiting.await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap()["crawl"], "held");
    assert_eq!(run(of_spider("1m"), 0).await, "", "none is running");
    ends_well(worker).await;
}

/// A request received by a webhook receiver and waiting for its response.
struct Posted {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
    answer: oneshot::Sender<StatusCode>,
}

impl Posted {
    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn is_signed(&self) -> bool {
        let mut digest = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        digest.update(format!("{}.", self.header("x-trawl-timestamp")).as_bytes());
        digest.update(&self.body);
        let signature = self.header("x-trawl-signature").strip_prefix("sha256=").unwrap();
        digest.verify_slice(&HEXLOWER.decode(signature.as_bytes()).unwrap()).is_ok()
    }
}

/// A webhook receiver whose responses the test gives.
struct Receiver {
    url: String,
    posted: mpsc::UnboundedReceiver<Posted>,
}

impl Receiver {
    async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (to_test, posted) = mpsc::unbounded_channel();
        let router = Router::new().fallback(receive).with_state(to_test);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, posted }
    }

    async fn next(&mut self) -> Posted {
        timeout(LIMIT, self.posted.recv()).await.unwrap().unwrap()
    }

    /// Returns the section of the settings for this receiver.
    fn section(&self, events: &str) -> String {
        let url = &self.url;
        format!("[[webhooks]]\nurl = \"{url}\"\nsecret = {{ env = \"HOOK\" }}\nevents = [\"{events}\"]\n")
    }
}

async fn receive(
    State(to_test): State<mpsc::UnboundedSender<Posted>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (answer, answered) = oneshot::channel();
    let _ = to_test.send(Posted { method, path: uri.path().to_owned(), headers, body, answer });
    match answered.await {
        Ok(status) => (status, [("location", "/elsewhere")]).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn webhooks(fleet: &Fleet, sections: &[String]) {
    fs::write(fleet.folder.path().join("trawl.toml"), sections.join("\n")).unwrap();
}

const HOOK: (&str, &str) = ("HOOK", SECRET);

#[tokio::test]
async fn a_webhook_is_posted_again_with_the_same_id_and_signed_until_it_is_accepted() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let mut receiver = Receiver::serve().await;
    webhooks(&fleet, &[receiver.section("crawl.finished")]);
    let worker = fleet.worker(&[HOOK]);
    feed(&fleet, "c1", &[site.page(0)]).await;
    // Redirects are not followed.
    for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::FOUND, StatusCode::NO_CONTENT] {
        let posted = receiver.next().await;
        assert_eq!((posted.method.as_str(), posted.path.as_str()), ("POST", "/hook"), "before {status}");
        assert!(posted.is_signed(), "before {status}");
        assert_eq!(posted.header("x-trawl-delivery"), "c1.finished", "before {status}");
        let event = posted.event();
        assert_eq!((&event["type"], &event["done"]), (&"crawl.finished".into(), &1.into()));
        posted.answer.send(status).unwrap();
    }
    // An accepted event is not delivered again: the next one belongs to another crawl.
    feed(&fleet, "c2", &[site.page(0)]).await;
    let posted = receiver.next().await;
    assert_eq!(posted.header("x-trawl-delivery"), "c2.finished");
    posted.answer.send(StatusCode::OK).unwrap();
    ends_well(worker).await;
}

#[tokio::test]
async fn a_job_that_fails_is_an_event_for_subscribers_and_webhooks() {
    let fleet = Fleet::new().await;
    let mut receiver = Receiver::serve().await;
    webhooks(&fleet, &[receiver.section("job.*")]);
    run(fleet.command(&["events", "--name", "jobs", "--type", "job.failed"]), 0).await;
    let spider = "[start]\nsitemaps = [\"http://127.0.0.1:9/sitemap.xml\"]\n";
    fs::write(fleet.folder.path().join("spiders").join(format!("{}.toml", fleet.name)), spider).unwrap();
    let worker = fleet.worker(&[HOOK, ("TRAWL__RETRY__MAX", "0")]);
    let job = run(fleet.command(&["jobs", "submit", &fleet.name]), 0).await;
    let job = job.trim();
    run(fleet.command(&["wait", job, "-q"]), 1).await;
    let posted = receiver.next().await;
    assert!(posted.is_signed());
    let event = posted.event();
    let member = |name: &str| event[name].as_str().unwrap_or_default();
    assert_eq!((member("type"), member("crawl"), member("spider")), ("job.failed", job, &*fleet.name));
    assert!(member("problem").contains("127.0.0.1:9"), "{event}");
    posted.answer.send(StatusCode::OK).unwrap();
    let shown = run(fleet.command(&["events", "--name", "jobs"]), 0).await;
    assert!(shown.contains(job) && shown.contains("127.0.0.1:9"), "{shown}");
    ends_well(worker).await;
}

#[tokio::test]
async fn an_event_is_posted_again_when_its_worker_dies_before_it_was_accepted() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let mut receiver = Receiver::serve().await;
    webhooks(&fleet, &[receiver.section("crawl.finished")]);
    let mut dying = fleet.worker(&[HOOK]);
    feed(&fleet, "c1", &[site.page(0)]).await;
    let first = receiver.next().await;
    dying.kill().await.unwrap();
    let worker = fleet.worker(&[HOOK]);
    let second = receiver.next().await;
    assert_eq!(first.header("x-trawl-delivery"), second.header("x-trawl-delivery"));
    assert!(second.is_signed());
    second.answer.send(StatusCode::OK).unwrap();
    ends_well(worker).await;
}

#[tokio::test]
async fn a_receiver_that_never_answers_delays_no_other() {
    const CRAWLS: usize = 3;
    let (fleet, site) = (Fleet::new().await, Site::serve(CRAWLS).await);
    let (mut silent, mut receiver) = (Receiver::serve().await, Receiver::serve().await);
    webhooks(&fleet, &[silent.section("crawl.*"), receiver.section("crawl.*")]);
    let worker = fleet.worker(&[HOOK]);
    let mut held = Vec::new();
    for number in 0..CRAWLS {
        feed(&fleet, &format!("c{number}"), &[site.page(number)]).await;
    }
    let mut delivered = Vec::new();
    for _ in 0..2 * CRAWLS {
        let posted = receiver.next().await;
        delivered.push(posted.header("x-trawl-delivery").to_owned());
        posted.answer.send(StatusCode::OK).unwrap();
        held.extend(silent.posted.try_recv());
    }
    delivered.sort_unstable();
    let all = (0..CRAWLS).flat_map(|number| ["finished", "started"].map(|what| format!("c{number}.{what}")));
    assert_eq!(delivered, all.collect::<Vec<_>>());
    held.push(silent.next().await);
    drop(held);
    ends_well(worker).await;
}

/// The file of a spider with a webhook.
fn spider_with(receiver: &Receiver, start: &str) -> String {
    format!("[start]\nurls = [\"{start}\"]\n{}", receiver.section("crawl.finished"))
}

#[tokio::test]
async fn a_webhook_in_a_spiders_file_receives_the_crawls_of_that_spider_only() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let (mut own, mut all) = (Receiver::serve().await, Receiver::serve().await);
    webhooks(&fleet, &[all.section("crawl.finished")]);
    let spiders = fleet.folder.path().join("spiders");
    fs::write(spiders.join(format!("{}.toml", fleet.name)), spider_with(&own, &site.page(0))).unwrap();
    let worker = fleet.worker(&[HOOK]);
    feed_as(&fleet, "default", "other", &[site.page(0)]).await;
    let posted = all.next().await;
    assert_eq!(posted.event()["crawl"], "other");
    posted.answer.send(StatusCode::OK).unwrap();
    feed(&fleet, "c1", &[site.page(0)]).await;
    for receiver in [&mut all, &mut own] {
        let posted = receiver.next().await;
        assert!(posted.is_signed());
        assert_eq!(
            posted.header("x-trawl-delivery"),
            "c1.finished",
            "the crawl of the other spider is not posted here"
        );
        posted.answer.send(StatusCode::OK).unwrap();
    }
    ends_well(worker).await;
}

#[tokio::test]
async fn the_webhook_of_a_deployed_spider_is_posted_by_a_worker_without_its_file() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let mut receiver = Receiver::serve().await;
    let elsewhere = fleet.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("books.toml"), spider_with(&receiver, &site.page(0))).unwrap();
    let settings = "[spiders]\nvariables = [\"HOOK\"]\n";
    fs::write(fleet.folder.path().join("trawl.toml"), settings).unwrap();
    run(fleet.command(&["spider", "push", "elsewhere/books.toml"]), 0).await;
    let worker = fleet.worker(&[HOOK]);
    run(fleet.command(&["jobs", "submit", "books"]), 0).await;
    let posted = receiver.next().await;
    assert!(posted.is_signed());
    let event = posted.event();
    assert_eq!((&event["spider"], &event["done"]), (&"books".into(), &1.into()));
    posted.answer.send(StatusCode::OK).unwrap();
    ends_well(worker).await;
}

#[tokio::test]
async fn a_worker_without_the_secret_of_a_webhook_does_not_start_and_names_the_secret() {
    let (fleet, receiver) = (Fleet::new().await, Receiver::serve().await);
    webhooks(&fleet, &[receiver.section("#")]);
    let started = output(fleet.command(&["worker", "-q"])).await;
    let error = String::from_utf8(started.stderr).unwrap();
    assert_eq!(started.status.code(), Some(2), "{error}");
    assert!(error.contains(&receiver.url) && error.contains("HOOK"), "{error}");
}
