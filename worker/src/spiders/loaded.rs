//! A spider with its resources.

use std::sync::Arc;

use trawl_common::frontier::route::Rule;
use trawl_common::names::ProjectName;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::ports::{FileStore, Sink};
use trawl_common::settings::Politeness;
use trawl_common::spider::{Bans, Download, FileHash, Scope, Spider};
use trawl_extract::Extractor;
use trawl_web::{Fetcher, Passage};

use super::code::Taken;
use super::empty_fields::EmptyFields;
use super::gains::Gains;
use super::grants::Granted;
use super::recent_items::RecentItems;
use super::session::SpiderSession;
use super::sink_backlog::SinkBacklog;
use crate::programs::Running;

/// A spider that is ready to work.
pub(crate) struct LoadedSpider {
    pub(crate) spider: Spider,
    pub(crate) scope: Scope,
    /// The rules for responses that are not pages.
    pub(crate) bans: Bans,
    /// The session that its requests are part of.
    pub(crate) session: Option<SpiderSession>,
    /// The rules that route its links.
    pub(crate) route: Vec<Rule>,
    pub(crate) politeness: Politeness,
    /// The name by which a robots.txt addresses it.
    pub(crate) robots_name: RobotsName,
    pub(crate) fetcher: Fetcher,
    /// Like `fetcher`, but on separate threads.
    pub(crate) apart: Fetcher,
    /// The way of its browser's requests, if its pages are rendered.
    pub(crate) passage: Option<Passage>,
    pub(crate) extractor: Arc<Extractor>,
    pub(crate) empty_fields: EmptyFields,
    /// Where rendering pages that lack a field is worth it.
    pub(crate) gains: Gains,
    pub(crate) recent_items: RecentItems,
    pub(crate) sinks: Vec<Arc<dyn Sink>>,
    /// The stores of its files, one for each `[[download]]`.
    pub(crate) files: Vec<Arc<dyn FileStore>>,
    /// The pages that wait for its sinks.
    pub(crate) backlog: SinkBacklog,
    /// The spider's running program, if it has one.
    pub(crate) program: Option<Running>,
    /// The version of that program.
    pub(super) version: Option<ProgramVersion>,
    /// The grant of its project, with which that program runs.
    pub(super) granted: Arc<Granted>,
    /// The version of its project's code, if that comes from Git.
    pub(super) code: Option<Arc<Taken>>,
}

/// The version of a spider's program.
#[derive(Clone, Copy)]
pub(super) struct ProgramVersion {
    /// The hash of the program's files.
    pub(super) files: FileHash,
    /// The hash of these and of the spider's file on this machine, for people to compare.
    pub(super) shown: FileHash,
}

impl LoadedSpider {
    /// Returns the project that it belongs to, if it is in one.
    pub(crate) fn project(&self) -> Option<&ProjectName> {
        self.granted.project()
    }

    /// Returns the `[[download]]` of this name, with the store of its files.
    pub(crate) fn download(&self, name: &str) -> Option<(&Download, &dyn FileStore)> {
        let mut rules = self.spider.downloads.iter().zip(&self.files);
        rules.find(|(rule, _)| rule.name.value == name).map(|(rule, store)| (rule, &**store))
    }

    /// Whether its sinks are those of `spider`, and take the same items.
    pub(super) fn has_sinks_of(&self, spider: &Spider) -> bool {
        let takes_same = self.spider.items == spider.items
            && self.spider.pages == spider.pages
            && self.spider.downloads == spider.downloads
            && self.spider.handler.is_some() == spider.handler.is_some();
        self.spider.sinks == spider.sinks && takes_same
    }
}
