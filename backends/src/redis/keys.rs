//! The names of keys. The hash tag keeps the keys that one script touches in one slot of a Redis Cluster.

use trawl_common::frontier::Key;
use trawl_common::names::{CrawlId, CrawlRef, ProjectName, ReaderName, RunnerName, SpiderName, WorkerId};
use trawl_common::politeness::robots::RobotsKey;
use trawl_common::session::{SessionId, SessionOwner};
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;

/// String: the version of all data here.
pub(crate) const SCHEMA: &str = "trawl:schema";
/// Hash: crawl -> spider.
pub(crate) const CRAWLS: &str = "crawls";
/// Hash: crawl that was opened and is not known to be over -> spider. A hint: programs that do not know this key
/// open crawls, too.
pub(crate) const OPEN_CRAWLS: &str = "crawls:open";
/// Sorted set: worker -> its last heartbeat, in ms.
pub(crate) const WORKERS: &str = "workers";
/// Hash: worker -> number of URLs that it held at its last heartbeat. A worker that ends is removed, so one that
/// is left and has no heartbeat has vanished.
pub(crate) const BEATS: &str = "beats";
/// Sorted set: host -> until when it is listed, in ms.
pub(crate) const HOSTS: &str = "hosts";
/// Sorted set: host that may have unannounced events -> when it was listed, in ms.
pub(crate) const HOST_NEWS: &str = "hosts:news";
/// String: the lease of the one process that sweeps.
pub(crate) const SWEEPER: &str = "sweeper";
/// Hash: queue -> when the last probe was sent that came back through it, in ms; `gap:<queue>` -> when the last
/// probe was sent that came back without the one before it; `sent` -> when the last probe left; `place` -> the
/// position of the sweep; `log` -> the position up to which commands have been read from the log.
pub(crate) const WATERMARKS: &str = "tides";

/// Sorted set: the queue of pending jobs. The keys that `jobs/queue.lua` lists share its slot.
pub(crate) const JOBS: &str = "jobs";
/// Sorted set: job -> its number in the order of submission.
pub(crate) const ALL_JOBS: &str = "{jobs}:all";
/// String: the run of the server that has read the stream `journal`, a blank, and the lease by which it did.
pub(crate) const JOURNAL: &str = "{jobs}:journal";
/// String: the lease of the process that reads it.
pub(crate) const RESTORING: &str = "{jobs}:restoring";
/// Sorted set: job that is over -> when it ended, in ms.
pub(crate) const ENDED_JOBS: &str = "{jobs}:ended";

/// Stream: the fleet's log. There is one for all spiders.
pub(crate) const LOGS: &str = "{crawled_urls}:logs";

/// Stream: the tasks of all spiders that have ended lately, as entries of a log.
pub(crate) const ENDED_TASKS: &str = "{crawled_urls}:ended_tasks";

/// Set: the runners.
pub(crate) const RUNNERS: &str = "runners";
/// Set: the projects that have versions.
pub(crate) const PROJECTS: &str = "projects";
/// Hash: the name of a project that people have made -> when, in ms.
pub(crate) const PROJECTS_MADE: &str = "{projects}:made";
/// Hash: spider -> the project that it belongs to.
pub(crate) const PROJECT_SPIDERS: &str = "{projects}:spiders";
/// Hash: project -> the JSON of the repository and the branch that its code comes from.
pub(crate) const PROJECT_SOURCES: &str = "{projects}:sources";
/// Hash: project -> the JSON of the version of its code that is to run.
pub(crate) const PROJECT_WANTED: &str = "{projects}:wanted";
/// Hash: project -> its sealed secret.
pub(crate) const PROJECT_SECRETS: &str = "{projects}:secrets";
/// Hash: spider -> the instant up to which its schedule is done, in ms, or `paused`.
pub(crate) const SCHEDULES: &str = "schedules";

/// The keys of the jobs themselves.
pub(crate) struct JobKeys {
    prefix: &'static str,
}

impl JobKeys {
    /// Creates the keys. On a cluster they share the slot of the queue, because one script may touch both.
    pub(crate) fn new(is_cluster: bool) -> Self {
        Self { prefix: if is_cluster { "{jobs}:job:" } else { "job:" } }
    }

    /// Returns the prefix of each.
    pub(crate) fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// Returns the key of a job's hash.
    pub(crate) fn job(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }
}

fn seen_name(spider: &SpiderName) -> String {
    if *spider == SpiderName::default() {
        "crawled_urls".to_owned()
    } else {
        format!("crawled_urls:{spider}")
    }
}

/// The keys of a set of URLs, in both its forms (`seen/seen.lua`).
pub(crate) struct SeenKeys {
    /// Set: the URLs.
    pub(crate) plain: String,
    /// Hash: the number of URLs and of buckets. Each bucket is a set of its own, `<packed>:<number>`.
    pub(crate) packed: String,
}

impl SeenKeys {
    /// Returns the keys of the URLs that a spider has seen.
    pub(crate) fn for_spider(spider: &SpiderName) -> Self {
        let plain = seen_name(spider);
        Self { packed: format!("{{{plain}}}:p"), plain }
    }
}

/// The keys of one crawl; all in the slot of its spider.
pub(crate) struct CrawlKeys {
    /// The URLs that its spider has seen.
    pub(crate) seen: SeenKeys,
    /// The URLs that it has seen itself, if it is a recrawl; in a crawl of requests the plain key is their sorted
    /// set (`admission/requests.lua`).
    pub(crate) own: SeenKeys,
    /// The records that have begun, if it has a limit of pages.
    pub(crate) begun: String,
    /// Hash: URL -> the workers that started it without an end because their lease lapsed.
    pub(crate) lapsed: String,
    pub(crate) hosts: String,
    pub(crate) pending: String,
    /// Hash: task or request that has a record, or failed -> its payload.
    pub(crate) recipes: String,
    pub(crate) outbox: String,
    pub(crate) crawl: String,
    pub(crate) failed: String,
    /// Hash: a text that was no URL -> the reason.
    pub(crate) invalid: String,
    /// Hash: URL -> the bytes of a record that cannot be read.
    pub(crate) corrupt: String,
    /// Set: the unreported ones among them.
    pub(crate) unreported: String,
    /// Hash: event of the crawl -> a mark that it was announced; `progress` -> how far the crawl was, and since
    /// when.
    pub(crate) told: String,
    pub(crate) gone: String,
    /// String: the text of its spider's file, if it does not use the file of each worker.
    pub(crate) text: String,
    pub(crate) leases: String,
    /// Sorted set: task of the spider that waits and is urgent -> its priority (`claim/urgent.lua`).
    pub(crate) urgent: String,
}

impl CrawlKeys {
    pub(crate) fn new(crawl: &CrawlRef) -> Self {
        let seen = seen_name(&crawl.spider);
        let id: &CrawlId = &crawl.id;
        Self {
            seen: SeenKeys::for_spider(&crawl.spider),
            own: SeenKeys {
                plain: format!("{{{seen}}}:seen:{id}"),
                packed: format!("{{{seen}}}:seen:{id}:p"),
            },
            begun: format!("{{{seen}}}:begun:{id}"),
            lapsed: format!("{{{seen}}}:lapsed:{id}"),
            hosts: format!("{{{seen}}}:hosts:{id}"),
            pending: format!("{{{seen}}}:pending:{id}"),
            recipes: format!("{{{seen}}}:recipes:{id}"),
            outbox: format!("{{{seen}}}:outbox"),
            crawl: format!("{{{seen}}}:crawl:{id}"),
            failed: format!("{{{seen}}}:failed:{id}"),
            corrupt: format!("{{{seen}}}:corrupt:{id}"),
            unreported: format!("{{{seen}}}:corrupt:{id}:new"),
            invalid: format!("{{{seen}}}:invalid:{id}"),
            told: format!("{{{seen}}}:told:{id}"),
            gone: format!("{{{seen}}}:gone:{id}"),
            text: format!("{{{seen}}}:text:{id}"),
            leases: format!("{{{seen}}}:leases"),
            urgent: format!("{{{seen}}}:urgent"),
        }
    }
}

impl CrawlKeys {
    /// Returns all keys that belong to the crawl alone, except its own seen URLs, which are deleted when it is
    /// over.
    pub(crate) fn all(self) -> [String; 13] {
        let Self {
            begun,
            lapsed,
            hosts,
            pending,
            recipes,
            crawl,
            failed,
            invalid,
            corrupt,
            unreported,
            told,
            gone,
            text,
            ..
        } = self;
        [
            begun, lapsed, hosts, pending, recipes, crawl, failed, invalid, corrupt, unreported, told, gone,
            text,
        ]
    }

    /// Returns every key that a call about the crawl touches, with the types that it may have.
    pub(crate) fn kinds(self) -> Vec<(String, &'static [&'static str])> {
        let (hash, set, sorted): (&[_], &[_], &[_]) = (&["hash"], &["set"], &["zset"]);
        vec![
            (self.crawl, hash),
            (self.pending, hash),
            (self.recipes, hash),
            (self.outbox, sorted),
            (self.seen.plain, set),
            (self.seen.packed, hash),
            (self.own.plain, &["set", "zset"]),
            (self.own.packed, hash),
            (self.begun, set),
            (self.lapsed, hash),
            (self.hosts, hash),
            (self.failed, hash),
            (self.invalid, hash),
            (self.corrupt, hash),
            (self.unreported, set),
            (self.told, hash),
            (self.gone, set),
            (self.text, &["string"]),
            (self.leases, hash),
            (self.urgent, sorted),
        ]
    }
}

/// Returns the key of a spider's page history, a hash: URL -> what is remembered of it.
pub(crate) fn pages(spider: &SpiderName) -> String {
    format!("{{{}}}:pages", seen_name(spider))
}

/// Returns the key of a session, a hash: `revision`, and `state` as JSON.
pub(crate) fn session(session: &SessionId) -> String {
    let SessionId { owner, name } = session;
    match owner {
        SessionOwner::Spider(spider) => format!("{{{}}}:session:{name}", seen_name(spider)),
        SessionOwner::Shared(share) => format!("{{sessions:{share}}}:session:{name}"),
    }
}

pub(crate) fn failures(key: &Key) -> String {
    format!("failures:{key}")
}

pub(crate) fn content(url: &CanonicalUrl) -> String {
    format!("content:{url}")
}

pub(crate) fn rate_limit(host: &HostKey) -> String {
    format!("ratelimit:{host}")
}

pub(crate) fn robots(key: &RobotsKey) -> String {
    format!("robots:{key}")
}

pub(crate) fn worker(id: &WorkerId) -> String {
    format!("workers:{id}")
}

/// Returns the key of a project's versions, a hash.
pub(crate) fn project(name: &ProjectName) -> String {
    format!("project:{name}")
}

/// Returns the key of what machines say of the version of a project that is to run, a hash: machine -> the JSON of its
/// report.
pub(crate) fn project_reports(name: &ProjectName) -> String {
    format!("{{projects}}:reports:{name}")
}

/// Returns the key of a runner, a hash: `key`, `since`, `asked`, and `access:<project>` for each of its projects.
pub(crate) fn runner(name: &RunnerName) -> String {
    format!("runners:{name}")
}

pub(crate) fn reader(name: &ReaderName) -> String {
    format!("readers:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawls_keys_share_the_slot_of_the_dedup_set() {
        let crawl = |spider: &str| CrawlRef { id: "c1".parse().unwrap(), spider: spider.parse().unwrap() };
        let keys = CrawlKeys::new(&crawl("default"));
        assert_eq!((&*keys.seen.plain, &*keys.seen.packed), ("crawled_urls", "{crawled_urls}:p"));
        assert_eq!(keys.pending, "{crawled_urls}:pending:c1");
        let keys = CrawlKeys::new(&crawl("docs"));
        assert_eq!((&*keys.seen.plain, &*keys.seen.packed), ("crawled_urls:docs", "{crawled_urls:docs}:p"));
        assert_eq!(
            (&*keys.own.plain, &*keys.own.packed),
            ("{crawled_urls:docs}:seen:c1", "{crawled_urls:docs}:seen:c1:p")
        );
        assert_eq!(keys.crawl, "{crawled_urls:docs}:crawl:c1");
    }
}
