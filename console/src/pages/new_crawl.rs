//! The form that submits a crawl.

use askama::Template;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use trawl_common::frontier::Work;
use trawl_common::list::ListEntry;
use trawl_common::names::SpiderName;
use trawl_common::request::NewRequest;
use trawl_common::task::NewTask;
use trawl_common::web::url::CanonicalUrl;

use super::arguments::{self, Given};
use super::lines::{self, Refused, WrongLines};
use super::spider::About;
use crate::answers::{Argument, Checked, Crawl, Spiders};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted, written};
use crate::page::{Answer, Here, Page, html, to};
use crate::sessions::secret;
use crate::shown::Text;
use crate::visit::Visit;

/// The content of the form as it was entered.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Draft {
    spider: Option<String>,
    project: Option<String>,
    urls: Option<String>,
    /// URLs, requests and tasks, one per line.
    list: Option<String>,
    sources: Option<String>,
    arguments: Option<String>,
    version: Option<String>,
    recrawl: Option<String>,
    dedup: Option<String>,
    max_pages: Option<String>,
    limit: Option<String>,
    priority: Option<String>,
    /// Identifies one form: however often it is sent, it submits one crawl.
    nonce: Option<String>,
    /// Whether to show the form again, with a field for each argument of the spider.
    show: Option<String>,
    /// The argument fields.
    #[serde(flatten)]
    given: Given,
}

/// The form as a request to the API.
#[derive(Serialize)]
struct NewCrawl<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    spider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    urls: Vec<NewRequest>,
    tasks: Vec<NewTask>,
    sources: Vec<&'a str>,
    arguments: BTreeMap<&'a str, &'a str>,
    version: Option<&'a str>,
    settings: Settings<'a>,
    priority: f64,
}

#[derive(Serialize)]
struct Settings<'a> {
    recrawl: Option<&'a str>,
    dedup: Option<&'a str>,
    max_pages: Option<u64>,
    limit: Option<u64>,
}

#[derive(Template)]
#[template(path = "new_crawl.html")]
struct NewCrawlPage {
    page: Page,
    draft: Draft,
    /// The names of known spiders.
    spiders: BTreeSet<String>,
    /// The arguments that the spider declares, if it is known.
    declared: Vec<Argument>,
    nonce: String,
    /// The reason why the form was rejected.
    wrong: Option<Text>,
    wrong_lines: WrongLines,
}

impl Draft {
    /// Whether any of the rarely needed fields is set.
    fn has_more(&self) -> bool {
        let seldom = [&self.recrawl, &self.dedup, &self.max_pages, &self.limit, &self.project, &self.version];
        seldom.into_iter().any(|field| written(field).is_some())
    }

    /// Returns the arguments from fields and those entered one per line.
    fn arguments(&self) -> Result<BTreeMap<&str, &str>, Failure> {
        let given = written_lines(&self.arguments).map(argument);
        given.chain(arguments::named(&self.given).map(Ok)).collect()
    }

    /// Moves arguments that were entered one per line to their fields.
    fn fill(&mut self, declared: &[Argument]) {
        let has_field = |line: &str| {
            let (name, value) = argument(line).ok()?;
            let argument = declared.iter().find(|argument| argument.name == name)?;
            Some((argument.field(), value.to_owned()))
        };
        let (fields, rest): (Vec<_>, Vec<_>) =
            written_lines(&self.arguments).partition(|line| has_field(line).is_some());
        self.given.extend(fields.into_iter().filter_map(has_field));
        self.arguments = (!rest.is_empty()).then(|| rest.join("\n"));
    }

    /// Parses the list. The error names each invalid line.
    fn entries(&self) -> Result<(Vec<NewRequest>, Vec<NewTask>), Refused> {
        let spider = written(&self.spider).and_then(|spider| spider.parse::<SpiderName>().ok());
        let list = self.list.as_deref().unwrap_or_default();
        let entries = lines::read(list.as_bytes(), |line| entry(line, spider.as_ref()));
        let (mut requests, mut tasks) = (Vec::new(), Vec::new());
        for entry in entries.map_err(Refused::Lines)? {
            match entry {
                ListEntry::Request(request) => requests.push(request),
                ListEntry::Task(task) => tasks.push(task),
            }
        }
        Ok((requests, tasks))
    }

    fn new_crawl(&self) -> Result<NewCrawl<'_>, Refused> {
        let (requests, tasks) = self.entries()?;
        Ok(NewCrawl {
            spider: written(&self.spider),
            project: written(&self.project),
            urls: written_lines(&self.urls).map(NewRequest::get).chain(requests).collect(),
            tasks,
            sources: written_lines(&self.sources).collect(),
            arguments: self.arguments()?,
            version: written(&self.version),
            settings: Settings {
                recrawl: written(&self.recrawl),
                dedup: written(&self.dedup),
                max_pages: number("max_pages", &self.max_pages)?,
                limit: number("limit", &self.limit)?,
            },
            priority: number("priority", &self.priority)?.unwrap_or_default(),
        })
    }
}

fn written_lines(field: &Option<String>) -> impl Iterator<Item = &str> {
    field.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty())
}

/// Parses an entry of the list, as far as this is possible without the settings.
fn entry(line: &str, spider: Option<&SpiderName>) -> Result<ListEntry, String> {
    match ListEntry::from_line(line)? {
        ListEntry::Request(new) => {
            let url = CanonicalUrl::parse(&new.url).map_err(|error| error.to_string())?;
            Work::of_request(url, new.clone()).map_err(|error| error.to_string())?;
            Ok(ListEntry::Request(new))
        }
        ListEntry::Task(task) => match spider {
            Some(spider) => task.only_for(spider).map(ListEntry::Task).map_err(|error| error.to_string()),
            None => Err("this is a task: say above which spider does it".to_owned()),
        },
    }
}

fn argument(line: &str) -> Result<(&str, &str), Failure> {
    let wrong = || Failure::malformed(format!("arguments: `{line}` is not NAME=VALUE"));
    line.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(wrong)
}

fn number<T: std::str::FromStr>(name: &str, field: &Option<String>) -> Result<Option<T>, Failure> {
    let wrong = |text: &str| Failure::malformed(format!("{name}: `{text}` is not such a number"));
    written(field).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

pub(crate) async fn ask(visit: Visit, Asked(About { spider, project }): Asked<About>) -> Answer {
    let draft = Draft { spider, project, ..Draft::default() };
    html(&NewCrawlPage::new(&visit, draft).await?)
}

pub(crate) async fn start(visit: Visit, Posted(draft): Posted<Draft>) -> Answer {
    if draft.show.is_some() {
        return html(&NewCrawlPage::new(&visit, draft).await?);
    }
    let refused = match try_start(&visit, &draft).await {
        Ok(Crawl { crawl, .. }) => return Ok(to(&format!("/crawls/{crawl}"))),
        Err(refused) => refused,
    };
    let (status, wrong, wrong_lines) = refused.shown(&[400, 413])?;
    let shown = NewCrawlPage { wrong, wrong_lines, ..NewCrawlPage::new(&visit, draft).await? };
    Ok((status, html(&shown)?).into_response())
}

async fn try_start(visit: &Visit, draft: &Draft) -> Result<Crawl, Refused> {
    let nonce = written(&draft.nonce).ok_or_else(|| Failure::malformed("the form has lost its nonce"))?;
    let call = Call::post(&["crawls"]).body(&draft.new_crawl()?).once(&format!("console-{nonce}"));
    Ok(visit.ask(call).await?)
}

impl NewCrawlPage {
    async fn new(visit: &Visit, mut draft: Draft) -> Result<Self, Failure> {
        let page = Page::new("New crawl", Here::Crawls, visit);
        let Spiders { spiders } = visit.ask(Call::get(&["spiders"])).await?;
        let spiders: BTreeSet<_> = spiders.into_iter().map(|spider| spider.spider).collect();
        let declared = declared(visit, &draft).await?;
        draft.fill(&declared);
        // A new crawl, because the last attempt submitted none.
        let nonce = secret();
        let (wrong, wrong_lines) = Default::default();
        Ok(Self { page, draft, spiders, declared, nonce, wrong, wrong_lines })
    }
}

/// Returns the declared arguments of the selected spider. A spider that is unknown here may still be known to workers.
async fn declared(visit: &Visit, draft: &Draft) -> Result<Vec<Argument>, Failure> {
    let Some(spider) = written(&draft.spider) else { return Ok(Vec::new()) };
    let project = written(&draft.project).unwrap_or("default");
    let call = Call::get(&["projects", project, "spiders", spider, "check"]);
    match visit.ask(call.with_any("version", written(&draft.version))).await {
        Ok(Checked { arguments, .. }) => Ok(arguments),
        Err(Failure { status: 400 | 404, .. }) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}
