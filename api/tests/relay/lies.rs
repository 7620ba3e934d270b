//! Runners that lie.

use std::sync::Arc;
use std::time::Duration;

use trawl_api::Backend;
use trawl_common::frontier::Task;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::logs::{LogEntry, LogLevel, TaskEnd};
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::politeness::gcra::BackoffTerms;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{
    Access, BackoffRequest, Claim as Held, Claimed, Completion, Disposition, ErrorKind, Finish, LogPlace,
    NewWork, Page, RobotsEntry, RunnerKey, Terms,
};
use trawl_common::project::{VersionReport, VersionResult, Wanted};
use trawl_common::relay::{
    Call, Claim, HasSeen, JoinFleet, KeepRobots, Leave, Log, Look, NoteVersion, Outcome, Progress, PushBack,
    Put, ReadSession, Recorded, Robots, Settle, Text,
};
use trawl_common::session::{SessionId, SessionOwner};
use trawl_common::settings::Settings;
use trawl_common::spider::item::{Change, Item};
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;
use trawl_runner::CallError;

use crate::fixture::{Runner, Serving};
use crate::support;

/// A runner that makes its calls by hand.
pub(crate) struct Liar {
    pub(crate) runner: Runner,
    session: String,
}

impl Liar {
    pub(crate) async fn join(runner: Runner) -> Self {
        let joining = JoinFleet { process: 1, prefetch: 99, tasks: 20 };
        let session = runner.link.api().call(&joining, None, None).await.unwrap().session;
        Self { runner, session }
    }

    pub(crate) async fn call<C: Call>(&self, call: C) -> Result<C::Reply, CallError> {
        self.runner.link.api().call(&call, Some(&self.session), None).await
    }

    pub(crate) async fn claim(&self) -> Claimed {
        self.call(Claim { tasks: false, most: 1 }).await.unwrap().remove(0)
    }

    pub(crate) async fn settle(
        &self,
        message: &Message,
        completion: Completion,
    ) -> Result<Recorded, CallError> {
        let (claim, progress) = (Held::new(message), Progress::new(message));
        let disposition = Disposition::Finish(Box::new(completion));
        self.call(Settle { batch: vec![Outcome { claim, progress, disposition }] }).await
    }
}

pub(crate) fn done(message: &Message) -> Completion {
    Completion::new(Finish::new(Held::new(message), Terminal::Done))
}

/// Returns whether a call was refused as one that no honest runner makes.
pub(crate) fn is_refused<T>(result: &Result<T, CallError>) -> bool {
    matches!(result, Err(CallError::Failed(error)) if error.kind == ErrorKind::Refused)
}

fn url(text: &str) -> CanonicalUrl {
    text.parse().unwrap()
}

/// Submits tasks to the ad-hoc crawl of a spider.
pub(crate) async fn tasks(backend: &Backend, spider: &str, lines: &[&str]) {
    let spider: SpiderName = spider.parse().unwrap();
    let (_, session) =
        support::open(backend, &format!("adhoc.{spider}"), spider.as_str(), Terms::default()).await;
    let new = lines.iter().map(|line| NewWork::task(Task::new(&spider, NewTask::from_line(line).unwrap())));
    session.admit(&new.collect::<Vec<_>>()).await.unwrap();
}

async fn stats(backend: &Backend, id: &str) -> (u64, u64) {
    let id: CrawlId = id.parse().unwrap();
    let stats = backend.stats.crawl_stats(&id).await.unwrap().unwrap();
    (stats.counts.ended(), stats.pending)
}

#[tokio::test]
async fn results_for_what_another_holds_change_nothing() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 2, Terms::default()).await;
    let (honest, liar) = (serving.runner("honest").await, Liar::join(serving.runner("liar").await).await);
    let claimed = honest.join().claim(2).await;
    let message = &claimed[0].message;
    assert_eq!(liar.settle(message, done(message)).await.unwrap(), Recorded::default());
    let page = Page::new(message, vec![item(message)]);
    assert!(is_refused(&liar.call(Put { pages: vec![page] }).await));
    let seen = HasSeen { crawl: message.crawl.clone(), url: url("http://site.example/0") };
    assert_eq!(liar.call(seen).await, Ok(false));
    assert_eq!(stats(&serving.backend, "c1").await, (0, 2));
}

fn item(message: &Message) -> Item {
    Item {
        id: "1".repeat(32),
        url: message.work.to_string(),
        crawl: message.crawl.id.clone(),
        spider: message.crawl.spider.clone(),
        fetched_at: UnixMs::now().to_string(),
        status: 200,
        depth: 0,
        item: None,
        change: None,
        final_url: None,
        referrer: None,
        path: None,
        fields: Default::default(),
    }
}

#[tokio::test]
async fn items_of_another_spider_or_crawl_are_refused() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 1, Terms::default()).await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let Claimed { message, .. } = liar.claim().await;
    let put = async |item: Item| liar.call(Put { pages: vec![Page::new(&message, vec![item])] }).await;
    assert_eq!(put(item(&message)).await, Ok(()));
    assert!(is_refused(&put(Item { spider: "news".parse().unwrap(), ..item(&message) }).await));
    assert!(is_refused(&put(Item { crawl: "c2".parse().unwrap(), ..item(&message) }).await));
    let odd = [
        Item { id: "../x".to_owned(), ..item(&message) },
        Item { url: "javascript:x".to_owned(), ..item(&message) },
        Item { final_url: Some("javascript:x".to_owned()), ..item(&message) },
        Item { fetched_at: "\u{1b}[2J".to_owned(), ..item(&message) },
        Item { status: u16::MAX, ..item(&message) },
    ];
    for item in odd {
        assert!(is_refused(&put(item.clone()).await), "{item:?}");
    }
}

#[tokio::test]
async fn counts_that_no_page_has_are_refused() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 1, Terms::default()).await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let Claimed { message, .. } = liar.claim().await;
    let absurd = |change: fn(&mut Finish)| {
        let mut completion = done(&message);
        change(&mut completion.finish);
        completion
    };
    let lies: [fn(&mut Finish); 4] = [
        |finish| finish.bytes = u64::MAX,
        |finish| finish.items.duplicates = u64::MAX,
        |finish| finish.items.by_kind = [(String::new(), u64::MAX)].into(),
        |finish| finish.items.compared = Some((Change::New, u64::MAX)),
    ];
    for lie in lies {
        assert!(is_refused(&liar.settle(&message, absurd(lie)).await));
    }
}

#[tokio::test]
async fn what_a_lost_project_had_is_read_no_more() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 1, Terms::default()).await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let Claimed { message, .. } = liar.claim().await;
    let spider = message.crawl.spider.clone();
    let session = SessionId { owner: SessionOwner::Spider(spider), name: "1".into() };
    let read = async || liar.call(ReadSession { session: session.clone(), known: 0 }).await;
    assert_eq!(read().await, Ok(None));
    serving.allow("liar", "books", Access::Assign).await;
    serving.backend.runners.revoke(&"liar".parse().unwrap(), Some(&Default::default())).await.unwrap();
    crate::fixture::eventually(async || read().await.is_err()).await;
}

#[tokio::test]
async fn only_names_of_hosts_and_groups_are_pushed_back() {
    let serving = Serving::start().await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let long = "x".repeat(301);
    let odd = ["a b", "\u{1b}[2J", "<script>", &long, "@\u{1b}[2J"].map(|key| (key, false));
    let usual = ["site.example", "192.0.2.1/32", "2001:db8::/64", "@große <Seiten> 1"].map(|key| (key, true));
    for (key, is_one) in odd.into_iter().chain(usual) {
        let second = Duration::from_secs(1);
        let terms = BackoffTerms { asked: None, base: second, jitter: 0.0, most: second };
        let refusal = BackoffRequest { status: 429, terms, crawl: None };
        let pushed = liar.call(PushBack { key: HostKey::from_text(key), refusal }).await;
        assert_eq!((pushed.is_ok(), is_refused(&pushed)), (is_one, !is_one), "{key}");
    }
}

#[tokio::test]
async fn links_out_of_bounds_and_work_under_a_key_that_is_not_its_own_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = "allowed_domains = ['site.example']\n[follow]\ndepth = 9\n";
    std::fs::write(folder.path().join("shop.toml"), file).unwrap();
    let settings = Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() };
    let Serving { backend, .. } = &Serving::start().await;
    let backend = Backend { settings: settings.into(), ..backend.clone() };
    let serving = Serving::over(backend, "127.0.0.1:0").await;
    support::crawl(&serving.backend, "c1", "shop", 1, Terms::default()).await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let Claimed { message, crawl, .. } = liar.claim().await;
    assert!(crawl.terms.file.is_some(), "the runner is told to ask for the file");
    let text = liar.call(Text { crawl: message.crawl.clone() }).await.unwrap();
    assert_eq!(text.as_deref(), Some(file));
    let link = |text: &str| NewWork::seed(url(text), Default::default());
    let other: SpiderName = "other".parse().unwrap();
    let forged = Task::new(&other, NewTask::from_line(r#""1""#).unwrap());
    let links = vec![
        link("http://elsewhere.example/"),
        NewWork { depth: 4711, ..link("http://site.example/in-scope") },
        NewWork::task(forged),
        NewWork { written: Some(url("http://elsewhere.example/x")), ..link("http://site.example/spelled") },
    ];
    let recorded = liar.settle(&message, Completion { links, ..done(&message) }).await.unwrap();
    assert_eq!(recorded.ended.iter().map(|ended| ended.links.clone()).collect::<Vec<_>>(), [vec![1]]);
    let next = liar.claim().await.message;
    assert_eq!((next.work.as_str(), next.depth), ("http://site.example/in-scope", 1));
    assert_eq!(next.referrer, Some(message.key()));
}

#[tokio::test]
async fn work_for_a_project_to_which_a_runner_may_hand_nothing_is_a_failure_that_says_so() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 2, Terms::default()).await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let handed = |message: &Message| {
        let to: SpiderName = "news".parse().unwrap();
        let line = r#"{"recipe": "1", "project": "secret"}"#;
        let task = NewWork::task(Task::new(&to, NewTask::from_line(line).unwrap()));
        Completion { elsewhere: vec![(to, task)], ..done(message) }
    };
    let Claimed { message, .. } = liar.claim().await;
    liar.settle(&message, handed(&message)).await.unwrap();
    let failure = serving.backend.control.failure(&message.crawl, &message.key()).await.unwrap().unwrap();
    assert!(
        failure.cause.error.contains("trawl runner approve liar --project secret --submit"),
        "{failure:?}"
    );
    serving.allow("liar", "secret", Access::Submit).await;
    let Claimed { message, .. } = liar.claim().await;
    // The access is looked up once a second.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let recorded = liar.settle(&message, handed(&message)).await.unwrap();
    assert_eq!(recorded.ended[0].finish.terminal, Terminal::Done);
}

#[tokio::test]
async fn a_crawl_is_cancelled_by_people_alone() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 1, Terms::default()).await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let Claimed { message, .. } = liar.claim().await;
    let cancelled = Completion::new(Finish::new(Held::new(&message), Terminal::Cancelled));
    assert!(is_refused(&liar.settle(&message, cancelled).await));
    assert_eq!(stats(&serving.backend, "c1").await, (0, 1));
}

#[tokio::test]
async fn what_a_runner_has_no_work_for_it_may_not_read_or_write() {
    let serving = Serving::start().await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let spider: SpiderName = "shop".parse().unwrap();
    let session = SessionId { owner: SessionOwner::Spider(spider.clone()), name: "1".into() };
    let none = |result: &Result<_, CallError>| matches!(result, Err(CallError::Failed(error)) if error.is_temporary());
    assert!(none(&liar.call(ReadSession { session, known: 0 }).await));
    let shared = SessionId { owner: SessionOwner::Shared("all".into()), name: "1".into() };
    assert!(none(&liar.call(ReadSession { session: shared, known: 0 }).await));
    let pages = &serving.backend.pages;
    pages.know(&spider, &[(url("http://site.example/"), 1)]).await.unwrap();
    assert_eq!(liar.call(Look { spider, urls: vec![url("http://site.example/")] }).await, Ok(vec![None]));
    let key = RobotsKey::origin(&url("http://site.example/").origin());
    let file = RobotsFile { status: 200, body: "User-agent: *\nDisallow: /".into(), failure: None };
    liar.call(KeepRobots { key: key.clone(), file, ttl: Duration::from_secs(9) }).await.unwrap();
    assert_eq!(serving.backend.hosts.known_robots(&key).await.unwrap(), None, "another is asked to fetch it");
}

#[tokio::test]
async fn a_robots_txt_is_asked_of_runners_whose_work_leads_there_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.toml"), "allowed_domains = ['site.example']\n").unwrap();
    let settings = Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() };
    let (backend, _) = support::state_file(|_| Arc::new(|_, _, _| unreachable!("no page is tried")));
    let serving = Serving::over(Backend { settings: settings.into(), ..backend }, "127.0.0.1:0").await;
    let liar = Liar::join(serving.runner("liar").await).await;
    let key = |site: &str| RobotsKey::origin(&url(site).origin());
    let lease = Duration::from_secs(60);
    let ask = async |site: &str| liar.call(Robots { key: key(site), lease }).await.unwrap();
    let (own, bank) = ("https://www.site.example:8443/", "https://bank.example/");
    assert_eq!(ask(own).await, RobotsEntry::Awaited, "it has no work yet");
    support::crawl(&serving.backend, "c1", "shop", 1, Terms::default()).await;
    liar.claim().await;
    assert_eq!([ask(own).await, ask(bank).await], [RobotsEntry::Yours, RobotsEntry::Awaited]);
    for site in [own, bank] {
        let file = RobotsFile { status: 200, body: "User-agent: *\nDisallow: /".into(), failure: None };
        liar.call(KeepRobots { key: key(site), file, ttl: Duration::from_secs(9) }).await.unwrap();
    }
    let known = async |site: &str| serving.backend.hosts.known_robots(&key(site)).await.unwrap().is_some();
    assert_eq!([known(own).await, known(bank).await], [true, false]);
}

#[tokio::test]
async fn a_task_ends_once_however_often_a_runner_says_so() {
    let serving = Serving::start().await;
    let liar = Liar::join(serving.runner("liar").await).await;
    tasks(&serving.backend, "shop", &[r#""1""#]).await;
    let message = liar.call(Claim { tasks: true, most: 1 }).await.unwrap().remove(0).message;
    let end = || {
        let ended = TaskEnd {
            outcome: "done".to_owned(),
            took_ms: None,
            attempts: 1,
            items: 0,
            recipe: "1".to_owned(),
            recipe_bytes: 1,
        };
        let entry = LogEntry::new(&"liar".parse().unwrap(), LogLevel::Info, "it has ended");
        let (spider, crawl) = (Some(message.crawl.spider.clone()), Some(message.crawl.id.clone()));
        LogEntry { spider, crawl, key: Some(message.key().to_string()), ended: Some(ended), ..entry }
    };
    liar.call(Log { entries: vec![end(), end()], are_ends: true }).await.unwrap();
    liar.settle(&message, done(&message)).await.unwrap();
    liar.call(Log { entries: vec![end()], are_ends: true }).await.unwrap();
    assert_eq!(serving.backend.ended_tasks.before(LogPlace::END, 9).await.unwrap().lines.len(), 1);
}

#[tokio::test]
async fn the_file_of_a_spider_of_another_project_is_not_shown() {
    let serving = Serving::start().await;
    let (liar, name) = (Liar::join(serving.runner("liar").await).await, "liar".parse().unwrap());
    let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
    assert_eq!(liar.call(Text { crawl: crawl.clone() }).await, Ok(None), "it has no file");
    serving.allow("liar", "books", Access::Assign).await;
    serving.backend.runners.revoke(&name, Some(&Default::default())).await.unwrap();
    crate::fixture::eventually(async || {
        let asked = liar.call(Text { crawl: crawl.clone() }).await;
        matches!(asked, Err(CallError::Failed(error)) if error.kind == ErrorKind::Stale)
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_calls_is_slowed_down_and_holds_up_no_other_runner() {
    let serving = Serving::start().await;
    let (liar, honest) = (Liar::join(serving.runner("liar").await).await, serving.runner("honest").await);
    let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() };
    let mut slowed = 0;
    for _ in 0..2500 {
        let asked = liar.call(Text { crawl: crawl.clone() }).await;
        slowed += u32::from(matches!(asked, Err(CallError::Away(why)) if why.contains("429")));
    }
    assert!(slowed > 0);
    assert!(honest.link.register().await.is_ok());
}

#[tokio::test]
async fn a_call_without_its_key_or_in_a_session_that_has_ended_is_refused() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 1, Terms::default()).await;
    let liar = Liar::join(serving.runner("r1").await).await;
    let Claimed { message, .. } = liar.claim().await;
    let thief = serving.known("r1".parse().unwrap(), RunnerKey::generate());
    let leave = thief.link.api().call(&Leave {}, Some(&liar.session), None).await;
    assert!(matches!(leave, Err(CallError::NotAllowed(_))), "{leave:?}");
    let unknown = liar.runner.link.api().call(&Leave {}, Some("0123"), None).await;
    assert_eq!(unknown, Err(CallError::NoSession));
    liar.call(Leave {}).await.unwrap();
    assert_eq!(liar.settle(&message, done(&message)).await, Err(CallError::NoSession), "a replayed call");
    assert_eq!(stats(&serving.backend, "c1").await, (0, 1));
}

#[tokio::test]
async fn a_body_that_is_too_large_or_no_call_is_refused() {
    let serving = Serving::start().await;
    let Liar { runner, session } = Liar::join(serving.runner("r1").await).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = |body: reqwest::Body| {
        client
            .post(format!("http://{}/api/v1/runner/settle", serving.address))
            .bearer_auth(runner.key.reveal())
            .header("trawl-runner", "r1")
            .header("trawl-session", &session)
            .body(body)
            .send()
    };
    for (body, status) in [("{\"batch\": 7}", 400), ("no JSON", 400), ("{\"batch\": [], \"more\": 1}", 400)] {
        assert_eq!(post(body.into()).await.unwrap().status(), status, "{body}");
    }
    assert_eq!(
        post(vec![b' '; (64 << 20) + 1].into()).await.map_or(413, |response| response.status().as_u16()),
        413
    );
}

#[tokio::test]
async fn a_report_on_a_version_is_the_runners_own_and_of_its_projects_alone() {
    let serving = Serving::start().await;
    let liar = Liar::join(serving.runner("liar").await).await;
    serving.allow("liar", "books", Access::Assign).await;
    let projects = &serving.backend.projects;
    let commit = "1".repeat(40).parse().unwrap();
    let wanted = Wanted { clone_url: "https://git.example/x.git".parse().unwrap(), commit };
    for name in ["books", "news"] {
        projects.create(&name.parse().unwrap()).await.unwrap();
        projects.want(&name.parse().unwrap(), &wanted).await.unwrap();
    }
    let failure = format!("{}\n\u{1b}[2J\n{}", "x".repeat(100_000), "more\n".repeat(100_000));
    let lie = |project: &str| VersionReport {
        project: project.parse().unwrap(),
        wanted: wanted.clone(),
        machine: "host-1".to_owned().into(),
        at: UnixMs(u64::MAX),
        result: VersionResult::Failed(failure.clone().into()),
    };
    let reports = async |project: &str| projects.reports(&project.parse().unwrap()).await.unwrap();
    crate::fixture::eventually(async || {
        liar.call(NoteVersion { report: lie("books") }).await.unwrap();
        !reports("books").await.is_empty()
    })
    .await;
    liar.call(NoteVersion { report: lie("news") }).await.unwrap();
    assert_eq!(reports("news").await, []);
    let [report] = &reports("books").await[..] else { panic!("it has one name") };
    assert_eq!(report.machine.as_str(), "liar (runner)");
    assert!(report.at <= UnixMs::now());
    let VersionResult::Failed(failure) = &report.result else { panic!("it failed") };
    assert!(failure.as_str().len() < 10_000 && !failure.as_str().contains('\u{1b}'));
}
