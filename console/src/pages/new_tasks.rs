//! The submission of tasks through a form: one, or a list of them.

use askama::Template;
use axum::body::Bytes;
use axum::response::IntoResponse;
use std::collections::BTreeSet;
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;

use super::lines::{self, Refused, WrongLines};
use super::spider::About;
use crate::answers::{Crawl, Spiders, SubmittedTasks};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Uploaded};
use crate::page::{Answer, Here, Page, html, to};
use crate::shown::Text;
use crate::visit::Visit;

/// The contents of the form, as they were written.
#[derive(Default)]
struct Draft {
    spider: Option<String>,
    priority: Option<String>,
    retries: Option<String>,
    /// The crawl to add the tasks to; `None` for the crawl of the form.
    crawl: Option<String>,
    recipe: Option<String>,
    list: Option<String>,
}

#[derive(Template)]
#[template(path = "new_tasks.html")]
struct NewTasksPage {
    page: Page,
    draft: Draft,
    /// The known spiders, by name.
    spiders: BTreeSet<String>,
    /// The crawl that the form opens if no other is named. However often the form is sent, it opens only this
    /// one.
    own: String,
    /// The reason why the tasks were rejected.
    wrong: Option<Text>,
    wrong_lines: WrongLines,
}

impl Draft {
    /// Reads the form. The text of a chosen file becomes the list.
    fn new(uploaded: Uploaded) -> Result<Self, Failure> {
        let field = |name| uploaded.field(name).map(str::to_owned);
        let [spider, priority, retries, crawl] = ["spider", "priority", "retries", "crawl"].map(field);
        // A recipe is kept as written, with surrounding white space.
        let raw = |name| uploaded.raw(name).filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let mut draft = Self { spider, priority, retries, crawl, recipe: raw("recipe"), list: raw("list") };
        if let Some((_, bytes)) = uploaded.file {
            if draft.list.is_some() {
                return Err(Failure::malformed("a list is written and a file is chosen: send one of them"));
            }
            draft.list = Some(text_of(bytes)?);
        }
        Ok(draft)
    }

    /// Returns the tasks as lines for the API, or every line that is wrong.
    fn lines(&self) -> Result<Bytes, Refused> {
        match (&self.recipe, &self.list) {
            (Some(recipe), None) => {
                let recipe = recipe.replace("\r\n", "\n").parse();
                let task = NewTask::from_recipe(
                    recipe.map_err(|error| Failure::malformed(format!("recipe: {error}")))?,
                );
                Ok(serde_json::to_vec(&task).map_err(Failure::malformed)?.into())
            }
            (None, Some(list)) => {
                let spider = self.spider.as_deref().and_then(|spider| spider.parse::<SpiderName>().ok());
                let parse = |line: &str| {
                    let task = NewTask::from_line(line);
                    let task = task.and_then(|task| match &spider {
                        Some(spider) => task.only_for(spider),
                        None => Ok(task),
                    });
                    task.map(drop).map_err(|error| error.to_string())
                };
                lines::read(list.as_bytes(), parse).map_err(Refused::Lines)?;
                Ok(list.trim_start_matches('\u{feff}').to_owned().into())
            }
            (Some(_), Some(_)) => {
                Err(Failure::malformed("one recipe and a list are written: send one of them").into())
            }
            (None, None) => Err(Failure::malformed("write a recipe or a list, or choose a file").into()),
        }
    }
}

fn text_of(file: Bytes) -> Result<String, Failure> {
    match str::from_utf8(&file) {
        _ if file.starts_with(b"\x1f\x8b") => Err(Failure::malformed(
            "the file is compressed: unpack it, or have `trawl task submit` take it as it is",
        )),
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Failure::malformed("the file is not UTF-8")),
    }
}

pub(crate) async fn ask(visit: Visit, Asked(About { spider, .. }): Asked<About>) -> Answer {
    let draft = Draft { spider, ..Draft::default() };
    let own = CrawlId::generate(UnixMs::now()).to_string();
    html(&NewTasksPage::new(&visit, draft, own).await?)
}

pub(crate) async fn submit(visit: Visit, uploaded: Uploaded) -> Answer {
    let own = uploaded.field("own").unwrap_or_default().to_owned();
    let draft = Draft::new(uploaded)?;
    let refused = match send(&visit, &draft, &own).await {
        Ok(crawl) => return Ok(to(&format!("/crawls/{crawl}"))),
        Err(refused) => refused,
    };
    let (status, wrong, wrong_lines) = refused.shown(&[400, 404, 409, 413])?;
    let shown = NewTasksPage { wrong, wrong_lines, ..NewTasksPage::new(&visit, draft, own).await? };
    Ok((status, html(&shown)?).into_response())
}

/// Submits the tasks and returns their crawl.
async fn send(visit: &Visit, draft: &Draft, own: &str) -> Result<String, Refused> {
    let spider =
        draft.spider.as_deref().ok_or_else(|| Failure::malformed("spider: say whose program does them"))?;
    let lines = draft.lines()?;
    if draft.crawl.is_none() && is_known(visit, own).await? {
        // The form was sent before.
        return Ok(own.to_owned());
    }
    let call = Call::post(&["tasks"]).lines(lines).with("spider", spider);
    let call = call.with("crawl", draft.crawl.as_deref().unwrap_or(own));
    let call =
        call.with_any("priority", draft.priority.as_deref()).with_any("retries", draft.retries.as_deref());
    let SubmittedTasks { crawl } = visit.ask(call).await?;
    Ok(crawl)
}

async fn is_known(visit: &Visit, crawl: &str) -> Result<bool, Failure> {
    match visit.ask::<Crawl>(Call::get(&["crawls", crawl])).await {
        Ok(_) => Ok(true),
        Err(Failure { status: 404, .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

impl NewTasksPage {
    async fn new(visit: &Visit, draft: Draft, own: String) -> Result<Self, Failure> {
        let Spiders { spiders } = visit.ask(Call::get(&["spiders"])).await?;
        // The API accepts tasks only for spiders of this project.
        let here = spiders.into_iter().filter(|spider| spider.project == "default");
        Ok(Self {
            page: Page::new("Submit tasks", Here::Tasks, visit),
            draft,
            spiders: here.map(|spider| spider.spider).collect(),
            own,
            wrong: None,
            wrong_lines: WrongLines::default(),
        })
    }
}
