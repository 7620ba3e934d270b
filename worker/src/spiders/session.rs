//! The session of a loaded spider.

use serde_json::{Map, Value};
use trawl_common::request::in_texts;
use trawl_common::session::SessionId;
use trawl_common::spider::{Home, Session, Spider};
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::LoginPlan;

/// The session of a loaded spider.
#[derive(Debug)]
pub(crate) struct SpiderSession {
    pub(crate) id: SessionId,
    pub(crate) login: Option<LoginPlan>,
    /// The hosts that its header fields are sent to.
    home: Home,
    headers: Vec<(String, String)>,
}

impl SpiderSession {
    /// Returns the session of a spider, which logs in by `login`; `None` if it keeps none.
    pub(crate) fn new(spider: &Spider, login: Option<LoginPlan>) -> Option<Self> {
        let Session { headers, share: _ } = spider.session.as_ref()?;
        Some(Self { id: spider.session_id()?, login, home: spider.home(), headers: headers.clone() })
    }

    /// Returns the header fields of a request for `url`, with these values of the log-in.
    pub(crate) fn fields(&self, url: &CanonicalUrl, values: &Map<String, Value>) -> Vec<(String, String)> {
        if self.headers.is_empty() || !self.home.has(url) {
            return Vec::new();
        }
        let filled = self.headers.iter().filter_map(|(name, text)| {
            let value = in_texts(&Value::String(text.clone()), values).ok()?;
            Some((name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        });
        filled.collect()
    }
}
