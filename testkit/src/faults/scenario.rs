//! The scenarios: the crawls that faults are injected into.

use strum::VariantArray;

use super::fate::TIMEOUT;
use super::kind::{Kind, Subject};
use super::layout::Layout;
use super::units::Units;

/// The id of the crawl, or of the first of several.
pub const CRAWL: &str = "faults";

/// A scenario. Consecutive seeds use the scenarios in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Scenario {
    /// Sitemaps that name every page.
    Sitemap,
    /// A spider that follows links and redirects over several levels, on a site where some pages never answer.
    Links,
    /// Two such spiders at once: one with a limit on pages, one with a limit on the URLs of a host.
    Limits,
    /// Two such spiders with rules of their own and a crawl of sitemaps at once. One worker lacks the file of a spider.
    Several,
    /// A site whose sitemaps name every page, crawled again after a crawl without faults.
    Recrawl,
    /// Tasks that submit tasks: of a program that is started for each task, where lists name them too, and of one that
    /// stays alive.
    Tasks,
    /// A spider whose program asks for requests with bodies of their own, some of which redirect.
    Requests,
}

impl Scenario {
    /// Returns the scenario of this seed.
    pub fn of_seed(seed: u64) -> Self {
        Self::VARIANTS[(seed.wrapping_sub(1) % Self::VARIANTS.len() as u64) as usize]
    }

    /// Whether a fault of this kind may come. Orders only concern one crawl and its host; and only some scenarios store
    /// in PostgreSQL.
    pub fn takes(self, kind: Kind) -> bool {
        match kind.subject() {
            // A task has no host.
            Subject::Crawl if self == Self::Tasks => !kind.blocks_host(),
            Subject::Crawl => matches!(self, Self::Sitemap | Self::Requests),
            Subject::Database => matches!(self, Self::Links | Self::Tasks),
            _ => true,
        }
    }

    /// Returns the crawls, on sites of `pages` pages together.
    pub fn crawls(self, pages: usize, seed: u64) -> Vec<Crawl> {
        // URLs that one worker cannot fetch take longer.
        let (half, rare) = (pages / 2, pages / 8);
        match self {
            Self::Sitemap => vec![Crawl::of_sitemaps(CRAWL, Layout::listed(pages, seed))],
            Self::Links => vec![Crawl {
                sinks: &Sink::ALL,
                ..Crawl::of_links(CRAWL, "links", Layout::linked(pages, seed, LEVEL))
            }],
            Self::Limits => vec![
                Crawl::of_links(CRAWL, "pages", Layout::linked(half, seed, LEVEL))
                    .limited(Limit::Pages(half * 3 / 5)),
                Crawl::of_links("faults-host", "host", Layout::linked(half, seed + 1, LEVEL))
                    .limited(Limit::PerHost(half * 3 / 5)),
            ],
            Self::Several => vec![
                Crawl::of_links(CRAWL, "links", Layout::linked(half - rare, seed, LEVEL)),
                Crawl::of_links("faults-rare", RARE, Layout::linked(rare, seed + 1, WIDE)),
                Crawl::of_sitemaps("faults-plain", Layout::listed(half, seed + 2)),
            ],
            Self::Recrawl => {
                vec![Crawl { spider: Some(AGAIN), ..Crawl::of_sitemaps(CRAWL, Layout::listed(pages, seed)) }]
            }
            Self::Tasks => vec![
                Crawl {
                    sinks: &Sink::OF_TASKS,
                    ..Crawl::of_units(Units::Tasks, CRAWL, "once", Layout::of_tasks(half, seed, LEVEL, true))
                },
                Crawl::of_units(
                    Units::Tasks,
                    "faults-stream",
                    "stream",
                    Layout::of_tasks(half, seed + 1, LEVEL, false),
                ),
            ],
            Self::Requests => vec![Crawl::of_units(
                Units::Requests,
                CRAWL,
                "requests",
                Layout::of_requests(pages, seed, LEVEL),
            )],
        }
    }
}

/// Approximate number of pages in a level of a site, small enough that URLs in the servers are soon fetched.
const LEVEL: usize = 32;
/// Number of pages in a level if one worker has to put URLs aside for ten seconds: once for all pages of a level.
const WIDE: usize = 200;

/// The spider whose file the first worker lacks.
pub const RARE: &str = "rare";

/// The spider that has crawled its site before.
const AGAIN: &str = "again";

/// The id of that earlier crawl.
pub const BEFORE: &str = "faults-before";

/// The programs of spiders: their file names and texts.
pub const PROGRAMS: [(&str, &str); 2] =
    [(ONCE, include_str!("programs/once.sh")), (STREAM, include_str!("programs/stream.py"))];
const ONCE: &str = "once.sh";
const STREAM: &str = "stream.py";

/// The limit of a crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Maximum number of pages done.
    Pages(usize),
    /// Maximum number of URLs of its host.
    PerHost(usize),
}

/// One crawl of a scenario, on a site of its own.
#[derive(Clone, Debug)]
pub struct Crawl {
    /// Its id.
    pub id: &'static str,
    /// Its spider; `None` for the default one.
    pub spider: Option<&'static str>,
    /// Its site.
    pub layout: Layout,
    /// The kind of its work.
    pub units: Units,
    /// Its limit.
    pub limit: Option<Limit>,
    /// The sinks of its items.
    pub sinks: &'static [Sink],
}

/// A destination of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sink {
    /// Files of JSON Lines, one for each worker.
    Files,
    /// The stream `items` of RabbitMQ.
    Stream,
    /// A web archive.
    Archive,
    /// Files of CSV, one for each worker.
    Csv,
    /// A folder of Parquet files.
    Parquet,
    /// The table of its spider in PostgreSQL.
    Table,
}

impl Sink {
    /// All sinks.
    pub const ALL: [Self; 6] =
        [Self::Files, Self::Stream, Self::Archive, Self::Csv, Self::Parquet, Self::Table];

    /// The sinks that can take the items of tasks, which have no responses to archive.
    const OF_TASKS: [Self; 5] = [Self::Files, Self::Stream, Self::Csv, Self::Parquet, Self::Table];

    fn section(self) -> &'static str {
        match self {
            Self::Files => "[[sinks]]\nkind = \"jsonl\"\npath = \"items/{worker}.jsonl\"\n",
            Self::Stream => "[[sinks]]\nkind = \"stream\"\n",
            Self::Archive => "[[sinks]]\nkind = \"warc\"\npath = \"archive\"\n",
            Self::Csv => "[[sinks]]\nkind = \"csv\"\npath = \"csv/{worker}.csv\"\n",
            Self::Parquet => "[[sinks]]\nkind = \"parquet\"\npath = \"parquet\"\n",
            Self::Table => "[[sinks]]\nkind = \"postgres\"\nurl = { env = \"POSTGRES_URL\" }\n",
        }
    }
}

/// Returns the sections of these sinks for `trawl.toml` and the files of spiders.
pub fn sections(sinks: &[Sink]) -> String {
    sinks.iter().map(|sink| sink.section()).collect()
}

impl Crawl {
    fn of_sitemaps(id: &'static str, layout: Layout) -> Self {
        let (units, sinks) = (Units::Pages, &[Sink::Files]);
        Self { id, spider: None, layout, units, limit: None, sinks }
    }

    fn of_links(id: &'static str, spider: &'static str, layout: Layout) -> Self {
        let sinks = &[Sink::Files, Sink::Stream, Sink::Archive];
        Self { id, spider: Some(spider), layout, units: Units::Pages, limit: None, sinks }
    }

    fn of_units(units: Units, id: &'static str, spider: &'static str, layout: Layout) -> Self {
        Self { id, spider: Some(spider), layout, units, limit: None, sinks: &[Sink::Files, Sink::Stream] }
    }

    /// Whether its spider has crawled the site before.
    pub fn is_again(&self) -> bool {
        self.spider == Some(AGAIN)
    }

    fn limited(self, limit: Limit) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Returns the minimum number of different pages that it requests.
    pub fn goal(&self) -> usize {
        match self.limit {
            None => self.layout.leaves.len(),
            // The last requests are still under way when the limit is reached.
            Some(Limit::Pages(most) | Limit::PerHost(most)) => most * 4 / 5,
        }
    }

    /// Returns the name and the file of its spider, which starts at `start` and stores the number of a page in a field
    /// of the spider's name.
    pub fn file(&self, start: &str) -> Option<(&'static str, String)> {
        let spider = self.spider?;
        if self.units != Units::Pages {
            return Some((spider, self.file_with_program(start)));
        }
        let (max_pages, max_per_host) = match self.limit {
            None => (String::new(), String::new()),
            Some(Limit::Pages(most)) => (format!("max_pages = {most}\n"), String::new()),
            Some(Limit::PerHost(most)) => (String::new(), format!("max_per_host = {most}\n")),
        };
        let sinks = sections(self.sinks);
        let begins = if self.is_again() {
            format!("recrawl = \"always\"\n[start]\nsitemaps = [\"{start}\"]\n")
        } else {
            format!("{max_pages}[start]\nurls = [\"{start}\"]\n[follow]\ndepth = 1000\n{max_per_host}")
        };
        let text = format!(
            "{begins}[fields]\ntitle = \"title::text\"\n{spider} = {{ css = \"b::text\", type = \"integer\" }}\n{sinks}"
        );
        Some((spider, text))
    }

    /// Returns the file of a spider with a program: the program gets the field from the site, and can identify its
    /// worker to it.
    fn file_with_program(&self, start: &str) -> String {
        let origin = start.split('/').take(3).collect::<Vec<_>>().join("/");
        let (host, port) = origin.rsplit_once(':').unwrap_or_default();
        let host = host.trim_start_matches("http://");
        let begins = match self.units {
            Units::Requests => format!("[start]\nurls = [\"{start}\"]\n[follow]\ndepth = 1000\n"),
            _ => String::new(),
        };
        let run = match self.spider {
            Some("once") => format!("[\"/bin/bash\", \"{ONCE}\", \"{host}\", \"{port}\"]\nmode = \"once\""),
            _ => format!("[\"/usr/bin/env\", \"python3\", \"{STREAM}\"]\nmode = \"stream\""),
        };
        let who = "{ env = \"TRAWL__FETCH__USER_AGENT\" }";
        let (timeout, sinks) = (TIMEOUT.as_secs(), sections(self.sinks));
        format!(
            "{begins}[handler]\nrun = {run}\ntimeout = \"{timeout}s\"\nsecret = {{ WHO = {who}, SITE = \"{origin}/task\" }}\n{sinks}"
        )
    }

    /// Returns the producer's arguments. The sources are among them unless they are in the spider's file.
    pub fn words(&self, sources: &[String]) -> Vec<String> {
        self.words_for(self.id, sources)
    }

    /// Returns the producer's arguments for the earlier crawl.
    pub fn words_before(&self, sources: &[String]) -> Vec<String> {
        self.words_for(BEFORE, sources)
    }

    fn words_for(&self, id: &str, sources: &[String]) -> Vec<String> {
        let mut words = vec!["producer".to_owned()];
        if let Some(spider) = self.spider {
            words.extend(["--spider".to_owned(), spider.to_owned()]);
        }
        if self.spider.is_none() || self.units == Units::Tasks {
            words.extend_from_slice(sources);
        }
        words.extend(["--crawl".to_owned(), id.to_owned()]);
        words
    }
}
