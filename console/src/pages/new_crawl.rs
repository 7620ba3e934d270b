//! A crawl that is asked for by a form.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use crate::Console;
use crate::answers::Crawl;
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

    fn new_crawl(&self) -> Result<NewCrawl<'_>, Failure> {
        Ok(NewCrawl {
            spider: written(&self.spider),
            project: written(&self.project),
            urls: lines(&self.urls).collect(),
            sources: lines(&self.sources).collect(),
            arguments: lines(&self.arguments).map(argument).collect::<Result<_, _>>()?,
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

pub(crate) async fn ask(visitor: Visitor, Asked(draft): Asked<Draft>) -> Answer {
    show(&visitor, draft, None)
}

pub(crate) async fn start(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Posted(draft): Posted<Draft>,
) -> Answer {
    match try_start(&console, &visitor, &draft).await {
        Ok(Crawl { crawl, .. }) => Ok(to(&format!("/crawls/{crawl}"))),
        // What was written is worth keeping.
        Err(failure) if failure.status == 400 => {
            let status = failure.status();
            Ok((status, show(&visitor, draft, Some(failure.detail))?).into_response())
        }
        Err(failure) => Err(failure),
    }
}

async fn try_start(console: &Console, visitor: &Visitor, draft: &Draft) -> Result<Crawl, Failure> {
    let nonce = written(&draft.nonce).ok_or_else(|| Failure::malformed("the form has lost its nonce"))?;
    let call = Call::post(&["crawls"]).body(&draft.new_crawl()?).once(&format!("console-{nonce}"));
    console.ask(visitor, call).await
}

fn show(visitor: &Visitor, draft: Draft, wrong: Option<String>) -> Answer {
    let page = Page::new("New crawl", Here::Crawls, visitor);
    // Another crawl than the last try's, which asked for none.
    html(&NewCrawlPage { page, draft, nonce: secret(), wrong })
}
