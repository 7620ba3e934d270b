//! Spiders: what a person says of a crawl, in one TOML file: where to start, what to follow, what to extract, how
//! politely, and where the items go.

mod ban;
pub mod file;
mod file_hash;
pub mod folder;
mod follow;
pub mod item;
mod items;
pub mod page_history;
pub mod pattern;
mod place;
mod recrawl;
mod scope;
mod wishes;

use std::collections::BTreeSet;
use std::num::NonZeroU64;

pub use ban::{Ban, Bans, Then};
pub use file_hash::{FileHash, InvalidFileHash};
pub use follow::Follow;
pub use items::{Field, From, ItemRule, Kind, PageField, Required};
pub use place::{Mistake, Place, Places, Sited};
pub use recrawl::{Recrawl, UnknownRecrawl};
pub use scope::{Scope, Verdict};
pub use wishes::Wishes;

use crate::frontier::route::Rule;
use crate::names::SpiderName;
use crate::politeness::rate::Rate;
use crate::politeness::robots::RobotsName;
use crate::settings::{self, HostRule, RobotsFor, ServerUrl, Settings, SinkSettings, Urls};
use crate::web::url::{CanonicalUrl, Host};

/// One spider, as its file says. What the file leaves out is as the settings say.
#[derive(Clone, Debug, PartialEq)]
pub struct Spider {
    /// Its name: that of the file, without `.toml`.
    pub name: SpiderName,
    /// What its file says; `None` if it has none.
    pub file: Option<FileHash>,
    /// Where it starts.
    pub start: Start,
    /// The domains whose URLs it takes, each with all below it; `*` for any. With none it takes what it starts from, and
    /// follows links within one host.
    pub allowed_domains: Vec<String>,
    /// Which URLs are one to it.
    pub urls: Urls,
    /// Which links it follows; none if it follows none.
    pub follow: Option<Follow>,
    /// After how many pages done a crawl ends.
    pub max_pages: Option<NonZeroU64>,
    /// Whether pages that were crawled before are fetched again.
    pub recrawl: Recrawl,
    /// Rules that route URLs to lanes, before those of the settings.
    pub route: Vec<Rule>,
    /// How hosts are asked.
    pub politeness: PolitenessOverrides,
    /// What is sent with each request.
    pub request: Request,
    /// Which answers are no pages.
    pub ban: Ban,
    /// What is extracted.
    pub items: Vec<ItemRule>,
    /// Where items go, in place of what the settings say.
    pub sinks: Option<Vec<SinkSettings>>,
}

impl Spider {
    /// The spider `name` for which there is no file: it extracts what `[items]` of the settings says of every page, and
    /// follows nothing.
    pub fn without_file(name: SpiderName, items: &settings::Items) -> Self {
        Self {
            name,
            file: None,
            start: Start::default(),
            allowed_domains: Vec::new(),
            urls: Urls::default(),
            follow: None,
            max_pages: None,
            recrawl: Recrawl::default(),
            route: Vec::new(),
            politeness: PolitenessOverrides::default(),
            request: Request::default(),
            ban: Ban::default(),
            items: vec![ItemRule::of_every_page(items)],
            sinks: None,
        }
    }

    /// The same, with all that `settings` say in place of a file.
    pub fn of_settings(name: SpiderName, settings: &Settings) -> Self {
        Self { urls: settings.urls.clone(), ..Self::without_file(name, &settings.items) }
    }

    /// The rules that route its URLs: its own, and then those of the settings.
    pub fn routes(&self, settings: &[Rule]) -> Vec<Rule> {
        self.route.iter().chain(settings).cloned().collect()
    }

    /// Whether URLs of `host` are taken.
    pub fn allows(&self, host: &Host) -> bool {
        is_allowed(&self.allowed_domains, host)
    }

    /// Where the header fields and cookies of `[request]` may go.
    pub fn home(&self) -> Home {
        let Start { sitemaps, urls, robots } = &self.start;
        let start = [sitemaps, urls, robots].into_iter().flatten();
        let start: Vec<_> = start.filter_map(|url| CanonicalUrl::parse(url).ok()).collect();
        let is_any = is_any(&self.allowed_domains);
        Home {
            domains: if is_any { Vec::new() } else { self.allowed_domains.clone() },
            hosts: start.iter().filter(|_| is_any).map(CanonicalUrl::host).collect(),
            services: services(&start),
        }
    }
}

/// The hosts that a spider is for: those of `allowed_domains`, or if that is any, those of `[start]`. What a page or
/// a redirect leads to is not one of them for that; nor is another port of such a host, which may be somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    domains: Vec<String>,
    hosts: BTreeSet<Host>,
    /// Whether by TLS, and the port.
    services: BTreeSet<(bool, u16)>,
}

impl Home {
    /// Whether `url` is there.
    pub fn has(&self, url: &CanonicalUrl) -> bool {
        let host = url.host();
        let is_ours = self.hosts.contains(&host) || self.domains.iter().any(|domain| host.is_within(domain));
        is_ours && self.services.contains(&service(url))
    }

    /// Whether there are no such hosts.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.domains.is_empty()
    }
}

const HTTP: (bool, u16) = (false, 80);
const HTTPS: (bool, u16) = (true, 443);

fn service(url: &CanonicalUrl) -> (bool, u16) {
    let url = url.to_url();
    (url.scheme() == "https", url.port_or_known_default().unwrap_or_default())
}

/// Those that a spider starts at, and TLS where it starts without on the usual port, or starts nowhere.
fn services(start: &[CanonicalUrl]) -> BTreeSet<(bool, u16)> {
    let mut services: BTreeSet<_> = start.iter().map(service).collect();
    if services.is_empty() || services.contains(&HTTP) {
        services.insert(HTTPS);
    }
    services
}

fn is_any(domains: &[String]) -> bool {
    domains.is_empty() || domains.iter().any(|domain| domain == "*")
}

/// Whether `host` is in one of `domains`.
fn is_allowed(domains: &[String], host: &Host) -> bool {
    is_any(domains) || domains.iter().any(|domain| host.is_within(domain))
}

/// `[start]`: where a crawl begins. Each is a URL, or for sitemaps and robots also a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Sitemaps, sitemap indexes, feeds, lists of URLs.
    pub sitemaps: Vec<String>,
    /// Pages.
    pub urls: Vec<String>,
    /// `robots.txt` files, whose sitemaps are read.
    pub robots: Vec<String>,
}

/// `[politeness]` of a spider: in place of what the settings say, where it says anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolitenessOverrides {
    /// How often one host is asked.
    pub rate: Option<Rate>,
    /// How many requests may follow each other without a gap.
    pub burst: Option<u32>,
    /// How many requests to one host may be under way at once.
    pub concurrency: Option<u32>,
    /// Whether robots.txt is obeyed.
    pub robots: Option<bool>,
    /// What one robots.txt speaks for.
    pub robots_for: Option<RobotsFor>,
    /// What differs for some hosts, before the settings' own rules.
    pub host: Vec<HostRule>,
}

/// `[request]`: what is sent with each request of a spider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// In place of `fetch.user_agent`.
    pub user_agent: Option<String>,
    /// In place of `fetch.robots_name`, and of what the user agent tells.
    pub robots_name: Option<RobotsName>,
    /// Header fields, in order; their values may be secrets.
    pub headers: Vec<(String, Secret)>,
    /// Cookies, in order.
    pub cookies: Vec<(String, Secret)>,
    /// In place of `fetch.proxy`.
    pub proxy: Option<ServerUrl>,
}

/// A text that shows nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: for the request and nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
