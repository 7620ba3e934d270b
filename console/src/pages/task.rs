//! One task: its state, its recipe, and its log.

use askama::Template;
use serde::Deserialize;

use crate::address;
use crate::answers::{EndedTask, EndedTasks, LogEntry, Logs, Task};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Segments, written};
use crate::page::{Answer, Here, Page, html};
use crate::recipe::Shown;
use crate::shown::{Number, Text};
use crate::visit::Visit;

/// The number of log entries shown.
const LOG: &str = "50";

/// The crawl to show the task in.
#[derive(Deserialize)]
pub(crate) struct OfCrawl {
    pub(super) crawl: Option<String>,
}

#[derive(Template)]
#[template(path = "task.html")]
struct TaskPage {
    page: Page,
    key: String,
    /// The requested crawl.
    crawl: Option<Text>,
    /// `None` if it is done, was cancelled, or is not known.
    task: Option<Task>,
    /// Its last end that is kept, unless it is pending.
    end: Option<EndedTask>,
    recipe: Option<Shown>,
    /// The last entries of its log.
    entries: Vec<LogEntry>,
    has_more: bool,
}

impl TaskPage {
    /// The address of its whole log.
    fn log(&self) -> String {
        format!("/logs?task={}", self.key)
    }
}

impl Task {
    /// The page or task that submitted it, and the address of that.
    fn asked_for_by(&self) -> Option<(Text, String)> {
        let referrer = self.referrer.as_deref()?;
        Some((referrer.into(), address::standing(referrer, &self.crawl)))
    }

    /// The number of retries, in words.
    fn retries(&self) -> String {
        match self.retries {
            Some(Number(0)) => "not at all".to_owned(),
            Some(Number(1)) => "once".to_owned(),
            Some(retries) => format!("{retries} times"),
            None => "as its spider says".to_owned(),
        }
    }
}

pub(crate) async fn show(
    visit: Visit,
    Segments(key): Segments<String>,
    Asked(OfCrawl { crawl }): Asked<OfCrawl>,
) -> Answer {
    if !address::is_task(&key) {
        return Err(Failure::no_page());
    }
    let crawl = written(&crawl);
    let task: Option<Task> = match visit.ask(Call::get(&["tasks", &key]).with_any("crawl", crawl)).await {
        Ok(task) => Some(task),
        Err(Failure { status: 404, .. }) => None,
        Err(failure) => return Err(failure),
    };
    let call = Call::get(&["tasks", "ended"]).with("task", &key).with("limit", "1").with_any("crawl", crawl);
    let end = match task {
        Some(_) => None,
        None => visit.ask::<EndedTasks>(call).await?.tasks.pop(),
    };
    let call = Call::get(&["logs"]).with("task", &key).with("limit", LOG).with_any("crawl", crawl);
    let Logs { entries, next } = visit.ask(call).await?;
    let is_live = task.as_ref().is_some_and(|task| !task.has_failed());
    html(&TaskPage {
        page: Page::new("A task", Here::Tasks, &visit).live(is_live),
        recipe: task.as_ref().and_then(|task| task.recipe.as_deref()).map(Shown::from_recipe),
        crawl: crawl.map(Text::from),
        has_more: next.is_some(),
        key,
        end,
        task,
        entries,
    })
}
