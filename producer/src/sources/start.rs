//! The start of a run: the given sources, or else the `[start]` of the spider's file.

use trawl_common::list::ListEntry;
use trawl_common::request::NewRequest;
use trawl_common::spider::{self, Spider};
use trawl_common::web::url::CanonicalUrl;

use crate::sources::csv_rows::{self, InvalidCsv};
use crate::sources::source::{InvalidSource, Source};

/// The start of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStart {
    /// Pages to admit directly, each fetched with a plain GET or as its request says, and tasks.
    pub pages: Vec<ListEntry>,
    /// Sources to read for the pages that they name.
    pub sources: Vec<Source>,
}

/// The reason why a run has no start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStart {
    /// No source was given, and the spider's file has no start.
    #[error("nothing to start from: name a source, or give the spider `{0}` a [start] in its file")]
    Nothing(String),
    /// The spider's file names an invalid source.
    #[error("[start] of the spider: {0}")]
    Invalid(#[from] InvalidSource),
    /// A CSV file that the spider's file names cannot be used.
    #[error("[start] of the spider: {0}")]
    Csv(#[from] InvalidCsv),
}

impl RunStart {
    /// Returns a start with the sources `named` on the command line, if there are any; else the start of
    /// `spider`.
    pub fn new(spider: &Spider, named: &[Source]) -> Result<Self, NoStart> {
        if !named.is_empty() {
            return Ok(named.to_vec().into());
        }
        let spider::Start { sitemaps, urls, robots, requests, csv, tasks } = &spider.start;
        let page = |text: &String| {
            let invalid = |error| InvalidSource::Url(text.clone(), error);
            // It is requested as it is written.
            CanonicalUrl::parse(text).map(|_| NewRequest::get(text.trim()).into()).map_err(invalid)
        };
        let mut requests: Vec<ListEntry> = requests.iter().cloned().map(ListEntry::Request).collect();
        for csv in csv {
            requests.extend(csv_rows::requests(csv)?);
        }
        let tasks = tasks.iter().cloned().map(ListEntry::Task);
        let pages = urls.iter().map(page).collect::<Result<Vec<_>, _>>()?;
        let start = Self {
            pages: pages.into_iter().chain(requests).chain(tasks).collect(),
            sources: sitemaps.iter().chain(robots).map(|text| text.parse()).collect::<Result<_, _>>()?,
        };
        if start == Self::default() { Err(NoStart::Nothing(spider.name.to_string())) } else { Ok(start) }
    }
}

impl From<Vec<Source>> for RunStart {
    fn from(sources: Vec<Source>) -> Self {
        Self { pages: Vec::new(), sources }
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::names::SpiderName;
    use trawl_common::request::NewRequest;
    use trawl_common::settings::Items;
    use trawl_common::task::NewTask;

    use super::*;

    #[test]
    fn a_run_begins_with_what_a_person_names_or_else_as_the_spider_says() {
        let mut spider = Spider::without_file(SpiderName::default(), &Items::default());
        let named = [Source::Stdin];
        let nothing = RunStart::new(&spider, &[]).unwrap_err().to_string();
        assert!(nothing.contains("`default`"), "{nothing}");
        spider.start.urls = vec!["http://a.example/".to_owned()];
        spider.start.robots = vec!["http://a.example/robots.txt".to_owned()];
        spider.start.sitemaps = vec!["map.xml".to_owned()];
        assert_eq!(RunStart::new(&spider, &named), Ok(named.to_vec().into()));
        let start = RunStart::new(&spider, &[]).unwrap();
        assert_eq!(start.pages, [ListEntry::from_line("http://a.example/").unwrap()]);
        spider.start.requests = vec![NewRequest::get("http://a.example/form")];
        spider.start.tasks = vec![NewTask::from_recipe("[1]".parse().unwrap())];
        let pages = RunStart::new(&spider, &[]).unwrap().pages;
        let lines = ["http://a.example/", "http://a.example/form", r#""[1]""#];
        assert_eq!(pages, lines.map(|line| ListEntry::from_line(line).unwrap()));
        let sources: Vec<_> = start.sources.iter().map(ToString::to_string).collect();
        assert_eq!(sources, ["map.xml", "http://a.example/robots.txt"]);
    }
}
