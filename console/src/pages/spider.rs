//! One spider: its file, the mistakes in it, its behaviour, and its result on a page.

use askama::Template;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trawl_common::text::counted;

use super::arguments::{self, Given};
use super::source::Source;
use crate::address::address;
use crate::answers::{Checked, Spider, SpiderText, Trial};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted, Segments, written};
use crate::page::{Answer, Here, Page, html};
use crate::shown::Text;
use crate::visit::Visit;

/// The version to show; `None` for the latest.
#[derive(Deserialize)]
pub(crate) struct OfVersion {
    version: Option<String>,
}

/// The spider to preselect in a form. No other field can be set through an address, since it may be a link on
/// another site's page.
#[derive(Deserialize)]
pub(crate) struct About {
    pub(crate) spider: Option<String>,
    pub(crate) project: Option<String>,
}

/// A page to try the spider on.
#[derive(Default, Deserialize)]
pub(crate) struct Draft {
    #[serde(default)]
    url: String,
    /// The version that was shown.
    version: Option<String>,
    #[serde(flatten)]
    arguments: Given,
}

#[derive(Template)]
#[template(path = "spider.html")]
struct SpiderPage {
    page: Page,
    spider: Spider,
    /// Whether a particular version was requested.
    is_chosen: bool,
    source: Source,
    checked: Checked,
    draft: Draft,
    trial: Option<Trial>,
    /// The reason why it was not tried.
    wrong: Option<String>,
}

impl Draft {
    fn shown_url(&self) -> Text {
        self.url.as_str().into()
    }
}

impl Spider {
    /// The address of its page.
    pub(crate) fn path(&self) -> String {
        let Self { project, spider, .. } = self;
        format!("/spiders/{project}/{spider}")
    }

    /// The address of the form that submits a crawl of it.
    pub(crate) fn new_crawl(&self) -> String {
        self.form("/crawls/new")
    }

    /// The address of the form that submits tasks to it; `None` if the API accepts no tasks for its project.
    fn submit_tasks(&self) -> Option<String> {
        (self.project == "default").then(|| self.form("/tasks/new"))
    }

    /// The address of the form that deploys another version of it.
    fn edit(&self) -> String {
        self.form("/spiders/deploy")
    }

    fn form(&self, path: &str) -> String {
        address(path, [("spider", &self.spider), ("project", &self.project)])
    }
}

impl SpiderPage {
    /// Whether it has a handler, which runs tasks.
    fn has_program(&self) -> bool {
        self.checked.does.iter().any(|does| does.what == "program")
    }

    /// The number of mistakes, in words.
    fn verdict(&self) -> String {
        match self.checked.mistakes.len() as u64 {
            0 => "no mistakes".to_owned(),
            number => counted(number, "mistake"),
        }
    }
}

pub(crate) async fn show(
    visit: Visit,
    Segments(name): Segments<(String, String)>,
    Asked(OfVersion { version }): Asked<OfVersion>,
) -> Answer {
    let draft = Draft { version, ..Draft::default() };
    html(&SpiderPage::new(&visit, name, draft).await?)
}

/// The request to the API.
#[derive(Serialize)]
struct NewTrial<'a> {
    url: &'a str,
    spider: &'a str,
    project: &'a str,
    version: Option<&'a str>,
    arguments: BTreeMap<&'a str, &'a str>,
}

pub(crate) async fn attempt(
    visit: Visit,
    Segments(name): Segments<(String, String)>,
    Posted(draft): Posted<Draft>,
) -> Answer {
    let new = NewTrial {
        url: draft.url.trim(),
        spider: &name.1,
        project: &name.0,
        version: written(&draft.version),
        arguments: arguments::named(&draft.arguments).collect(),
    };
    let trial = visit.ask(Call::post(&["spiders", "try"]).body(&new)).await;
    match trial {
        Ok(trial) => {
            let shown = SpiderPage::new(&visit, name, draft).await?;
            html(&SpiderPage { trial: Some(trial), ..shown })
        }
        // A failure of the host, of the form or of the moment: show the form again, so that the user can
        // retry.
        Err(failure) if matches!(failure.status, 400 | 409 | 503 | 504) => {
            let status = failure.status();
            let shown = SpiderPage::new(&visit, name, draft).await?;
            Ok((status, html(&SpiderPage { wrong: Some(failure.detail.to_string()), ..shown })?)
                .into_response())
        }
        Err(failure) => Err(failure),
    }
}

impl SpiderPage {
    async fn new(visit: &Visit, (project, spider): (String, String), draft: Draft) -> Result<Self, Failure> {
        let place = ["projects", &project, "spiders", &spider];
        let call = Call::get(&place).with_any("version", written(&draft.version));
        let SpiderText { version, text } = visit.ask(call).await?;
        // Check the version that was found: a later one may have been deployed meanwhile.
        let call = Call::get(&[&place[..], &["check"]].concat()).with_any("version", version.as_deref());
        let checked: Checked = visit.ask(call).await?;
        Ok(Self {
            page: Page::new(format!("Spider {spider}"), Here::Spiders, visit),
            is_chosen: written(&draft.version).is_some(),
            source: Source::new(&text, &checked.mistakes),
            spider: Spider { project, spider, version },
            checked,
            draft,
            trial: None,
            wrong: None,
        })
    }
}
