//! A crawl that is asked for by a form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::arguments::{self, Given};
use super::spider::About;
use crate::Console;
use crate::answers::{Argument, Checked, Crawl, Spiders};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted, written};
use crate::guard::Visitor;
use crate::page::{Answer, Here, Page, html, to};
use crate::sessions::secret;

/// What is in the form, as it was written.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Draft {
    spider: Option<String>,
    project: Option<String>,
    urls: Option<String>,
    sources: Option<String>,
    arguments: Option<String>,
    version: Option<String>,
    recrawl: Option<String>,
    max_pages: Option<String>,
    limit: Option<String>,
    priority: Option<String>,
    /// Of one form: however often it is sent, it asks for one crawl.
    nonce: Option<String>,
    /// Whether the form is to be shown again, with a field for each argument of the spider.
    show: Option<String>,
    /// The fields of arguments.
    #[serde(flatten)]
    given: Given,
}

/// The same for the API.
#[derive(Serialize)]
struct NewCrawl<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    spider: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    urls: Vec<&'a str>,
    sources: Vec<&'a str>,
    arguments: BTreeMap<&'a str, &'a str>,
    version: Option<&'a str>,
    settings: Settings<'a>,
    priority: f64,
}

#[derive(Serialize)]
struct Settings<'a> {
    recrawl: Option<&'a str>,
    max_pages: Option<u64>,
    limit: Option<u64>,
}

#[derive(Template)]
#[template(path = "new_crawl.html")]
struct NewCrawlPage {
    page: Page,
    draft: Draft,
    /// The spiders that are known, by name.
    spiders: Vec<String>,
    /// The arguments that the spider declares, if it is known.
    declared: Vec<Argument>,
    nonce: String,
    /// Why it was not taken.
    wrong: Option<String>,
}

impl Draft {
    /// Whether anything is said that is seldom needed.
    fn has_more(&self) -> bool {
        let seldom = [&self.recrawl, &self.max_pages, &self.limit, &self.project, &self.version];
        seldom.into_iter().any(|field| written(field).is_some())
    }

    /// Those that have a field, and those that are written one a line.
    fn arguments(&self) -> Result<BTreeMap<&str, &str>, Failure> {
        let lines = lines(&self.arguments).map(argument);
        lines.chain(arguments::named(&self.given).map(Ok)).collect()
    }

    /// Moves what is written one a line to the field that it has.
    fn fill(&mut self, declared: &[Argument]) {
        let has_field = |line: &str| {
            let (name, value) = argument(line).ok()?;
            let argument = declared.iter().find(|argument| argument.name == name)?;
            Some((argument.field(), value.to_owned()))
        };
        let (fields, rest): (Vec<_>, Vec<_>) =
            lines(&self.arguments).partition(|line| has_field(line).is_some());
        self.given.extend(fields.into_iter().filter_map(has_field));
        self.arguments = (!rest.is_empty()).then(|| rest.join("\n"));
    }

    fn new_crawl(&self) -> Result<NewCrawl<'_>, Failure> {
        Ok(NewCrawl {
            spider: written(&self.spider),
            project: written(&self.project),
            urls: lines(&self.urls).collect(),
            sources: lines(&self.sources).collect(),
            arguments: self.arguments()?,
            version: written(&self.version),
            settings: Settings {
                recrawl: written(&self.recrawl),
                max_pages: number("max_pages", &self.max_pages)?,
                limit: number("limit", &self.limit)?,
            },
            priority: number("priority", &self.priority)?.unwrap_or_default(),
        })
    }
}

fn lines(field: &Option<String>) -> impl Iterator<Item = &str> {
    field.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty())
}

fn argument(line: &str) -> Result<(&str, &str), Failure> {
    let wrong = || Failure::malformed(format!("arguments: `{line}` is not NAME=VALUE"));
    line.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(wrong)
}

fn number<T: std::str::FromStr>(name: &str, field: &Option<String>) -> Result<Option<T>, Failure> {
    let wrong = |text: &str| Failure::malformed(format!("{name}: `{text}` is not such a number"));
    written(field).map(|text| text.parse().map_err(|_| wrong(text))).transpose()
}

pub(crate) async fn ask(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Asked(About { spider, project }): Asked<About>,
) -> Answer {
    let draft = Draft { spider, project, ..Draft::default() };
    show(&console, &visitor, draft, None).await
}

pub(crate) async fn start(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Posted(draft): Posted<Draft>,
) -> Answer {
    if draft.show.is_some() {
        return show(&console, &visitor, draft, None).await;
    }
    match try_start(&console, &visitor, &draft).await {
        Ok(Crawl { crawl, .. }) => Ok(to(&format!("/crawls/{crawl}"))),
        // What was written is worth keeping.
        Err(failure) if failure.status == 400 => {
            let status = failure.status();
            let shown = show(&console, &visitor, draft, Some(failure.detail.to_string())).await?;
            Ok((status, shown).into_response())
        }
        Err(failure) => Err(failure),
    }
}

async fn try_start(console: &Console, visitor: &Visitor, draft: &Draft) -> Result<Crawl, Failure> {
    let nonce = written(&draft.nonce).ok_or_else(|| Failure::malformed("the form has lost its nonce"))?;
    let call = Call::post(&["crawls"]).body(&draft.new_crawl()?).once(&format!("console-{nonce}"));
    console.ask(visitor, call).await
}

async fn show(console: &Console, visitor: &Visitor, mut draft: Draft, wrong: Option<String>) -> Answer {
    let page = Page::new("New crawl", Here::Crawls, visitor);
    let Spiders { spiders } = console.ask(visitor, Call::get(&["spiders"])).await?;
    let spiders =
        spiders.into_iter().map(|spider| spider.spider).collect::<BTreeSet<_>>().into_iter().collect();
    let declared = declared(console, visitor, &draft).await?;
    draft.fill(&declared);
    // Another crawl than the last try's, which asked for none.
    html(&NewCrawlPage { page, draft, spiders, declared, nonce: secret(), wrong })
}

/// The arguments of the spider that is named. One that is not known here may yet be known to workers.
async fn declared(console: &Console, visitor: &Visitor, draft: &Draft) -> Result<Vec<Argument>, Failure> {
    let Some(spider) = written(&draft.spider) else { return Ok(Vec::new()) };
    let project = written(&draft.project).unwrap_or("default");
    let call = Call::get(&["projects", project, "spiders", spider, "check"]);
    match console.ask(visitor, call.with_any("version", written(&draft.version))).await {
        Ok(Checked { arguments, .. }) => Ok(arguments),
        Err(Failure { status: 400 | 404, .. }) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}
