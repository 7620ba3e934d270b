//! A console over a fleet's servers or a state file, and somebody with a browser's manners: cookies, and no redirect
//! unseen.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use trawl_api::{Access, Backend, TryPage};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::{Class, Reason, Terminal};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{
    Browsers, Claim, Claimed, Completion, Disposition, Fatal, Finish, Frontier, Heartbeat, Joined,
    Settlement, Terms,
};
use trawl_common::settings;
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_extract::{Attempt, RobotsOutcome, Tried};
use trawl_testkit::servers::VirtualHost;

use crate::support;
pub(crate) use crate::support::{LIMIT, OPERATOR, VIEWER, page};

/// A console, and what it is about.
pub(crate) struct Fixture {
    pub(crate) backend: Backend,
    pub(crate) address: SocketAddr,
    client: Client,
    _stops: DropGuard,
    _server: JoinSet<()>,
    _vhost: Option<VirtualHost>,
}

/// A page, or where a browser is sent instead.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// A visitor of the console.
pub(crate) struct Person<'a> {
    fixture: &'a Fixture,
    /// The cookie of the session; `None` if no log-in is needed.
    pub(crate) cookie: Option<String>,
}

impl Fixture {
    /// Returns the console of a fleet, for holders of a token.
    pub(crate) async fn fleet() -> Self {
        let (backend, _, _, vhost) = support::fleet(|_| one_page()).await;
        Self::over(backend, Some(vhost), support::guarded("anna")).await
    }

    /// Returns the console of a state file, for holders of a token.
    pub(crate) async fn embedded() -> Self {
        Self::guarded_by(support::guarded("anna")).await
    }

    /// Returns the console of a state file, for anyone on this machine.
    pub(crate) async fn open() -> Self {
        Self::guarded_by(settings::Api::default()).await
    }

    /// Returns the console of a state file, for the tokens in these settings.
    pub(crate) async fn guarded_by(settings: settings::Api) -> Self {
        let (backend, _) = support::state_file(|_| one_page());
        Self::over(backend, None, settings).await
    }

    async fn over(backend: Backend, vhost: Option<VirtualHost>, settings: settings::Api) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Access::new(&settings, address).unwrap();
        let stop = CancellationToken::new();
        let router = trawl_console::router(backend.clone(), access, stop.clone());
        let mut server = JoinSet::new();
        server.spawn(trawl_api::serve(listener, router, settings.trusted_proxies, stop.clone()));
        let client = Client::builder().no_proxy().timeout(LIMIT).redirect(Policy::none()).build().unwrap();
        Self { backend, address, client, _stops: stop.drop_guard(), _server: server, _vhost: vhost }
    }

    /// A request as nobody in particular sends it.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    /// Somebody who has not logged in.
    pub(crate) fn nobody(&self) -> Person<'_> {
        Person { fixture: self, cookie: None }
    }

    /// Somebody who has.
    pub(crate) async fn log_in(&self, token: &str) -> Person<'_> {
        let shown = self.nobody().post_unproved("/log-in", &[("token", token)]).await;
        assert_eq!(shown.status, 303, "{}", shown.text);
        let cookie = shown.headers[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        Person { fixture: self, cookie: Some(cookie) }
    }

    /// Begins a crawl of so many pages of one host, and ends its discovery.
    pub(crate) async fn crawl(&self, id: &str, pages: usize) -> CrawlRef {
        support::crawl(&self.backend, id, "shop", pages, Terms::default()).await
    }

    /// Starts a crawl whose pages have all failed with this text of a server.
    pub(crate) async fn failed(&self, id: &str, pages: usize, error: &str) -> CrawlRef {
        let crawl = self.crawl(id, pages).await;
        let worker = self.worker();
        let mut left = pages;
        while left > 0 {
            let claimed = tokio::time::timeout(LIMIT, worker.frontier.claim(left)).await.unwrap().unwrap();
            left -= claimed.len();
            worker.fail(claimed, error).await;
        }
        crawl
    }

    /// Lets a worker join that does nothing by itself.
    pub(crate) fn worker(&self) -> Worker {
        let name = WorkerId::of_this_machine();
        let Joined { frontier, maintenance } = support::join(&self.backend, name.clone());
        Worker { name, frontier, _maintenance: JoinSet::from_iter([maintenance]) }
    }

    /// How many URLs of a crawl have no final state.
    pub(crate) async fn pending(&self, crawl: &CrawlRef) -> u64 {
        self.backend.stats.crawl_stats(&crawl.id).await.unwrap().unwrap().pending
    }
}

/// A worker.
pub(crate) struct Worker {
    name: WorkerId,
    frontier: Arc<dyn Frontier>,
    _maintenance: JoinSet<Fatal>,
}

impl Worker {
    /// Has these fail with what was said.
    pub(crate) async fn fail(&self, claimed: Vec<Claimed>, error: &str) {
        let fail = |Claimed { message, .. }: Claimed| {
            let cause = Cause {
                class: Some(Class::Http),
                status: message.key().page().is_some().then_some(404),
                attempts: 1,
                ..Cause::new(Reason::Final, error, UnixMs::now())
            };
            let mut finish = Finish::new(Claim::new(&message), Terminal::Failed);
            finish.note = Some(DeadLetterEntry::new(cause.clone()));
            finish.why = Some("http");
            let ending = Completion { dead_letter: Some(cause), ..Completion::new(finish) };
            Settlement { message, disposition: Disposition::Finish(Box::new(ending)) }
        };
        self.frontier.settle(claimed.into_iter().map(fail).collect()).await.unwrap();
    }

    /// Begins a task, and says so.
    pub(crate) async fn begin_task(&self) -> Claimed {
        let claimed =
            tokio::time::timeout(LIMIT, self.frontier.claim_tasks(1)).await.unwrap().unwrap().remove(0);
        self.frontier.start(&[Claim::new(&claimed.message)]).await.unwrap();
        let beat = Heartbeat {
            in_flight: 1,
            running: [(claimed.message.key().to_string(), UnixMs::now())].into(),
            lacks: [("away".parse().unwrap(), "its file is not there".to_owned())].into(),
            outdated: [("broken".parse().unwrap(), "its file has a mistake".to_owned())].into(),
            browsers: Some(Browsers {
                running: 1,
                memory: 150 << 20,
                rendered: 1_234,
                ..Browsers::default()
            }),
            ..Heartbeat::idle(self.name.clone())
        };
        self.frontier.beat(&beat).await.unwrap();
        claimed
    }
}

impl Person<'_> {
    pub(crate) async fn get(&self, path: &str) -> Shown {
        self.send(self.fixture.request(Method::GET, path)).await
    }

    /// Sends a form without what it proves itself by.
    pub(crate) async fn post_unproved(&self, path: &str, fields: &[(&str, &str)]) -> Shown {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.fixture.request(Method::POST, path).body(form);
        self.send(request.header("content-type", "application/x-www-form-urlencoded")).await
    }

    /// Sends the form with a file that is on a page: with what the page has in it, `fields` besides, and a file with
    /// its name.
    pub(crate) async fn upload(
        &self,
        on: &str,
        path: &str,
        fields: &[(&str, &str)],
        file: Option<(&str, &[u8])>,
    ) -> Shown {
        let form = self.get(on).await.form(path);
        let hidden = form.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.upload_unproved(path, &hidden.chain(fields.iter().copied()).collect::<Vec<_>>(), file).await
    }

    /// Uploads without the token that proves where the form comes from.
    pub(crate) async fn upload_unproved(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        file: Option<(&str, &[u8])>,
    ) -> Shown {
        let mut body = Vec::new();
        for (name, value) in fields {
            let head = format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend(head.into_bytes());
        }
        if let Some((name, bytes)) = file {
            let disposition = format!("form-data; name=\"file\"; filename=\"{name}\"");
            body.extend(format!("--x\r\ncontent-disposition: {disposition}\r\n\r\n").into_bytes());
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--x--\r\n");
        let request = self.fixture.request(Method::POST, path).body(body);
        self.send(request.header("content-type", "multipart/form-data; boundary=x")).await
    }

    /// Sends the form that is on a page: with what the page has in it, and `fields` besides.
    pub(crate) async fn submit(&self, on: &str, path: &str, fields: &[(&str, &str)]) -> Shown {
        let page = self.get(on).await;
        assert_eq!(page.status, 200, "{on}: {}", page.text);
        let form = page.form(path);
        let mut all: Vec<(&str, &str)> =
            form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.extend(fields);
        self.post_unproved(path, &all).await
    }

    pub(crate) async fn send(&self, request: RequestBuilder) -> Shown {
        let request = match &self.cookie {
            Some(cookie) => request.header(COOKIE, cookie),
            None => request,
        };
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Shown { status, headers, text: response.text().await.unwrap() }
    }
}

impl Shown {
    /// The address that a browser is sent to.
    pub(crate) fn location(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.text);
        self.headers[LOCATION].to_str().unwrap()
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// The hidden fields of the form that goes to `path`.
    fn form(&self, path: &str) -> Vec<(String, String)> {
        let from =
            self.text.find(&format!("action=\"{path}\"")).unwrap_or_else(|| panic!("{path}: {}", self.text));
        let form = &self.text[from..from + self.text[from..].find("</form>").unwrap()];
        let fields = form.split("<input type=\"hidden\" ").skip(1).map(|field| {
            let value = |name: &str| {
                let (_, rest) = field.split_once(&format!("{name}=\"")).unwrap();
                rest.split('"').next().unwrap().replace("&#38;", "&")
            };
            (value("name"), value("value"))
        });
        fields.collect()
    }
}

/// The body of every page that is tried.
pub(crate) const TRIED: &str = "<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1><a href='/next?\">&lt;img src=x onerror=alert(2)&gt;'>x</a>";

/// Tries a spider on the page that there is, without asking for it.
fn one_page() -> TryPage {
    Arc::new(|spider, ready, url| {
        Box::pin(async move {
            let response = Response {
                status: 200,
                headers: [("content-type", "text/html")].into_iter().collect(),
                redirected_to: None,
                fetched_at: UnixMs::now(),
                address: None,
                body: TRIED.into(),
            };
            let extraction = ready.extractor.extract(&url, &response, &AtomicBool::new(false)).unwrap();
            let page = Tried::new(&spider, &ready.scope, &url, response, extraction);
            let robots = Some(RobotsOutcome::Allowed);
            Ok(Attempt { robots, redirects: Vec::new(), status: Some(200), page: Ok(page) })
        })
    })
}
