//! The session of a trial: it is logged in for that trial alone, and kept in memory.

use std::sync::Arc;

use parking_lot::Mutex;
use trawl_common::ports::Hosts;
use trawl_common::session::{LoginResult, SessionState};
use trawl_common::settings::Settings;
use trawl_common::spider::{Bans, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::cookies::{Cookie, SetCookie};
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extraction, LoginPlan};
use trawl_web::Fetcher;

use super::PageReader;
use crate::parse::Parser;
use crate::schedule::polite::{AsSpider, PoliteClient};
use crate::schedule::sessions::login::{LogIn, NoLogin};
use crate::spiders::SpiderSession;

/// A session for trying a spider.
#[derive(Debug)]
pub struct TrialSession {
    session: SpiderSession,
    state: Mutex<SessionState>,
}

impl TrialSession {
    /// Begins a session, and logs in if the spider does; `None` if it keeps no session. `fetcher` makes its requests,
    /// at the pace that `hosts` keeps.
    ///
    /// # Errors
    ///
    /// Returns the reason why the log-in failed, without secrets.
    pub async fn begin(
        (settings, hosts): (&Arc<Settings>, Arc<dyn Hosts>),
        reader: &PageReader,
        (spider, login, bans): (&Spider, Option<LoginPlan>, &Bans),
        fetcher: &Fetcher,
    ) -> Result<Option<Arc<Self>>, String> {
        let asker = PoliteClient::alone(Arc::clone(settings), hosts);
        let own = AsSpider::new(spider, settings, fetcher.clone());
        let begun = Self::log_in(&asker, &reader.parser, (spider, login, bans), own);
        asker.schedules.freeing(begun).await
    }

    /// Likewise, by the schedules of `asker`.
    pub(super) async fn log_in(
        asker: &PoliteClient,
        parser: &Parser,
        (spider, login, bans): (&Spider, Option<LoginPlan>, &Bans),
        own: AsSpider,
    ) -> Result<Option<Arc<Self>>, String> {
        let Some(session) = SpiderSession::new(spider, login) else { return Ok(None) };
        let mut state = SessionState::default();
        if let Some(plan) = &session.login {
            let log_in = LogIn::new(asker, parser, (spider, plan, bans), own);
            let LoginResult { cookies, values, expires, checked: _ } =
                log_in.run().await.map_err(|end| match end {
                    NoLogin::Failed(why) => why,
                    NoLogin::Later(until) => format!("the log-in may not be made before {until}"),
                })?;
            (state.logins, state.cookies, state.values, state.expires) = (1, cookies, values, expires);
        }
        Ok(Some(Arc::new(Self { session, state: Mutex::new(state) })))
    }

    /// Whether it was logged in.
    pub fn is_logged_in(&self) -> bool {
        self.session.login.is_some()
    }

    /// Returns its cookies.
    pub fn cookies(&self) -> Vec<Cookie> {
        self.state.lock().cookies.cookies().to_vec()
    }

    /// Returns the names of the values that the log-in took.
    pub fn taken(&self) -> Vec<String> {
        self.state.lock().values.keys().cloned().collect()
    }

    /// Returns the sign in a page that the session has lapsed, in words.
    pub fn lapse(&self, response: &Response, extraction: Option<&Extraction>) -> Option<String> {
        let signs = &self.session.login.as_ref()?.signs;
        let by_url = || signs.by_url(response.redirected_to.as_ref()?);
        let by_selector = || extraction?.lapsed.then(|| "`lapsed.selector` finds something".to_owned());
        signs.by_page(response).or_else(by_url).or_else(by_selector)
    }
}

impl trawl_web::Session for TrialSession {
    fn cookies(&self, url: &CanonicalUrl) -> Option<String> {
        self.state.lock().cookies.field(url, UnixMs::now())
    }

    fn fields(&self, url: &CanonicalUrl) -> Vec<(String, String)> {
        self.session.fields(url, &self.state.lock().values)
    }

    fn set_cookies(&self, url: &CanonicalUrl, values: &[String]) {
        let now = UnixMs::now();
        let mut state = self.state.lock();
        for set in values.iter().filter_map(|value| SetCookie::parse(url, value, now)) {
            state.cookies.set(set, now);
        }
    }
}
