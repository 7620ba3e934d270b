//! Hosts are requested as politely as they demand, by one process and by a fleet, judged by what the hosts saw.

mod programs;
mod sources;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use trawl_testkit::many_hosts::{Arrival, ManyHosts, Plan, Robots};

use crate::support::{Fleet, LIMIT, ends_well};

/// The engine that crawls.
#[derive(Clone, Copy)]
enum Engine {
    Embedded,
    Fleet,
}

/// Makes two tests of each function: one crawls with one process, the other with a fleet.
macro_rules! on_both_engines {
    ($($test:ident)*) => {
        mod embedded { $(
            #[tokio::test]
            async fn $test() { super::$test(super::Engine::Embedded).await }
        )* }
        mod fleet { $(
            #[tokio::test]
            async fn $test() { super::$test(super::Engine::Fleet).await }
        )* }
    };
}
pub(crate) use on_both_engines;

on_both_engines! {
    what_robots_txt_forbids_is_skipped_and_never_asked_for
    robots_txt_is_asked_for_once_and_comes_first
    while_robots_txt_cannot_be_read_nothing_is_asked_of_its_host
    a_host_that_refuses_is_left_alone_and_no_url_fails
    a_redirect_is_asked_for_like_any_url
    a_redirect_to_what_was_seen_is_skipped
    no_more_requests_are_under_way_than_settings_allow
    one_worker_asks_all_hosts_together_no_more_often_than_its_ceiling
    a_host_is_never_asked_more_often_than_its_rate
    a_rate_that_no_timer_is_fine_enough_for_is_kept_and_the_crawl_ends
    hosts_of_a_group_share_a_rate
    a_host_that_many_robots_txt_redirect_to_is_asked_at_its_rate
    a_crawl_delay_slows_and_is_bounded
    hosts_that_never_answer_keep_no_other_waiting
    hosts_whose_robots_txt_never_comes_keep_no_other_waiting
}

/// Crawls a list of URLs to its end, and returns the stats.
async fn crawl(engine: Engine, urls: &[String], settings: &[(&str, &str)]) -> Value {
    crawl_with(engine, urls, settings, "").await
}

/// Crawls a list of URLs with a settings file, and returns the stats.
async fn crawl_with(engine: Engine, urls: &[String], settings: &[(&str, &str)], file: &str) -> Value {
    let fleet = Fleet::new().await;
    fs::write(fleet.folder.path().join("trawl.toml"), file).unwrap();
    match engine {
        Engine::Embedded => {
            fs::write(fleet.folder.path().join("list.txt"), urls.join("\n")).unwrap();
            let mut command = fleet.command(&["crawl", "list.txt", "--json", "-q"]);
            command.env_remove("RABBITMQ_URL").env_remove("REDIS_URL").envs(settings.iter().copied());
            let output = timeout(LIMIT, command.output()).await.unwrap().unwrap();
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
        }
        Engine::Fleet => {
            let (stats, worker) = crawl_by(&fleet, urls, settings).await;
            ends_well(worker).await;
            stats
        }
    }
}

/// Crawls a list of URLs with a fleet of one worker, which keeps running.
async fn crawl_by(
    fleet: &Fleet,
    urls: &[String],
    settings: &[(&str, &str)],
) -> (Value, tokio::process::Child) {
    fs::write(fleet.folder.path().join("list.txt"), urls.join("\n")).unwrap();
    let worker = fleet.worker(settings);
    let mut producer = fleet.producer("list.txt");
    timeout(LIMIT, producer.envs(settings.iter().copied()).status()).await.unwrap().unwrap();
    let printed = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    let stats: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(stats["done"], fleet.items().await.len());
    (stats, worker)
}

fn paths(log: &[Arrival], host: usize) -> Vec<&str> {
    log.iter().filter(|arrival| arrival.host == host).map(|arrival| arrival.path.as_str()).collect()
}

fn times(log: &[Arrival]) -> Vec<Duration> {
    log.iter().map(|arrival| arrival.at).collect()
}

/// A rate whose interval is long beside the delays of a busy machine.
const SLOW: &str = "2/s";
const SLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Checks that requests came at this interval: all of them, and any two to four in a row. The latter may be closer by
/// an eighth if a request before them was late, and one may be late by the delays of this machine.
fn assert_paced(times: &[Duration], interval: Duration) {
    let took = times[times.len() - 1] - times[0];
    assert!(took + interval / 4 >= interval * (times.len() as u32 - 1), "{took:?}: {times:?}");
    for count in 2..=4 {
        assert_spread(times, count, (count as u32 - 1) * interval * 7 / 8 - interval / 2);
    }
}

/// Checks that any `count` in a row took at least this long.
fn assert_spread(times: &[Duration], count: usize, least: Duration) {
    for some in times.windows(count) {
        let took = some[count - 1] - some[0];
        assert!(took >= least, "{count} in {took:?}: {times:?}");
    }
}

#[test]
#[should_panic(expected = "2 in 1ms")]
fn two_requests_at_once_are_not_paced_however_late_the_others_come() {
    let times = [0, 1_000, 1_001, 3_000, 4_000, 5_000].map(Duration::from_millis);
    assert_paced(&times, Duration::from_millis(1_000));
}

async fn what_robots_txt_forbids_is_skipped_and_never_asked_for(engine: Engine) {
    let text = "User-agent: other\nDisallow: /\n\nUser-agent: trawl\nDisallow: /page/1\nAllow: /page/12$\n";
    let robots = Some(Robots::Text(text.to_owned()));
    let world = ManyHosts::serve(&[Plan { pages: 20, robots, ..Plan::default() }]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[]).await;
    // Pages 1 and 10 to 19, except 12.
    assert_eq!((&stats["done"], &stats["skipped"]), (&10.into(), &10.into()), "{stats}");
    let log = world.log();
    let asked = paths(&log, 0);
    assert!(asked.contains(&"/page/12") && asked.contains(&"/page/2") && asked.len() == 11, "{asked:?}");
}

async fn robots_txt_is_asked_for_once_and_comes_first(engine: Engine) {
    let world = ManyHosts::serve(&vec![Plan { pages: 10, ..Plan::default() }; 5]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[]).await;
    assert_eq!(&stats["done"], 50, "{stats}");
    let log = world.log();
    for host in 0..5 {
        let asked = paths(&log, host);
        assert_eq!((asked[0], asked.len()), ("/robots.txt", 11), "{asked:?}");
        assert!(!asked[1..].contains(&"/robots.txt"), "{asked:?}");
    }
}

async fn while_robots_txt_cannot_be_read_nothing_is_asked_of_its_host(engine: Engine) {
    let robots = Some(Robots::Fails(500, 2));
    let world = ManyHosts::serve(&[Plan { pages: 5, robots, ..Plan::default() }]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__RETRY__BACKOFF", "1s")]).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&5.into(), &0.into()), "{stats}");
    let log = world.log();
    let asked = paths(&log, 0);
    assert_eq!(asked[..3], ["/robots.txt"; 3]);
    assert_eq!(asked.len(), 8, "{asked:?}");
}

async fn a_host_that_refuses_is_left_alone_and_no_url_fails(engine: Engine) {
    let world =
        ManyHosts::serve(&[Plan { pages: 6, refuses: Some((2, 2)), ..Plan::default() }]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__POLITENESS__CONCURRENCY", "1")]).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&6.into(), &0.into()), "{stats}");
    // robots.txt, two refusals, then pages.
    let times = times(&world.log());
    assert_eq!(times.len(), 1 + 2 + 6);
    for refusal in [1, 2] {
        let left_alone = times[refusal + 1] - times[refusal];
        assert!(left_alone >= Duration::from_millis(1_990), "{left_alone:?}");
    }
}

async fn a_redirect_is_asked_for_like_any_url(engine: Engine) {
    let robots = Some(Robots::Text("User-agent: *\nDisallow: /page/1\n".to_owned()));
    let world =
        ManyHosts::serve(&[Plan::default(), Plan { pages: 4, robots, ..Plan::default() }]).await.unwrap();
    let urls: Vec<String> = (0..4).map(|page| world.url(0, &format!("/to/{page}"))).collect();
    let stats = crawl(engine, &urls, &[]).await;
    assert_eq!(
        (&stats["done"], &stats["skipped"], &stats["admitted"]),
        (&3.into(), &1.into(), &4.into()),
        "{stats}"
    );
    let log = world.log();
    let mut asked = paths(&log, 1);
    assert_eq!(asked.remove(0), "/robots.txt");
    asked.sort_unstable();
    assert_eq!(asked, ["/page/0", "/page/2", "/page/3"]);
    assert_eq!(paths(&log, 0).len(), 5, "its robots.txt, and each URL once");
}

async fn a_redirect_to_what_was_seen_is_skipped(engine: Engine) {
    let world = ManyHosts::serve(&[Plan::default(), Plan { pages: 2, ..Plan::default() }]).await.unwrap();
    let urls = [world.url(0, "/to/1"), world.url(1, "/page/1"), world.url(0, "/to/0")];
    let stats = crawl(engine, &urls, &[]).await;
    assert_eq!((&stats["done"], &stats["skipped"]), (&2.into(), &1.into()), "{stats}");
    let log = world.log();
    let mut asked = paths(&log, 1);
    asked.sort_unstable();
    assert_eq!(asked, ["/page/0", "/page/1", "/robots.txt"]);
}

/// Another spider, which heeds no robots.txt, may have been led there.
#[tokio::test]
async fn a_cached_redirect_leads_to_no_page_that_robots_txt_forbids() {
    let robots = Some(Robots::Text("User-agent: *\nDisallow: /page/1\n".to_owned()));
    let world = ManyHosts::serve(&[Plan { pages: 2, robots, ..Plan::default() }]).await.unwrap();
    let fleet = Fleet::new().await;
    let (url, forbidden) = (world.url(0, "/page/0"), world.url(0, "/page/1"));
    let cached = format!(
        r#"{{"status":200,"redirected_to":"{forbidden}","fetched_at":1,"address":null,"length":3,"encoding":"plain"}}"#
    );
    let redis = redis::Client::open(fleet.redis.reveal()).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("SET");
    set.arg(format!("content:{url}")).arg(format!("{cached}\n<p>"));
    let () = set.query_async(&mut redis).await.unwrap();
    let (stats, worker) = crawl_by(&fleet, &[url], &[]).await;
    ends_well(worker).await;
    assert_eq!(&stats["done"], 1, "{stats}");
    assert_eq!(paths(&world.log(), 0), ["/robots.txt", "/page/0"]);
}

#[tokio::test]
async fn redirects_of_another_site_are_followed_once_and_make_no_page_of_this_one_seen() {
    let world = ManyHosts::serve(&[Plan::default(), Plan { pages: 1, ..Plan::default() }]).await.unwrap();
    let fleet = Fleet::new().await;
    let worker = fleet.worker(&[]);
    let spider = format!("--spider={}", fleet.name);
    let sources = [world.url(0, "/to/0"), world.url(0, "/to/0?again"), world.url(1, "/page/0")];
    for (number, (url, key)) in sources.iter().zip(["done", "skipped", "done"]).enumerate() {
        fs::write(fleet.folder.path().join("list.txt"), url).unwrap();
        let crawl = format!("crawl{number}");
        let produce = ["producer", "list.txt", &spider, "--crawl", &crawl, "--wait", "-q"];
        assert!(timeout(LIMIT, fleet.command(&produce).status()).await.unwrap().unwrap().success());
        let printed = fleet.command(&["status", &crawl, "--json"]).output().await.unwrap();
        let stats: Value = serde_json::from_slice(&printed.stdout).unwrap();
        assert_eq!(&stats[key], 1, "{url}: {stats}");
    }
    ends_well(worker).await;
    assert_eq!(paths(&world.log(), 1), ["/robots.txt", "/page/0", "/page/0"]);
}

async fn no_more_requests_are_under_way_than_settings_allow(engine: Engine) {
    let plan = Plan { pages: 40, latency: Duration::from_millis(20), ..Plan::default() };
    let world = ManyHosts::serve(&[plan.clone(), plan]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__POLITENESS__CONCURRENCY", "3")]).await;
    assert_eq!(&stats["done"], 80, "{stats}");
    for host in 0..2 {
        assert!((2..=3).contains(&world.most_under_way(host)), "{}", world.most_under_way(host));
    }
}

async fn a_host_is_never_asked_more_often_than_its_rate(engine: Engine) {
    let world = ManyHosts::serve(&vec![Plan { pages: 12, ..Plan::default() }; 4]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__POLITENESS__RATE", SLOW)]).await;
    assert_eq!(&stats["done"], 48, "{stats}");
    for host in 0..4 {
        let log: Vec<Arrival> = world.log().into_iter().filter(|arrival| arrival.host == host).collect();
        // Including robots.txt.
        assert_eq!(log.len(), 13);
        assert_paced(&times(&log), SLOW_INTERVAL);
    }
}

async fn a_rate_that_no_timer_is_fine_enough_for_is_kept_and_the_crawl_ends(engine: Engine) {
    let world = ManyHosts::serve(&[Plan { pages: 400, ..Plan::default() }]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__POLITENESS__RATE", "500/s")]).await;
    assert_eq!(&stats["done"], 400, "{stats}");
    let times = times(&world.log());
    let took = times[400] - times[0];
    // 400 intervals of 2 ms, minus the requests allowed within one quantum.
    assert!(took >= Duration::from_millis(750), "{took:?}");
    // Half of the intervals, minus possible delays of this machine.
    assert_spread(&times, 201, Duration::from_millis(250));
}

async fn hosts_of_a_group_share_a_rate(engine: Engine) {
    let world = ManyHosts::serve(&vec![Plan { pages: 5, ..Plan::default() }; 2]).await.unwrap();
    let hosts = [world.host(0), world.host(1)];
    let file = format!("[[politeness.host]]\nhost = {hosts:?}\nrate = \"{SLOW}\"\ngroup = \"one\"\n");
    let stats = crawl_with(engine, &world.pages(), &[], &file).await;
    assert_eq!(&stats["done"], 10, "{stats}");
    assert_eq!(world.log().len(), 12);
    assert_paced(&times(&world.log()), SLOW_INTERVAL);
}

async fn a_host_that_many_robots_txt_redirect_to_is_asked_at_its_rate(engine: Engine) {
    let origin = Plan { pages: 1, robots: Some(Robots::At(0)), ..Plan::default() };
    let victim =
        Plan { robots: Some(Robots::Text("User-agent: *\nAllow: /\n".to_owned())), ..Plan::default() };
    let world = ManyHosts::serve(&[vec![victim], vec![origin; 20]].concat()).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__POLITENESS__RATE", SLOW)]).await;
    assert_eq!(&stats["done"], 20, "{stats}");
    let log = world.log();
    assert_eq!(paths(&log, 0), ["/robots.txt"; 20]);
    for host in 1..=20 {
        assert_eq!(paths(&log, host), ["/robots.txt", "/page/0"]);
    }
    let victims: Vec<Arrival> = log.into_iter().filter(|arrival| arrival.host == 0).collect();
    assert_paced(&times(&victims), SLOW_INTERVAL);
}

async fn a_crawl_delay_slows_and_is_bounded(engine: Engine) {
    let plan = |delay: &str| Plan {
        pages: 3,
        robots: Some(Robots::Text(format!("User-agent: *\nCrawl-delay: {delay}\nDisallow:\n"))),
        ..Plan::default()
    };
    let world = ManyHosts::serve(&[plan("0.5"), plan("86400")]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__POLITENESS__MAX_CRAWL_DELAY", "1s")]).await;
    assert_eq!(&stats["done"], 6, "{stats}");
    for (host, delay) in [(0, 500), (1, 1_000)] {
        let log: Vec<Arrival> = world.log().into_iter().filter(|arrival| arrival.host == host).collect();
        // The delay was unknown before the file was read.
        assert_paced(&times(&log)[1..], Duration::from_millis(delay));
    }
}

async fn one_worker_asks_all_hosts_together_no_more_often_than_its_ceiling(engine: Engine) {
    let world = ManyHosts::serve(&vec![Plan { pages: 5, ..Plan::default() }; 4]).await.unwrap();
    let stats = crawl(engine, &world.pages(), &[("TRAWL__FETCH__MAX_RATE", "10/s")]).await;
    assert_eq!(&stats["done"], 20, "{stats}");
    let times = times(&world.log());
    let took = times[times.len() - 1] - times[0];
    // Four files and twenty pages; the first one may take longer to arrive than the last one.
    assert!(times.len() == 24 && took >= Duration::from_millis(23 * 100 - 200), "{took:?}");
    assert_spread(&times, 12, Duration::from_millis(11 * 100 - 200));
}

async fn hosts_that_never_answer_keep_no_other_waiting(engine: Engine) {
    let quick = Plan { pages: 300, ..Plan::default() };
    let silent = Plan { pages: 20, latency: Duration::from_secs(3600), ..Plan::default() };
    let world = ManyHosts::serve(&[vec![quick], vec![silent; 60]].concat()).await.unwrap();
    let pages = world.pages();
    tokio::select! {
        stats = crawl(engine, &pages, &[("TRAWL__FETCH__TIMEOUT", "1h")]) => panic!("{stats}"),
        asked = timeout(LIMIT, world.asked_of(0, 301)) => asked.unwrap(),
    }
}

async fn hosts_whose_robots_txt_never_comes_keep_no_other_waiting(engine: Engine) {
    let silent = Plan { pages: 10, robots: Some(Robots::Never), ..Plan::default() };
    let quick = Plan { pages: 300, ..Plan::default() };
    let world = ManyHosts::serve(&[vec![silent; 120], vec![quick]].concat()).await.unwrap();
    let mut pages = world.pages();
    pages.sort_by_key(|page| page.starts_with(&world.url(120, "/")));
    tokio::select! {
        stats = crawl(engine, &pages, &[("TRAWL__FETCH__TIMEOUT", "1h")]) => panic!("{stats}"),
        asked = timeout(LIMIT, world.asked_of(120, 301)) => asked.unwrap(),
    }
}

#[tokio::test]
async fn a_blocked_host_is_not_asked_and_its_urls_are_skipped() {
    let fleet = Fleet::new().await;
    let world = ManyHosts::serve(&vec![Plan { pages: 5, ..Plan::default() }; 2]).await.unwrap();
    let host = world.host(1);
    assert!(fleet.command(&["hosts", "block", &host]).status().await.unwrap().success());
    let (stats, worker) = crawl_by(&fleet, &world.pages(), &[]).await;
    assert_eq!((&stats["done"], &stats["skipped"]), (&5.into(), &5.into()), "{stats}");
    assert_eq!(paths(&world.log(), 1), [""; 0]);
    let listed = fleet.command(&["hosts", "list", "--json"]).output().await.unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let hosts: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let blocked = hosts.iter().find(|state| state["host"] == host.as_str()).unwrap();
    assert!(blocked["blocked"].as_str().unwrap().ends_with('Z') && hosts.len() == 2, "{listed}");
    assert!(fleet.command(&["hosts", "unblock", &host]).status().await.unwrap().success());
    ends_well(worker).await;
}

#[tokio::test]
async fn a_blocked_host_is_not_asked_for_the_robots_txt_of_another() {
    let fleet = Fleet::new().await;
    let origin = Plan { pages: 3, robots: Some(Robots::At(0)), ..Plan::default() };
    let world = ManyHosts::serve(&[Plan::default(), origin]).await.unwrap();
    assert!(fleet.command(&["hosts", "block", &world.host(0)]).status().await.unwrap().success());
    // Each URL finds out for itself: none is taken while another waits.
    let one_by_one = [("TRAWL__WORKER__PREFETCH", "1")];
    let (stats, worker) = crawl_by(&fleet, &world.pages(), &one_by_one).await;
    assert_eq!((&stats["skipped"], &stats["failed"]), (&3.into(), &0.into()), "{stats}");
    let log = world.log();
    assert_eq!((paths(&log, 0), paths(&log, 1)), (vec![], vec!["/robots.txt"]));
    ends_well(worker).await;
}

#[tokio::test]
async fn a_url_without_a_slot_before_its_deadline_expires_at_once() {
    let fleet = Fleet::new().await;
    let world = ManyHosts::serve(&[Plan { pages: 4, ..Plan::default() }]).await.unwrap();
    let rule = "[[route]]\nlane = \"bulk\"\nttl = \"30m\"\n";
    fs::write(fleet.folder.path().join("trawl.toml"), rule).unwrap();
    let settings = [("TRAWL__POLITENESS__RATE", "1/h"), ("TRAWL__POLITENESS__BURST", "3")];
    let (stats, worker) = crawl_by(&fleet, &world.pages(), &settings).await;
    // One of the burst is used for robots.txt.
    assert_eq!(
        (&stats["status"], &stats["done"], &stats["expired"]),
        (&"finished".into(), &2.into(), &2.into()),
        "{stats}"
    );
    ends_well(worker).await;
}
