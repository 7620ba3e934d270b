//! Makes a log-in: its requests, each allowed by robots.txt and in a slot of its host, in cookies of their own.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::time::Instant;
use trawl_common::frontier::Request;
use trawl_common::frontier::outcome::Failure;
use trawl_common::request::{NewRequest, encode_pair};
use trawl_common::session::LoginResult;
use trawl_common::spider::{Bans, Home, LoginRequest, Spider, Then};
use trawl_common::time::UnixMs;
use trawl_common::web::cookies::{CookieJar, SetCookie};
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{LoginPlan, PlannedStep};
use trawl_web::{Answer, MAX_REDIRECTS, Trail};

use crate::parse::Parser;
use crate::schedule::backoff::is_welcome;
use crate::schedule::polite::{AsSpider, NotAsked, PoliteClient, blocked};

/// Longest time for a log-in, with all that its hosts' pace makes it wait.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// The time after which a log-in begins again that this machine could not make.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// The value taken by this name is the number of seconds after which the others expire.
const EXPIRES_IN: &str = "expires_in";

/// Values expire earlier than their server says, by this share of their time.
const EARLIER: f64 = 0.1;

/// A secret shorter than this is not looked for in messages.
const MIN_SECRET: usize = 3;

/// The end of a log-in that has not succeeded.
#[derive(Debug)]
pub(crate) enum NoLogin {
    /// It failed.
    Failed(String),
    /// It may begin again at this instant: no one is to blame.
    Later(UnixMs),
}

/// The cookies of a log-in in progress.
#[derive(Debug, Default)]
struct LoginCookies(Mutex<CookieJar>);

impl trawl_web::Session for LoginCookies {
    fn cookies(&self, url: &CanonicalUrl) -> Option<String> {
        self.0.lock().field(url, UnixMs::now())
    }

    fn fields(&self, _: &CanonicalUrl) -> Vec<(String, String)> {
        Vec::new()
    }

    fn set_cookies(&self, url: &CanonicalUrl, values: &[String]) {
        let now = UnixMs::now();
        let mut jar = self.0.lock();
        for set in values.iter().filter_map(|value| SetCookie::parse(url, value, now)) {
            jar.set(set, now);
        }
    }
}

/// Makes log-ins of one spider.
pub(crate) struct LogIn<'a> {
    asker: &'a PoliteClient,
    parser: &'a Parser,
    plan: &'a LoginPlan,
    bans: &'a Bans,
    own: AsSpider,
    hosts: Hosts,
    cookies: Arc<LoginCookies>,
    deadline: Instant,
}

/// The hosts that a log-in may ask: those of its steps, with all of their domains, and of the spider.
struct Hosts {
    home: Home,
    domains: BTreeSet<HostKey>,
    /// Pairs of whether TLS is used, and the port: another port may be somebody else's.
    services: BTreeSet<(bool, u16)>,
}

impl Hosts {
    fn new(spider: &Spider, plan: &LoginPlan) -> Self {
        let urls = plan.steps.iter().filter_map(|step| match &step.request {
            LoginRequest::Template(template) => CanonicalUrl::parse(template.url()).ok(),
            LoginRequest::Form(_) => None,
        });
        let urls: Vec<CanonicalUrl> = urls.collect();
        let mut services: BTreeSet<_> = urls.iter().map(service).collect();
        if services.contains(&(false, 80)) {
            services.insert((true, 443));
        }
        let domains = urls.iter().map(|url| HostKey::domain(&url.host())).collect();
        Self { home: spider.home(), domains, services }
    }

    /// Whether secrets may be sent there: not without TLS, if all steps use it.
    fn has(&self, url: &CanonicalUrl) -> bool {
        let service = service(url);
        let is_safe = service.0 || self.services.iter().any(|(is_tls, _)| !is_tls);
        let is_named =
            self.services.contains(&service) && self.domains.contains(&HostKey::domain(&url.host()));
        is_safe && (is_named || self.home.has(url))
    }
}

fn service(url: &CanonicalUrl) -> (bool, u16) {
    let url = url.to_url();
    (url.scheme() == "https", url.port_or_known_default().unwrap_or_default())
}

impl<'a> LogIn<'a> {
    /// Prepares a log-in of `spider`, whose requests `own` makes.
    pub(crate) fn new(
        asker: &'a PoliteClient,
        parser: &'a Parser,
        (spider, plan, bans): (&Spider, &'a LoginPlan, &'a Bans),
        own: AsSpider,
    ) -> Self {
        let cookies = Arc::<LoginCookies>::default();
        let own = AsSpider { fetcher: own.fetcher.in_session(Arc::clone(&cookies) as _), ..own };
        let hosts = Hosts::new(spider, plan);
        Self { asker, parser, plan, bans, own, hosts, cookies, deadline: Instant::now() + LOGIN_TIMEOUT }
    }

    /// Makes the requests in order. A message about a failure has no secret.
    pub(crate) async fn run(self) -> Result<LoginResult, NoLogin> {
        let (mut values, mut taken) = (self.plan.secrets.clone(), Map::new());
        let (mut form, mut page) = (None, None);
        for number in 0..self.plan.steps.len() {
            let step = self.step(number, &values, form.take(), page.as_ref());
            match step.await {
                Ok((landed, result)) => {
                    values.extend(result.taken.clone());
                    taken.extend(result.taken);
                    (form, page) = (result.form, Some(landed));
                }
                Err(NoLogin::Failed(why)) => {
                    let why = format!("step {} of the log-in: {}", number + 1, masked(&why, &values));
                    return Err(NoLogin::Failed(why));
                }
                Err(later) => return Err(later),
            }
        }
        let seconds = taken.get(EXPIRES_IN).and_then(seconds);
        let expires =
            seconds.map(|seconds| UnixMs::now().plus(Duration::from_secs_f64(seconds * (1.0 - EARLIER))));
        let cookies = self.cookies.0.lock().clone();
        let checked = self.plan.steps.last().is_some_and(PlannedStep::is_checked);
        Ok(LoginResult { cookies, values: taken, expires, checked })
    }

    /// Makes one step. Returns the URL that it led to, and what its response gives.
    async fn step(
        &self,
        number: usize,
        values: &Map<String, Value>,
        form: Option<NewRequest>,
        page: Option<&CanonicalUrl>,
    ) -> Result<(CanonicalUrl, trawl_extract::StepResult), NoLogin> {
        let step = &self.plan.steps[number];
        let new = match (&step.request, form) {
            (LoginRequest::Form(_), Some(form)) => form,
            (LoginRequest::Form(_), None) => return Err(failed("there is no form")),
            (LoginRequest::Template(template), _) => template.fill(values).map_err(failed)?,
        };
        let url = match page {
            None => new.url.parse().map_err(failed)?,
            Some(page) => {
                let url =
                    page.to_url().join(&new.url).map_err(|error| failed(format!("its `url`: {error}")))?;
                CanonicalUrl::as_written(url).map_err(failed)?
            }
        };
        let method = new.method;
        let named = |why: NoLogin| match why {
            NoLogin::Failed(why) => NoLogin::Failed(format!("{method} {}: {why}", without_query(&url))),
            later => later,
        };
        let request = Request::new(url.clone(), new).map_err(failed)?;
        let (landed, is_redirected, response) = self.fetch(&request).await.map_err(named)?;
        let result = self.look(step, values, (&landed, is_redirected), response).await.map_err(named)?;
        Ok((landed, result))
    }

    /// Looks at the response of a step.
    async fn look(
        &self,
        step: &PlannedStep,
        values: &Map<String, Value>,
        (landed, is_redirected): (&CanonicalUrl, bool),
        response: Response,
    ) -> Result<trawl_extract::StepResult, NoLogin> {
        if let Some(why) = step.lacks(landed, &response) {
            return Err(failed(why));
        }
        if std::ptr::eq(step, &self.plan.steps[self.plan.steps.len() - 1]) {
            let signs = &self.plan.signs;
            let by_url = || signs.by_url(landed).filter(|_| is_redirected);
            if let Some(sign) = signs.by_page(&response).or_else(by_url) {
                return Err(failed(format!("the answer still looks as if the session had lapsed: {sign}")));
            }
        }
        let Some(reader) = &step.reader else { return Ok(trawl_extract::StepResult::default()) };
        if !reader.extractor.reads(&response) {
            let kind = response.content_type().unwrap_or("no type").to_owned();
            return Err(failed(format!("the answer is neither HTML nor JSON, but {kind}")));
        }
        let filling = reader.filling(landed, values);
        let extractor = Arc::clone(&reader.extractor);
        let extraction = self.parser.read(extractor, landed.clone(), response, filling).await;
        step.result(reader, extraction.map_err(failed)?).map_err(failed)
    }

    /// Makes a request, and follows its redirects. Returns the URL that it led to, and whether redirects did.
    async fn fetch(&self, request: &Request) -> Result<(CanonicalUrl, bool, Response), NoLogin> {
        let mut trail = Trail::new(request.url.clone(), MAX_REDIRECTS);
        loop {
            let url = trail.last().clone();
            if !self.hosts.has(&url) {
                let text = "it leads to another site, or to one without TLS, which gets no secrets: name its URL in a step";
                return Err(failed(format!("{}: {text}", without_query(&url))));
            }
            let policy = loop {
                match self.asker.policy(&self.own, &url) {
                    Some(policy) => break policy?,
                    None => self.asker.learn(&self.own, &url.origin()).await?,
                }
            };
            let permit = self.asker.permit(&self.own, &policy, &url.host(), self.deadline).await?;
            let hop = trail.clone().into_hop();
            let answer = self.own.fetcher.ask_for(request, hop.as_ref()).await;
            let ban = trawl_web::ban(self.bans, &answer);
            let _held = permit.end(is_welcome(&answer, ban.as_ref()));
            if let Some(ban) = ban {
                return Err(match self.bans.then {
                    Then::BackOff => self.left_alone(&policy.key, ban).await,
                    Then::Retry => failed(ban),
                });
            }
            match answer {
                Ok(Answer::Page(response)) => return Ok((url, hop.is_some(), response)),
                Ok(Answer::Unread { .. }) => return Err(failed("the answer is no text")),
                Ok(Answer::NotModified) => unreachable!("it was not asked whether it has changed"),
                Ok(Answer::Redirect(to)) => trail.go(to).map_err(failed)?,
                Err(failure) if failure.is_refusal() => {
                    return Err(self.left_alone(&policy.key, failure).await);
                }
                Err(failure) if failure.class.is_blameless() => {
                    return Err(NoLogin::Later(UnixMs::now().plus(RETRY_DELAY)));
                }
                Err(failure) => return Err(failed(failure)),
            }
        }
    }

    /// Makes the fleet leave a host alone that answered with this failure.
    async fn left_alone(&self, key: &HostKey, failure: Failure) -> NoLogin {
        match self.asker.back_off(key, &self.own.politeness, &failure, None).await {
            Ok(until) => NoLogin::Later(until),
            Err(error) => NotAsked::Port(error).into(),
        }
    }
}

impl From<NotAsked> for NoLogin {
    fn from(not_asked: NotAsked) -> Self {
        match not_asked {
            NotAsked::Blocked(key) => failed(blocked(&key)),
            NotAsked::Forbidden(why) => failed(why),
            NotAsked::Unreadable(failure) | NotAsked::Failed(failure) => failed(failure),
            NotAsked::Later(_, until) => Self::Later(until),
            NotAsked::Port(_) => Self::Later(UnixMs::now().plus(RETRY_DELAY)),
        }
    }
}

fn failed(why: impl Display) -> NoLogin {
    NoLogin::Failed(why.to_string())
}

fn seconds(value: &Value) -> Option<f64> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    Some(seconds.clamp(0.0, 1e9))
}

/// Returns a URL without its query, which may have secrets.
fn without_query(url: &CanonicalUrl) -> &str {
    url.as_str().split_once('?').map_or(url.as_str(), |(url, _)| url)
}

/// Returns a text without these values, however they are encoded.
fn masked(text: &str, values: &Map<String, Value>) -> String {
    let mut text = text.to_owned();
    for value in values.values() {
        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let encoded = encode_pair("", &plain).split_off(1);
        let spaced = encoded.replace('+', "%20");
        for secret in [plain, encoded, spaced].iter().filter(|secret| secret.len() >= MIN_SECRET) {
            text = text.replace(secret.as_str(), "***");
        }
    }
    text
}
