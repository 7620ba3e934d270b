//! Tests of the proxy as a program uses it, with real hosts on this machine.

mod limits;
mod messages;
mod timeouts;
mod tunnels;

use std::time::Duration;

use data_encoding::BASE64;
use tokio::io::{AsyncBufReadExt, AsyncRead};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use trawl_backends::embedded::Embedded;
use trawl_common::settings::Items;
use trawl_common::spider::{Handler, Mode};
use trawl_common::web::host::HostKey;
use trawl_testkit::many_hosts::{ManyHosts, Plan, Robots};

use super::*;
use crate::tests::ports::Memory;

/// A time that no step takes.
const LIMIT: Duration = Duration::from_secs(20);

/// A proxy, the engine with the schedules of its hosts, and access for one program.
struct Fixture {
    engine: Embedded,
    proxy: Arc<HandlerProxy>,
    access: Arc<dyn ProxyAccess>,
}

impl Fixture {
    /// Returns a proxy that may send requests to this machine, at any rate, and ignores robots.txt, except
    /// for the settings changed by `set`.
    fn new(set: impl FnOnce(&mut Settings)) -> Self {
        let engine = Embedded::in_memory().unwrap();
        let (proxy, spider, fetcher) = proxy(engine.hosts(), set);
        let access = proxy.access(&spider, &fetcher).unwrap().unwrap();
        Self { engine, proxy, access }
    }

    fn run(&self) -> Admitted {
        Admitted::new(self.access.admit(None).unwrap())
    }

    async fn requests_under_way(&self, host: &str) -> u64 {
        let control = self.engine.host_control();
        control.host(&HostKey::from_text(host)).await.unwrap().map_or(0, |host| host.under_way)
    }
}

/// Returns a proxy with the schedules in `hosts`, a spider whose program uses it, and its client.
fn proxy(hosts: Arc<dyn Hosts>, set: impl FnOnce(&mut Settings)) -> (Arc<HandlerProxy>, Spider, Fetcher) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut settings = Settings::default();
    settings.fetch.allow_private = true;
    settings.politeness.robots = false;
    settings.politeness.rate = "unlimited".parse().unwrap();
    set(&mut settings);
    let mut spider = Spider::without_file("shop".parse().unwrap(), &Items::default());
    spider.handler = Some(Handler::new(vec!["true".to_owned()], Mode::Once));
    let fetcher = Fetcher::from_spider(&spider, &settings.fetch).unwrap();
    (HandlerProxy::alone(Arc::new(settings), hosts), spider, fetcher)
}

/// Returns a proxy and a run of the spider's program. Schedules are in memory, so only the test's own time
/// passes.
pub(super) fn in_test_time(set: impl FnOnce(&mut Settings)) -> (Arc<HandlerProxy>, Arc<Run>) {
    let (proxy, spider, fetcher) = proxy(Arc::new(Memory::default()), set);
    let own = AsSpider::new(&spider, proxy.settings(), fetcher.clone());
    let user = Arc::new(User { own, passage: fetcher.passage().unwrap() });
    (proxy, Arc::new(Run::new(user, None, None, CancellationToken::new())))
}

/// A run that may use the proxy.
struct Admitted {
    address: String,
    login: String,
    _admission: Admission,
}

/// A response.
#[derive(Debug)]
struct Got {
    status: u16,
    head: String,
    body: String,
}

impl Admitted {
    fn new(admission: Admission) -> Self {
        let rest = admission.url.strip_prefix("http://").unwrap();
        let (login, address) = rest.split_once('@').unwrap();
        Self { address: address.to_owned(), login: BASE64.encode(login.as_bytes()), _admission: admission }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).await.unwrap()
    }

    /// Returns the head of a request of this run.
    fn head(&self, line: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic {}\r\n\r\n", self.login)
    }

    async fn get(&self, url: &str) -> Got {
        let mut stream = BufReader::new(self.connect().await);
        stream.write_all(self.head(&format!("GET {url}")).as_bytes()).await.unwrap();
        read(&mut stream).await
    }
}

/// Reads one response that states its length.
async fn read(stream: &mut BufReader<impl AsyncRead + Unpin>) -> Got {
    let reading = async {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).await.unwrap() > 0, "the connection ended: {head}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let lower = head.to_lowercase();
        let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.unwrap();
        Got { status, head: lower, body: String::from_utf8(body).unwrap() }
    };
    timeout(LIMIT, reading).await.unwrap()
}

async fn site(plan: Plan) -> ManyHosts {
    ManyHosts::serve(&[plan]).await.unwrap()
}

fn pages() -> Plan {
    Plan { pages: 100, ..Plan::default() }
}

#[tokio::test]
async fn a_request_is_sent_on_and_its_answer_comes_back_as_it_is() {
    let (site, fixture) = (site(pages()).await, Fixture::new(|_| {}));
    let run = fixture.run();
    let got = run.get(&site.url(0, "/page/7")).await;
    assert_eq!((got.status, got.body.contains("<title>Page 7</title>")), (200, true), "{got:?}");
    let got = run.get(&site.url(0, "/none")).await;
    assert_eq!((got.status, got.head.contains("proxy-status")), (404, false), "{got:?}");
}

#[tokio::test]
async fn only_a_run_that_lasts_may_use_it() {
    let (site, fixture) = (site(pages()).await, Fixture::new(|_| {}));
    let (run, url) = (fixture.run(), site.url(0, "/page/1"));
    let stranger = |login: &str| Admitted {
        address: run.address.clone(),
        login: login.to_owned(),
        _admission: fixture.access.admit(None).unwrap(),
    };
    let name = String::from_utf8(BASE64.decode(run.login.as_bytes()).unwrap()).unwrap();
    let name = name.split(':').next().unwrap();
    for login in ["", "eA==", "%", &BASE64.encode(format!("{name}:{}", "0".repeat(32)).as_bytes())] {
        let got = stranger(login).get(&url).await;
        assert_eq!((got.status, got.head.contains("proxy-authenticate: basic")), (407, true), "{got:?}");
    }
    let mut kept = BufReader::new(run.connect().await);
    kept.write_all(run.head(&format!("GET {url}")).as_bytes()).await.unwrap();
    assert_eq!(read(&mut kept).await.status, 200);
    let after = Admitted {
        _admission: fixture.access.admit(None).unwrap(),
        login: run.login.clone(),
        ..stranger("")
    };
    drop(run);
    assert_eq!(timeout(LIMIT, kept.read(&mut [0])).await.unwrap().unwrap(), 0, "its connections end with it");
    assert_eq!(after.get(&url).await.status, 407);
    assert_eq!(site.log().len(), 1);
}

#[tokio::test]
async fn requests_wait_for_slots_of_their_host() {
    let (site, fixture) =
        (site(pages()).await, Fixture::new(|settings| settings.politeness.rate = "20/s".parse().unwrap()));
    let run = fixture.run();
    let asking = (0..6).map(|page| site.url(0, &format!("/page/{page}"))).map(|url| {
        let run = &run;
        async move { run.get(&url).await.status }
    });
    let statuses = futures::future::join_all(asking).await;
    assert_eq!(statuses, [200; 6]);
    let log = site.log();
    let took = log[5].at - log[0].at;
    assert!(took >= Duration::from_millis(5 * 50 * 7 / 8), "{took:?}");
}

#[tokio::test]
async fn robots_txt_is_obeyed_as_the_spider_obeys_it() {
    let robots = Some(Robots::Text("User-agent: *\nDisallow: /page/1\n".to_owned()));
    let site = site(Plan { robots, ..pages() }).await;
    let fixture = Fixture::new(|settings| settings.politeness.robots = true);
    let run = fixture.run();
    let got = run.get(&site.url(0, "/page/1")).await;
    assert_eq!((got.status, got.body.contains("robots.txt forbids it to trawl")), (403, true), "{got:?}");
    assert!(got.head.contains("proxy-status: trawl; error=http_request_denied"), "{got:?}");
    assert_eq!(run.get(&site.url(0, "/page/2")).await.status, 200);
    let asked: Vec<String> = site.log().into_iter().map(|arrival| arrival.path).collect();
    assert_eq!(asked, ["/robots.txt", "/page/2"]);
}

#[tokio::test]
async fn a_blocked_host_is_not_asked() {
    let (site, fixture) = (site(pages()).await, Fixture::new(|_| {}));
    fixture.engine.host_control().block(&HostKey::from_text(&site.host(0))).await.unwrap();
    let run = fixture.run();
    let got = run.get(&site.url(0, "/page/1")).await;
    assert_eq!((got.status, got.body.contains("trawl hosts unblock")), (403, true), "{got:?}");
    let line = format!("CONNECT {}", site.url(0, "").trim_start_matches("http://"));
    let mut stream = BufReader::new(run.connect().await);
    stream.write_all(run.head(&line).as_bytes()).await.unwrap();
    let got = read(&mut stream).await;
    assert_eq!((got.status, got.head.contains("403 trawl: ")), (403, true), "{got:?}");
    assert_eq!(site.log(), []);
}

#[tokio::test]
async fn a_host_that_refuses_is_left_alone_and_the_program_gets_its_answer() {
    let site = site(Plan { refuses: Some((1, 600)), ..pages() }).await;
    let fixture = Fixture::new(|_| {});
    let run = fixture.run();
    let got = run.get(&site.url(0, "/page/1")).await;
    assert_eq!((got.status, got.head.contains("retry-after: 600")), (429, true), "{got:?}");
    let control = fixture.engine.host_control();
    let state = control.host(&HostKey::from_text(&site.host(0))).await.unwrap().unwrap();
    assert_eq!(state.backoff.unwrap().status, 429);
    let got = run.get(&site.url(0, "/page/1")).await;
    assert_eq!((got.status, got.head.contains("proxy-status: trawl")), (503, true), "{got:?}");
    // Slots are reserved half a minute ahead.
    let after = got.head.split("retry-after: ").nth(1).unwrap().lines().next().unwrap();
    assert!((560..=600).contains(&after.parse::<u64>().unwrap()), "{got:?}");
    assert_eq!(site.log().len(), 1);
}

#[tokio::test]
async fn what_settings_do_not_allow_is_refused_before_any_host_is_asked() {
    let fixture = Fixture::new(|settings| settings.fetch.allow_private = false);
    let run = fixture.run();
    for url in ["http://127.0.0.1/", "http://10.1.2.3/", "http://169.254.169.254/", "http://localhost/"] {
        let got = run.get(url).await;
        assert_eq!((got.status, got.body.contains("not a public address")), (403, true), "{url}: {got:?}");
    }
    assert_eq!(run.get("http://127.0.0.1:22/").await.status, 403);
    let mut stream = BufReader::new(run.connect().await);
    stream.write_all(run.head("CONNECT [::ffff:10.0.0.1]:443").as_bytes()).await.unwrap();
    assert_eq!(read(&mut stream).await.status, 403);
    assert_eq!(fixture.engine.host_control().hosts().await.unwrap(), []);
}

#[tokio::test]
async fn it_leads_neither_to_itself_nor_to_the_metrics() {
    let metrics = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listen = metrics.local_addr().unwrap();
    let fixture = Fixture::new(|settings| {
        settings.metrics.listen = Some(([0; 4], listen.port()).into());
        settings.fetch.ports = vec!["1-65535".parse().unwrap()];
    });
    let run = fixture.run();
    for url in [format!("http://{}/", run.address), format!("http://{listen}/metrics")] {
        let got = run.get(&url).await;
        assert_eq!((got.status, got.body.contains("is the worker itself")), (403, true), "{got:?}");
    }
    let mut stream = BufReader::new(run.connect().await);
    stream.write_all(run.head(&format!("CONNECT {}", run.address)).as_bytes()).await.unwrap();
    assert_eq!(read(&mut stream).await.status, 403);
}

#[tokio::test]
async fn what_is_no_request_to_a_proxy_is_refused() {
    let fixture = Fixture::new(|_| {});
    let run = fixture.run();
    for line in ["GET /page", "GET ftp://x/", "CONNECT x", "CONNECT a@x:443", "OPTIONS *"] {
        let mut stream = BufReader::new(run.connect().await);
        stream.write_all(run.head(line).as_bytes()).await.unwrap();
        assert_eq!(read(&mut stream).await.status, 400, "{line}");
    }
}
