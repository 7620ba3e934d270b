//! Spiders: what a person says of a crawl, in one TOML file: where to start, what to follow, what to extract, how
//! politely, and where the items go.

pub mod arguments;
mod ban;
mod dedup_scope;
mod domains;
mod expect;
pub mod file;
mod file_hash;
pub mod folder;
mod follow;
mod handler;
mod home;
pub mod item;
mod item_counts;
mod items;
mod origin;
mod overrides;
pub mod page_history;
pub mod pattern;
mod place;
mod politeness;
mod recrawl;
mod request;
mod scope;
mod secret;
mod start;
mod text;
mod version;

use std::num::NonZeroU64;

pub use ban::{Ban, Bans, Then};
pub use dedup_scope::{DedupScope, UnknownDedupScope};
pub use expect::Expect;
pub use file_hash::{FileHash, InvalidFileHash};
pub use follow::Follow;
pub use handler::{Handler, Mode, ProxyUse};
pub use home::Home;
pub use item_counts::ItemCounts;
pub use items::{Field, FieldSource, ItemRule, Kind, PageField, Required, Whitespace};
pub use origin::Origin;
pub use overrides::SpiderOverrides;
pub use place::{Mistake, Place, Places, Sited};
pub use politeness::PolitenessOverrides;
pub use recrawl::{Recrawl, UnknownRecrawl};
pub use request::Request;
pub use scope::{LinkVerdict, Scope};
pub use secret::Secret;
pub use start::Start;
pub use text::SpiderText;
pub use version::{InvalidFiles, InvalidVersion, SpiderFiles, Version};

use crate::frontier::route::Rule;
use crate::names::SpiderName;
use crate::schedule::Schedule;
use crate::settings::{self, Settings, SinkSettings, Urls, Webhook};
use crate::web::url::Host;

/// One spider, as its file says. What the file leaves out is as the settings say.
#[derive(Clone, Debug, PartialEq)]
pub struct Spider {
    /// Its name: that of the file, without `.toml`.
    pub name: SpiderName,
    /// What its file says; `None` if it has none.
    pub file: Option<FileHash>,
    /// Where it starts.
    pub start: Start,
    /// When its crawls are asked for without anybody's doing; `None` if never.
    pub schedule: Option<Schedule>,
    /// The domains whose URLs it takes, each with all below it; `*` for any. With none it takes what it starts from, and
    /// follows links within one host.
    pub allowed_domains: Vec<String>,
    /// Which URLs are one to it.
    pub urls: Urls,
    /// Which links it follows; none if it follows none.
    pub follow: Option<Follow>,
    /// After how many pages done a crawl ends.
    pub max_pages: Option<NonZeroU64>,
    /// Which URLs its crawls take for seen; `None` if that is for those to say who ask for them.
    pub dedup: Option<DedupScope>,
    /// The least that its crawls are expected to yield.
    pub expect: Expect,
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
    /// The program that does its tasks, or reads its pages.
    pub handler: Option<Handler>,
    /// Where items go, in place of what the settings say.
    pub sinks: Option<Vec<SinkSettings>>,
    /// Webhooks for events of its crawls, in addition to those of the settings.
    pub webhooks: Vec<Webhook>,
}

impl Spider {
    /// The spider `name` for which there is no file: it extracts what `[items]` of the settings says of every page, and
    /// follows nothing.
    pub fn without_file(name: SpiderName, items: &settings::Items) -> Self {
        Self {
            name,
            file: None,
            start: Start::default(),
            schedule: None,
            allowed_domains: Vec::new(),
            urls: Urls::default(),
            follow: None,
            max_pages: None,
            dedup: None,
            expect: Expect::default(),
            route: Vec::new(),
            politeness: PolitenessOverrides::default(),
            request: Request::default(),
            ban: Ban::default(),
            items: vec![ItemRule::of_every_page(items)],
            handler: None,
            sinks: None,
            webhooks: Vec::new(),
        }
    }

    /// The same, with all that `settings` say in place of a file.
    pub fn of_settings(name: SpiderName, settings: &Settings) -> Self {
        Self { urls: settings.urls.clone(), ..Self::without_file(name, &settings.items) }
    }

    /// Whether its crawls fetch again what was crawled before. Where nothing says so, they take for seen all that it has seen.
    pub fn recrawl(&self) -> Recrawl {
        self.dedup.unwrap_or(DedupScope::Spider).recrawl()
    }

    /// The program that reads its pages, if that does.
    pub fn page_handler(&self) -> Option<&Handler> {
        self.handler.as_ref().filter(|handler| handler.reads_pages())
    }

    /// The rules that route its URLs: its own, and then those of the settings.
    pub fn routes(&self, settings: &[Rule]) -> Vec<Rule> {
        self.route.iter().chain(settings).cloned().collect()
    }

    /// Whether URLs of `host` are taken.
    pub fn allows(&self, host: &Host) -> bool {
        domains::allow(&self.allowed_domains, host)
    }

    /// Where the header fields and cookies of `[request]` may go.
    pub fn home(&self) -> Home {
        Home::of(&self.start, &self.allowed_domains)
    }
}
