//! Scripts on keys of one crawl, which know them by their names.

use redis::{Script, ScriptInvocation};

use crate::redis::keys::CrawlKeys;

/// A key of a crawl, which scripts have by its name in capitals.
#[derive(Clone, Copy, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub(crate) enum Key {
    Begun,
    Corrupt,
    Crawl,
    Failed,
    Gone,
    Hosts,
    Invalid,
    Leases,
    Outbox,
    /// The set of URLs that the crawl itself has seen, in both its forms.
    #[strum(serialize = "OWN_PLAIN, OWN_PACKED")]
    Own,
    Pending,
    Recipes,
    /// The set of URLs that its spider has seen, in both its forms.
    #[strum(serialize = "SEEN_PLAIN, SEEN_PACKED")]
    Seen,
    Told,
    Urgent,
}

impl Key {
    fn add(self, call: &mut ScriptInvocation<'_>, keys: &CrawlKeys) {
        match self {
            Self::Seen => drop(call.key(&keys.seen.plain)),
            Self::Own => drop(call.key(&keys.own.plain)),
            _ => {}
        }
        call.key(match self {
            Self::Begun => &keys.begun,
            Self::Corrupt => &keys.corrupt,
            Self::Crawl => &keys.crawl,
            Self::Failed => &keys.failed,
            Self::Gone => &keys.gone,
            Self::Hosts => &keys.hosts,
            Self::Invalid => &keys.invalid,
            Self::Leases => &keys.leases,
            Self::Outbox => &keys.outbox,
            Self::Own => &keys.own.packed,
            Self::Pending => &keys.pending,
            Self::Recipes => &keys.recipes,
            Self::Seen => &keys.seen.packed,
            Self::Told => &keys.told,
            Self::Urgent => &keys.urgent,
        });
    }
}

/// A script on some keys of one crawl.
pub(crate) struct CrawlScript {
    pub(super) script: Script,
    pub(super) keys: &'static [Key],
}

impl CrawlScript {
    /// Returns a call of the script for a crawl, still without arguments.
    pub(crate) fn on(&self, keys: &CrawlKeys) -> ScriptInvocation<'_> {
        let mut call = self.script.prepare_invoke();
        self.keys.iter().for_each(|key| key.add(&mut call, keys));
        call
    }
}
