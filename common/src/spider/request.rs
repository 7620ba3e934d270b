//! `[request]` of a spider.

use super::secret::Secret;
use crate::politeness::robots::RobotsName;
use crate::settings::{Fetch, ServerUrl};

/// The details of each request of a spider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Overrides `fetch.user_agent`.
    pub user_agent: Option<String>,
    /// Overrides `fetch.robots_name` and the product name in the user agent.
    pub robots_name: Option<RobotsName>,
    /// Header fields, in order; their values may be secrets.
    pub headers: Vec<(String, Secret)>,
    /// Cookies, in order.
    pub cookies: Vec<(String, Secret)>,
    /// Overrides `fetch.proxy`.
    pub proxy: Option<ServerUrl>,
}

impl Request {
    /// Returns the fetch settings of a spider: by its file, and by `settings` for what that does not set.
    pub fn apply(&self, settings: &Fetch) -> Fetch {
        let of_user_agent = || self.user_agent.as_deref().and_then(RobotsName::of_user_agent);
        let robots_name =
            self.robots_name.clone().or_else(of_user_agent).or_else(|| settings.robots_name.clone());
        Fetch {
            robots_name,
            user_agent: self.user_agent.clone().unwrap_or_else(|| settings.user_agent.clone()),
            proxy: self.proxy.clone().or_else(|| settings.proxy.clone()),
            ..settings.clone()
        }
    }
}
