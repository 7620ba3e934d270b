use std::fs;

use async_trait::async_trait;
use serde_json::json;
use tempfile::TempDir;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome};
use trawl_common::frontier::retry::Retry;
use trawl_common::frontier::{Task, Work};
use trawl_common::names::{CrawlRef, ProjectName};
use trawl_common::ports::{self, FileStore, OpenCrawl, Page, Projects, Requests, Terms};
use trawl_common::project::{ProjectSecret, SealedSecret, SealingKey};
use trawl_common::projects::Keeper;
use trawl_common::spider::Download;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use super::*;
use crate::claim::SpiderRequests;
use crate::claimed::ClaimedUrl;
use crate::proxy::HandlerProxy;
use crate::schedule::polite::PoliteClient;
use crate::tests::log::OwnLog;

/// Sinks that discard everything.
struct Nowhere;

#[async_trait]
impl Sink for Nowhere {
    fn name(&self) -> &str {
        "nowhere"
    }

    async fn put(&self, _: &[Page]) -> ports::Result<()> {
        Ok(())
    }
}

impl SinkFactory for Nowhere {
    fn open(&self, _: &Spider) -> ports::Result<Vec<Arc<dyn Sink>>> {
        Ok(vec![Arc::new(Self)])
    }

    fn open_files(&self, _: &Spider, _: &Download) -> ports::Result<Arc<dyn FileStore>> {
        unreachable!("no spider of these tests keeps files")
    }
}

struct Fixture {
    folder: TempDir,
    spiders: Spiders,
    name: SpiderName,
    log: OwnLog,
    projects: Arc<dyn Projects>,
}

fn key(digit: char) -> SealingKey {
    digit.to_string().repeat(64).parse().unwrap()
}

impl Fixture {
    fn new() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() };
        let threads = Threads::start(1).unwrap();
        let log = OwnLog::new();
        let folder_of = Folder::new(&settings);
        let state = Embedded::in_memory().unwrap();
        let (hosts, projects) = (state.hosts(), state.projects());
        let grants = Arc::new(Keeper::new(state.projects(), Some(key('1'))));
        let proxy = HandlerProxy::new(PoliteClient::alone(Arc::new(settings.clone()), hosts));
        let proxy: ProxyForPrograms = Box::new(move |spider, fetcher| proxy.access(spider, fetcher));
        let spiders =
            Spiders::new(&settings, folder_of, Arc::new(Nowhere), grants, threads, proxy, log.writer.clone())
                .unwrap();
        Self { folder, spiders, name: "shop".parse().unwrap(), log, projects }
    }

    fn write(&self, text: &str) {
        fs::write(self.folder.path().join("shop.toml"), text).unwrap();
    }

    /// The page limit of the spider in its current version.
    fn pages(&self) -> Option<u64> {
        let loaded = self.spiders.get(&self.name).expect("it works");
        loaded.spider.max_pages.map(std::num::NonZeroU64::get)
    }

    fn is_wrong(&self) -> bool {
        let known = self.spiders.known.read();
        known.get(&self.name).unwrap().wrong.is_some()
    }
}

#[test]
fn a_changed_file_is_used_from_the_next_look_on() {
    let fixture = Fixture::new();
    fixture.write("max_pages = 1");
    assert_eq!(fixture.pages(), Some(1));
    fixture.write("max_pages = 2");
    assert_eq!(fixture.pages(), Some(1));
    fixture.spiders.look_again();
    assert_eq!(fixture.pages(), Some(2));
}

#[tokio::test]
async fn the_retries_of_a_program_are_for_its_own_failures_and_not_for_those_of_hosts() {
    let fixture = Fixture::new();
    fixture.write("[handler]\nrun = ['/bin/true']\nmode = 'stream'\nretries = 7\n");
    let url: CanonicalUrl = "http://a.example/".parse().unwrap();
    let claimed = ClaimedUrl {
        url: url.clone(),
        message: Message::new(url.into(), CrawlRef::adhoc_of(fixture.name.clone()), Lane::Bulk),
        attempts: 0,
        starts: 0,
        waits_for_host_only: false,
        crawl: OpenCrawl { terms: Terms::default(), started: UnixMs::now() },
        spider: fixture.spiders.get(&fixture.name).unwrap(),
    };
    let settings = Retry::default();
    let max_of = |outcome: Outcome| match outcome {
        Outcome::Retry { max, .. } => max,
        other => panic!("{other:?}"),
    };
    let failure = |class| Failure::new(class, "no");
    assert_eq!(max_of(claimed.failed(&settings, failure(Class::Timeout))), settings.max);
    assert_eq!(max_of(claimed.program_failed(&settings, failure(Class::Handler))), 7);
}

#[test]
fn a_file_that_has_not_changed_is_not_loaded_again() {
    let fixture = Fixture::new();
    fixture.write("max_pages = 1");
    let before = fixture.spiders.get(&fixture.name).unwrap();
    fixture.spiders.look_again();
    assert!(Arc::ptr_eq(&before, &fixture.spiders.get(&fixture.name).unwrap()));
}

#[test]
fn a_file_that_breaks_or_goes_leaves_the_last_version_that_worked() {
    let fixture = Fixture::new();
    fixture.write("max_pages = 1");
    assert_eq!(fixture.pages(), Some(1));
    fixture.write("max_pages = ");
    fixture.spiders.look_again();
    assert_eq!((fixture.pages(), fixture.is_wrong()), (Some(1), true));
    let told = fixture.spiders.outdated();
    assert!(told[&fixture.name].contains("shop.toml"), "its heartbeat says so: {told:?}");
    fs::remove_file(fixture.folder.path().join("shop.toml")).unwrap();
    fixture.spiders.look_again();
    assert_eq!((fixture.pages(), fixture.is_wrong()), (Some(1), true));
    fixture.write("max_pages = 1");
    fixture.spiders.look_again();
    assert_eq!((fixture.pages(), fixture.is_wrong()), (Some(1), false));
    assert_eq!(fixture.spiders.outdated(), BTreeMap::new());
}

#[test]
fn a_file_that_is_broken_from_the_start_works_once_it_is_mended() {
    let fixture = Fixture::new();
    fixture.write("[fields]\ntitle = 'h1['");
    assert!(fixture.spiders.get(&fixture.name).is_none());
    fixture.spiders.look_again();
    assert!(fixture.spiders.get(&fixture.name).is_none());
    fixture.write("max_pages = 3\n[fields]\ntitle = 'h1'");
    fixture.spiders.look_again();
    assert_eq!(fixture.pages(), Some(3));
}

#[test]
fn a_file_that_appears_later_is_taken_up() {
    let fixture = Fixture::new();
    assert_eq!(fixture.pages(), None);
    fixture.write("max_pages = 4");
    fixture.spiders.look_again();
    assert_eq!(fixture.pages(), Some(4));
}

#[test]
fn sinks_stay_open_while_they_and_their_items_are_the_same() {
    let fixture = Fixture::new();
    fixture.write("max_pages = 1");
    let before = fixture.spiders.get(&fixture.name).unwrap();
    let is_same = |now: &LoadedSpider| Arc::ptr_eq(&before.sinks[0], &now.sinks[0]);
    fixture.write("max_pages = 2");
    fixture.spiders.look_again();
    assert!(is_same(&fixture.spiders.get(&fixture.name).unwrap()));
    fixture.write("[fields]\ntitle = 'h1'");
    fixture.spiders.look_again();
    assert!(!is_same(&fixture.spiders.get(&fixture.name).unwrap()));
}

#[test]
fn a_selector_that_cannot_be_used_is_reported_with_its_place() {
    let fixture = Fixture::new();
    fixture.write("[fields]\ntitle = 'h1['");
    let Err(error) = fixture.spiders.load(&fixture.name, &Known::default()) else { panic!("it loads") };
    assert!(error.to_string().contains("shop.toml:2:9: "), "{error}");
}

#[test]
fn names_that_anybody_thinks_of_load_no_more_spiders_than_there_are_files_and_some() {
    let fixture = Fixture::new();
    let name = |number: usize| format!("none-{number}").parse::<SpiderName>().unwrap();
    let loaded = (0..1_000).filter(|number| fixture.spiders.get(&name(*number)).is_some()).count();
    assert!((MAX_FILELESS..=MAX_FILELESS + 1).contains(&loaded), "{loaded}");
    assert!(fixture.spiders.known.read().len() <= MAX_FILELESS + 1);
    assert!(!fixture.spiders.is_for_strangers(&name(0)) && !fixture.spiders.is_for_strangers(&fixture.name));
    fixture.write("max_pages = 1");
    fixture.spiders.look_again();
    assert_eq!(fixture.pages(), Some(1), "one with a file is loaded however many there are without");
    assert!(
        fixture.spiders.is_for_strangers(&fixture.name)
            && fixture.spiders.is_for_strangers(&SpiderName::default())
    );
}

#[test]
fn a_name_without_a_file_is_looked_for_once_until_the_next_look() {
    let fixture = Fixture::new();
    assert!(!fixture.spiders.is_for_strangers(&fixture.name));
    fixture.write("max_pages = 1");
    assert!(!fixture.spiders.is_for_strangers(&fixture.name));
    fixture.spiders.look_again();
    assert!(fixture.spiders.is_for_strangers(&fixture.name));
}

#[test]
fn any_number_of_names_without_a_file_takes_bounded_memory() {
    let fixture = Fixture::new();
    for number in 0..MAX_MISSING + 10 {
        assert!(!fixture.spiders.is_for_strangers(&format!("s{number}").parse().unwrap()));
    }
    assert_eq!(fixture.spiders.missing.lock().len(), MAX_MISSING);
}

/// Sinks that fail to open this many times.
struct LateSinks(std::sync::atomic::AtomicU32);

impl SinkFactory for LateSinks {
    fn open(&self, _: &Spider) -> ports::Result<Vec<Arc<dyn Sink>>> {
        match self.0.fetch_sub(1, Ordering::Relaxed) {
            0 => Ok(vec![Arc::new(Nowhere)]),
            _ => Err(ports::Error::new(ports::ErrorKind::Unavailable, "the disk is away")),
        }
    }

    fn open_files(&self, _: &Spider, _: &Download) -> ports::Result<Arc<dyn FileStore>> {
        unreachable!("no spider of these tests keeps files")
    }
}

#[test]
fn a_spider_that_a_crawl_brings_goes_by_its_text_and_not_by_the_file_here() {
    let fixture = Fixture::new();
    fixture.write("max_pages = 1");
    let brought = |text: &str| {
        let loaded = fixture.spiders.of_text(&fixture.name, &text.to_owned().into()).unwrap();
        loaded.spider.max_pages.map(std::num::NonZeroU64::get)
    };
    assert_eq!(
        (fixture.pages(), brought("max_pages = 2"), brought("max_pages = 3")),
        (Some(1), Some(2), Some(3))
    );
    let one = fixture.spiders.of_text(&fixture.name, &"max_pages = 2".to_owned().into()).unwrap();
    let other = fixture.spiders.of_text(&fixture.name, &"max_pages = 3".to_owned().into()).unwrap();
    assert!(Arc::ptr_eq(&one.sinks[0], &other.sinks[0]), "the same sinks are opened once");
}

#[test]
fn a_spider_that_a_crawl_brings_works_as_soon_as_what_it_names_is_there() {
    let fixture = Fixture::new();
    let sinks = Arc::new(LateSinks(2.into()));
    let spiders = Spiders { sink_factory: sinks, ..fixture.spiders };
    let text = SpiderText::from("max_pages = 1".to_owned());
    for is_there in [false, false, true] {
        assert_eq!(spiders.of_text(&fixture.name, &text).is_some(), is_there);
        spiders.look_again();
    }
    assert!(spiders.of_text(&fixture.name, &"max_pages = 'x'".to_owned().into()).is_none());
}

#[tokio::test]
async fn a_spider_that_cannot_be_read_is_named_in_the_fleets_log_once() {
    let fixture = Fixture::new();
    fixture.write("[fields]\ntitle = 'h1['");
    assert!(fixture.spiders.get(&fixture.name).is_none());
    fixture.spiders.look_again();
    let said = fixture.log.entries().await;
    assert_eq!(said.len(), 1, "{said:?}");
    let text = said[0].message.as_str();
    assert!(
        text.starts_with("the spider cannot work: its URLs wait: ") && text.contains("shop.toml:2:9"),
        "{text}"
    );
    assert_eq!((said[0].spider.as_ref(), said[0].level), (Some(&fixture.name), LogLevel::Error));
}

#[test]
fn a_crawl_brings_no_program_that_the_files_of_this_machine_do_not_have() {
    let fixture = Fixture::new();
    let brought = |run: &str| format!("max_pages = 7\n[handler]\nrun = [{run}]\n").into();
    assert!(fixture.spiders.of_text(&fixture.name, &brought("'sh'")).is_none(), "there is no file");
    fixture.write("[handler]\nrun = ['sh', 'run.sh']");
    assert!(fixture.spiders.of_text(&fixture.name, &brought("'sh', '-c', 'evil'")).is_none());
    let loaded = fixture.spiders.of_text(&fixture.name, &brought("'sh', 'run.sh'")).unwrap();
    assert!(loaded.program.is_some() && loaded.spider.max_pages.is_some());
}

#[test]
fn a_program_whose_files_have_changed_and_settled_is_started_anew_and_no_other() {
    let fixture = Fixture::new();
    let program = fixture.folder.path().join("run.sh");
    let text = "[handler]\nrun = ['sh', 'run.sh']";
    fixture.write(text);
    fs::write(&program, "echo 1").unwrap();
    let by_file = || fixture.spiders.get(&fixture.name).unwrap();
    let brought = || {
        let text = SpiderText::from(format!("max_pages = 7\n{text}"));
        fixture.spiders.of_text(&fixture.name, &text).unwrap()
    };
    let (first, first_brought) = (by_file(), brought());
    let version = || fixture.spiders.programs()[&fixture.name];
    let before = version();
    let look = || {
        fixture.spiders.look_at_programs();
        fixture.spiders.look_again();
    };
    let is_first = || Arc::ptr_eq(&first, &by_file()) && Arc::ptr_eq(&first_brought, &brought());
    look();
    assert!(is_first() && version() == before);
    fs::write(&program, "echo two").unwrap();
    look();
    assert!(is_first(), "the next look shows whether all files are there");
    look();
    assert!(!Arc::ptr_eq(&first, &by_file()) && !Arc::ptr_eq(&first_brought, &brought()));
    assert_ne!(version(), before);
    let second = by_file();
    fs::write(fixture.folder.path().join("other.sh"), "").unwrap();
    (0..3).for_each(|_| look());
    assert!(Arc::ptr_eq(&second, &by_file()));
}

#[test]
fn a_program_works_in_a_crawl_that_gives_the_arguments_which_its_file_lacks() {
    let fixture = Fixture::new();
    let text = |arguments: &str| {
        format!(
            "[start]\nurls = ['{{arg.site}}/1']\n[handler]\nrun = ['sh']\nsecret = {{ of = '{{arg.site}}' }}\n\
             [arguments]\nsite = {arguments}\n"
        )
    };
    fixture.write(&text("{ help = 'where' }"));
    let brought = |text: String| fixture.spiders.of_text(&fixture.name, &text.into());
    assert!(brought(text("'http://a.example'")).unwrap().program.is_some());
    let other = text("'http://a.example'").replace("of =", "for =");
    assert!(brought(other).is_none(), "the file here gives its program no such secret");
}

#[test]
fn a_crawl_that_keeps_a_wrong_program_says_that_it_has_to_be_cancelled_once_the_file_is_mended() {
    let fixture = Fixture::new();
    let text = |program: &str, site: &str| {
        format!(
            "[start]\nsitemaps = ['{{arg.site}}/1']\n[handler]\nrun = ['{program}']\nmode = 'stream'\n[[sinks]]\nkind = 'jsonl'\n\
             path = '/srv/items.jsonl'\n[arguments]\nsite = '{site}'\n"
        )
    };
    let brought = SpiderText::from(text("no-such-program", "http://a.example"));
    let wrong = || {
        fixture.spiders.look_again();
        assert!(fixture.spiders.of_text(&fixture.name, &brought).is_none());
        fixture.spiders.wrong(&fixture.name, Some(&brought)).unwrap()
    };
    fixture.write(&text("no-such-program", "http://b.example"));
    assert!(wrong().contains("there is no program `no-such-program`"), "{}", wrong());
    fixture.write(&text("sh", "http://b.example"));
    assert!(wrong().contains("has to be cancelled"), "{}", wrong());
}

#[test]
fn a_task_of_a_spider_that_is_elsewhere_is_left_to_others_and_a_page_of_it_refused() {
    let fixture = Fixture::new();
    let requests = SpiderRequests::new(Arc::new(fixture.spiders));
    let of = |work: Work, spider: &str| {
        let crawl = CrawlRef::adhoc_of(spider.parse().unwrap());
        requests.check(Message { is_ours: false, ..Message::new(work, crawl, Lane::Task) })
    };
    let task = |spider: &str| {
        let new = NewTask::from_recipe("do it".parse().unwrap());
        of(Task::new(&spider.parse().unwrap(), new).into(), spider)
    };
    assert!(task("elsewhere").is_ok());
    let url = CanonicalUrl::parse("http://a.example/").unwrap();
    assert_eq!(of(Work::Url(url), "elsewhere").unwrap_err().reason, "there is no spider elsewhere here");
    let taken = (0..1_000).filter(|number| task(&format!("none-{number}")).is_ok()).count();
    assert!(taken < 100, "{taken} names that anybody may think of");
    assert!(task("elsewhere").is_ok());
}

#[test]
fn tasks_of_few_spiders_that_are_not_here_are_taken_from_one_program_whatever_others_name() {
    let fixture = Fixture::new();
    fixture.write("[handler]\nrun = ['sh']");
    let (here, other) = (fixture.name.clone(), "other".parse().unwrap());
    let taken = |by| {
        let name = |number: usize| format!("none-{number}").parse().unwrap();
        (0..1_000).filter(|number| fixture.spiders.accept_handed(&name(*number), by).is_ok()).count()
    };
    for by in [&here, &other] {
        assert_eq!(taken(by), 64);
        assert!(fixture.spiders.accept_handed(&here, by).is_ok(), "it has a file here");
    }
    assert!(fixture.spiders.accept_published(&"none-999".parse().unwrap()));
}

#[test]
fn a_spider_whose_program_is_not_here_waits_for_it() {
    let fixture = Fixture::new();
    fixture.write("[handler]\nrun = ['./run']");
    assert!(fixture.spiders.get(&fixture.name).is_none());
    let run = fixture.folder.path().join("run");
    fs::write(&run, "#!/bin/sh").unwrap();
    fs::set_permissions(&run, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fixture.spiders.look_again();
    assert!(fixture.spiders.get(&fixture.name).is_some_and(|loaded| loaded.program.is_some()));
}

#[test]
fn a_text_that_came_with_a_crawl_has_nothing_of_the_machine_unless_it_is_that_of_its_own_file() {
    let fixture = Fixture::new();
    let text = |site: &str| {
        format!(
            "[start]\nsitemaps = ['/proc/self/environ', '{{arg.site}}/sitemap.xml']\n\
             [[sinks]]\nkind = 'jsonl'\npath = '/srv/items.jsonl'\n[arguments]\nsite = '{site}'\n"
        )
    };
    let bring = |text: String| {
        let text = SpiderText::from(text);
        let loaded = fixture.spiders.of_text(&fixture.name, &text).is_some();
        (loaded, fixture.spiders.wrong(&fixture.name, Some(&text)).unwrap_or_default())
    };
    let (is_loaded, wrong) = bring(text("https://a.example"));
    assert!(
        !is_loaded && wrong.contains("spiders.sinks_dir") && wrong.contains("from URLs alone"),
        "{wrong}"
    );
    fixture.write(&text("https://b.example"));
    assert_eq!(
        bring(text("https://c.example")),
        (true, String::new()),
        "the file here, with a crawl's argument"
    );
    let (is_loaded, wrong) = bring(text("https://d.example").replace("/srv/items", "/srv/others"));
    assert!(!is_loaded && wrong.contains("spiders.sinks_dir"), "{wrong}");
}

/// Sets the secret of a project, sealed by this key.
async fn set_secret(fixture: &Fixture, project: &str, secret: &str, key: &SealingKey) {
    let name = project.parse().unwrap();
    let secret = ProjectSecret::from_json(secret.as_bytes()).unwrap();
    let sealed = SealedSecret::seal(&secret, &name, key);
    assert!(fixture.projects.set_secret(&name, Some(&sealed)).await.unwrap());
}

#[tokio::test]
async fn a_program_is_given_the_secret_of_its_spiders_project_and_a_changed_one_from_the_next_look_on() {
    let fixture = Fixture::new();
    fixture.write("[handler]\nrun = ['/bin/true']\nsecret = { DB = 'own' }\n");
    let given = || {
        let loaded = fixture.spiders.get(&fixture.name).expect("it works");
        let secret = loaded.spider.handler.as_ref().unwrap().secret.reveal();
        (loaded.project().cloned(), serde_json::from_str::<serde_json::Value>(secret).unwrap())
    };
    let books: ProjectName = "books".parse().unwrap();
    fixture.projects.create(&books).await.unwrap();
    set_secret(&fixture, "books", r#"{"DB": "theirs", "TOKEN": 1}"#, &key('1')).await;
    let health = Health::default();
    fixture.spiders.learn_project(&fixture.name, &health).await.unwrap();
    assert_eq!(given(), (None, json!({ "DB": "own" })), "it is in no project");
    fixture.projects.add_spider(&books, &fixture.name).await.unwrap();
    let look = async || {
        fixture.spiders.grants.refresh().await;
        fixture.spiders.look_again();
    };
    look().await;
    assert_eq!(given(), (Some(books.clone()), json!({ "DB": "own", "TOKEN": 1 })));
    set_secret(&fixture, "books", r#"{"TOKEN": 2}"#, &key('1')).await;
    assert_eq!(given().1["TOKEN"], 1);
    look().await;
    assert_eq!(given().1["TOKEN"], 2);
    fixture.projects.forget(&books).await.unwrap();
    look().await;
    assert_eq!(given(), (None, json!({ "DB": "own" })));
}

#[tokio::test]
async fn a_program_whose_secret_cannot_be_opened_is_not_run_without_it() {
    let fixture = Fixture::new();
    fixture.write("[handler]\nrun = ['/bin/true']\n");
    let books = "books".parse().unwrap();
    fixture.projects.create(&books).await.unwrap();
    fixture.projects.add_spider(&books, &fixture.name).await.unwrap();
    set_secret(&fixture, "books", r#"{"TOKEN": "s3cret"}"#, &key('2')).await;
    fixture.spiders.learn_project(&fixture.name, &Health::default()).await.unwrap();
    assert!(fixture.spiders.get(&fixture.name).is_none());
    let wrong = fixture.spiders.wrong(&fixture.name, None).unwrap();
    assert!(wrong.contains("the secret of the project books") && !wrong.contains("s3cret"), "{wrong}");
    set_secret(&fixture, "books", r#"{"TOKEN": "s3cret"}"#, &key('1')).await;
    fixture.spiders.grants.refresh().await;
    fixture.spiders.look_again();
    assert!(fixture.spiders.get(&fixture.name).is_some());
}

#[tokio::test]
async fn a_spider_that_was_loaded_before_its_project_was_known_gets_the_secret_before_its_first_work() {
    let fixture = Fixture::new();
    fixture.write("[handler]\nrun = ['/bin/true']\n");
    let books = "books".parse().unwrap();
    fixture.projects.create(&books).await.unwrap();
    fixture.projects.add_spider(&books, &fixture.name).await.unwrap();
    assert!(fixture.spiders.get(&fixture.name).unwrap().project().is_none());
    fixture.spiders.learn_project(&fixture.name, &Health::default()).await.unwrap();
    assert_eq!(fixture.spiders.get(&fixture.name).unwrap().project(), Some(&books));
}
