//! Spiders: the description of a crawl in one TOML file: where to start, which links to follow, what to extract, how
//! politely, and where the items go.

pub mod arguments;
mod ban;
mod carried;
mod domains;
mod download;
pub mod file;
mod file_hash;
mod file_template;
pub mod folder;
mod follow;
mod formats;
mod hand_over;
mod handler;
mod home;
pub mod item;
mod item_counts;
mod items;
mod origin;
mod overrides;
pub mod page_history;
mod pages;
mod paginate;
pub mod pattern;
mod politeness;
mod proxies;
mod render;
mod request;
mod retry;
mod scope;
mod secret;
mod selector;
mod session;
mod start;
mod steps;
mod task_template;
mod tasks;
mod text;
mod transform;
mod version;

use std::num::NonZeroU64;
use std::sync::Arc;

pub use crate::frontier::judging::{Expect, Judging, Quality};
pub use ban::{Ban, Bans, Then};
pub use carried::{Carried, ListPlace, MAX_CARRIED_BYTES};
pub use download::Download;
pub use file_hash::{FileHash, InvalidFileHash};
pub use file_template::{FileFacts, FileTemplate, InvalidFileTemplate, with_mark};
pub use follow::Follow;
pub use formats::{Csv, Formats, Xml};
pub use hand_over::HandOver;
pub use handler::{Handler, Mode, ProxyUse};
pub use home::Home;
pub use item_counts::ItemCounts;
pub use items::{Field, FieldSource, ItemRule, Kind, PageField, Required, Whitespace};
pub use origin::Origin;
pub use overrides::SpiderOverrides;
pub use pages::{PageFollow, PageForm, PageKind, PageMatch};
pub use paginate::{Paginate, PaginateBy, Parameter};
pub use politeness::PolitenessOverrides;
pub use proxies::{Proxies, ProxyPer};
pub use render::Render;
pub use request::Request;
pub use retry::RetryOverrides;
pub use scope::{LinkVerdict, Scope};
pub use secret::Secret;
pub use selector::Selector;
pub use session::{LapseSigns, Lapsed, Login, LoginRequest, LoginStep, Session, StepExpect};
pub use start::{CsvRequests, Start};
pub use steps::{Action, Awaited, PageKey, PageStep, Target};
pub use task_template::{InvalidTaskTemplate, TaskTemplate};
pub use tasks::{NotSubmitted, crawl_for};
pub use text::SpiderText;
pub use transform::{Conversion, Transform};
pub use version::{InvalidFiles, InvalidVersion, SpiderFiles, Version};

use crate::frontier::route::Rule;
use crate::frontier::{DedupScope, Recrawl};
use crate::names::SpiderName;
use crate::schedule::Schedule;
use crate::settings::{self, Settings, SinkSettings, Urls, Webhook};
use crate::web::url::Host;

/// A spider as its file describes it. The settings provide whatever the file leaves out.
#[derive(Clone, Debug, PartialEq)]
pub struct Spider {
    /// Its name: that of the file, without `.toml`.
    pub name: SpiderName,
    /// The hash of its file; `None` if it has none.
    pub file: Option<FileHash>,
    /// The start of its crawls.
    pub start: Start,
    /// The schedule on which its crawls are submitted automatically; `None` if never.
    pub schedule: Option<Schedule>,
    /// The domains whose URLs it takes, each with all below it; `*` for any. If empty, it takes its start URLs, and
    /// follows links within one host.
    pub allowed_domains: Vec<String>,
    /// The rules for equivalent URLs.
    pub urls: Urls,
    /// The links that it follows; `None` for no links.
    pub follow: Option<Follow>,
    /// The number of pages done after which a crawl ends.
    pub max_pages: Option<NonZeroU64>,
    /// The URLs that its crawls take for seen; `None` if nobody has chosen them.
    pub dedup: Option<DedupScope>,
    /// The URLs that its crawls take for seen if nobody has chosen them.
    pub usual_dedup: DedupScope,
    /// The least that its crawls are expected to yield.
    pub expect: Expect,
    /// The least that the last pages of its running crawls are to yield.
    pub quality: Option<Quality>,
    /// Rules that route URLs to lanes, before those of the settings.
    pub route: Vec<Rule>,
    /// Politeness towards hosts.
    pub politeness: PolitenessOverrides,
    /// Which failures are tried again.
    pub retry: RetryOverrides,
    /// Additions to each request.
    pub request: Request,
    /// The proxies among which its requests are divided; `None` for that of `request`, if there is one.
    pub proxies: Option<Proxies>,
    /// Whether a browser renders its pages, except those of kinds that say otherwise.
    pub render: Render,
    /// The steps in pages that a browser renders, except those of kinds that have their own.
    pub steps: Arc<[PageStep]>,
    /// The rules for responses that are not pages.
    pub ban: Ban,
    /// The session that its requests are part of; `None` if it keeps none.
    pub session: Option<Session>,
    /// How it logs in.
    pub login: Option<Login>,
    /// The kinds of its pages; empty if all are alike.
    pub pages: Vec<PageKind>,
    /// The ways to the further pages of lists.
    pub paginate: Vec<Paginate>,
    /// The files that it keeps.
    pub downloads: Vec<Download>,
    /// The links and tasks that its pages hand to other spiders.
    pub hand_overs: Vec<HandOver>,
    /// The formats of responses that it reads beside HTML and JSON.
    pub formats: Formats,
    /// The uses of its items: a page whose publisher reserves one of these has none.
    pub used_for: Vec<String>,
    /// The items to extract.
    pub items: Vec<ItemRule>,
    /// The program that does its tasks, or reads its pages.
    pub handler: Option<Handler>,
    /// The sinks of its items, in place of those of the settings.
    pub sinks: Option<Vec<SinkSettings>>,
    /// Webhooks for events of its crawls, in addition to those of the settings.
    pub webhooks: Vec<Webhook>,
}

impl Spider {
    /// Creates the spider `name` without a file: it extracts the fields in `[items]` of the settings from every page,
    /// and follows no links.
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
            usual_dedup: DedupScope::Spider,
            expect: Expect::default(),
            quality: None,
            route: Vec::new(),
            politeness: PolitenessOverrides::default(),
            retry: RetryOverrides::default(),
            request: Request::default(),
            proxies: None,
            render: Render::default(),
            steps: Arc::default(),
            ban: Ban::default(),
            session: None,
            login: None,
            pages: Vec::new(),
            paginate: Vec::new(),
            downloads: Vec::new(),
            hand_overs: Vec::new(),
            formats: Formats::default(),
            used_for: Vec::new(),
            items: vec![ItemRule::of_every_page(items)],
            handler: None,
            sinks: None,
            webhooks: Vec::new(),
        }
    }

    /// Creates the spider `name` without a file, with everything that `settings` say in place of one.
    pub fn of_settings(name: SpiderName, settings: &Settings) -> Self {
        Self { urls: settings.urls.clone(), ..Self::without_file(name, &settings.items) }
    }

    /// Returns when its crawls fetch again pages that were crawled before.
    pub fn recrawl(&self) -> Recrawl {
        self.dedup.unwrap_or(self.usual_dedup).recrawl()
    }

    /// Returns how the results of its crawls are judged.
    pub fn judging(&self) -> Judging {
        Judging {
            expect: self.expect.clone(),
            quality: self.quality.clone(),
            is_dedup_chosen: self.dedup.is_some(),
        }
    }

    /// Returns the program that reads its pages, if there is one.
    pub fn page_handler(&self) -> Option<&Handler> {
        self.handler.as_ref().filter(|handler| handler.reads_pages())
    }

    /// Whether a browser may have to render its pages.
    pub fn needs_browser(&self) -> bool {
        self.render.needs_browser()
            || self.pages.iter().filter_map(|kind| kind.render).any(Render::needs_browser)
    }

    /// Returns the rules that route its URLs: its own, followed by those of the settings.
    pub fn routes(&self, settings: &[Rule]) -> Vec<Rule> {
        self.route.iter().chain(settings).cloned().collect()
    }

    /// Returns the values that its pages carry to others, in the order of the file.
    pub fn carried(&self) -> impl Iterator<Item = &(String, Field)> {
        self.pages.iter().flat_map(|kind| {
            let rules = kind.follow.iter().flatten().flat_map(|rule| &rule.carry);
            kind.carry.iter().chain(rules)
        })
    }

    /// Returns the fields of its items with the name of their kind, in the order of the file; those of files come last.
    pub fn item_fields(&self) -> impl Iterator<Item = (Option<&str>, Vec<(String, Field)>)> {
        let files = self.downloads.iter().map(|download| (Some(&*download.name.value), download.fields()));
        self.items.iter().map(|rule| (rule.name.as_deref(), rule.fields.clone())).chain(files)
    }

    /// Whether its links say which kinds of pages led to them, and pass on values, or where in a list they are: then
    /// all its pages are [requests](crate::request) with data, so that it admits each once, whichever link comes first.
    pub fn tracks(&self) -> bool {
        let carries = self.carried().next().is_some() || !self.paginate.is_empty();
        let mut rules = self.pages.iter().flat_map(|kind| kind.follow.iter().flatten());
        let asks = rules.any(|rule| rule.request.is_some() || rule.form.is_some());
        carries || asks || self.pages.iter().any(|kind| !kind.when.from.is_empty())
    }

    /// Whether URLs of `host` are taken.
    pub fn allows(&self, host: &Host) -> bool {
        domains::allow(&self.allowed_domains, host)
    }

    /// Returns the hosts to which the header fields and cookies of `[request]` may be sent.
    pub fn home(&self) -> Home {
        Home::new(&self.start, &self.allowed_domains)
    }
}
