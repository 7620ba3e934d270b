//! Retrying and cancelling tasks.

use askama::Template;
use serde::{Deserialize, Serialize};
use trawl_common::text::counted;

use super::Nothing;
use super::task::OfCrawl;
use crate::address;
use crate::answers::{CancelledTasks, Changed};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted, Segments, written};
use crate::page::{Answer, Confirm, Here, Page, html, to};
use crate::visit::Visit;

/// The tasks named by a form or an address: one, or all unfinished ones of a crawl.
#[derive(Deserialize)]
pub(crate) struct Named {
    task: Option<String>,
    crawl: Option<String>,
    /// The cursor at which the API continues.
    cursor: Option<String>,
}

/// The cancellation request to the API.
#[derive(Serialize)]
struct ToCancel<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<[&'a str; 1]>,
    crawl: Option<&'a str>,
    cursor: Option<&'a str>,
}

/// The replay request to the API.
#[derive(Serialize)]
struct ToReplay<'a> {
    urls: [&'a str; 1],
    crawl: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "tasks_cancelled.html")]
struct Cancelled {
    page: Page,
    /// The result.
    what: String,
    crawl: String,
    /// The cursor at which to continue, as there is more to do.
    cursor: String,
}

/// Retries a failed task, by replaying its dead letter.
pub(crate) async fn retry(
    visit: Visit,
    Segments(task): Segments<String>,
    Asked(OfCrawl { crawl }): Asked<OfCrawl>,
    Posted(Nothing {}): Posted<Nothing>,
) -> Answer {
    let order = ToReplay { urls: [&task], crawl: written(&crawl) };
    let Changed { crawls, .. } = visit.ask(Call::post(&["dead-letters", "replay"]).body(&order)).await?;
    match crawls.first() {
        Some(crawl) => Ok(to(&address::task(&task, Some(crawl)))),
        None => Err(Failure::malformed(format!("{task} is no dead letter: it was tried again, or purged"))),
    }
}

pub(crate) async fn ask_to_cancel(visit: Visit, Asked(named): Asked<Named>) -> Answer {
    let (question, verb, back) = match (written(&named.task), written(&named.crawl)) {
        (Some(task), crawl) => (format!("Cancel {task}?"), "Cancel the task", address::task(task, crawl)),
        (None, Some(crawl)) => {
            (format!("Cancel all tasks of crawl {crawl}?"), "Cancel them", format!("/crawls/{crawl}"))
        }
        (None, None) => return Err(Failure::malformed("name a task or a crawl")),
    };
    html(&Confirm {
        page: Page::new("Cancel tasks", Here::Tasks, &visit),
        question: question.into(),
        notes: vec![
            "What waits is not done; a program that runs is ended within some seconds.".into(),
            "Its crawl goes on. What has failed stays among the dead letters.".into(),
        ],
        action: "/tasks/cancel".to_owned(),
        fields: named.fields(),
        verb,
        back,
    })
}

impl Named {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let all = [("task", &self.task), ("crawl", &self.crawl)];
        all.into_iter().filter_map(|(name, field)| Some((name, written(field)?.to_owned()))).collect()
    }
}

pub(crate) async fn cancel(visit: Visit, Posted(named): Posted<Named>) -> Answer {
    let (task, crawl) = (written(&named.task), written(&named.crawl));
    let order = ToCancel { tasks: task.map(|task| [task]), crawl, cursor: written(&named.cursor) };
    let CancelledTasks { cancelled, next } = visit.ask(Call::post(&["tasks", "cancel"]).body(&order)).await?;
    match (task, crawl, next) {
        (Some(task), ..) if cancelled == 0 => {
            Err(Failure::malformed(format!("{task} neither waits nor runs: it has ended meanwhile")))
        }
        (Some(task), crawl, _) => Ok(to(&address::task(task, crawl))),
        (None, Some(crawl), Some(cursor)) => html(&Cancelled {
            page: Page::new("Cancel tasks", Here::Tasks, &visit),
            what: format!("Cancelled: {}.", counted(cancelled, "task")),
            crawl: crawl.to_owned(),
            cursor,
        }),
        (None, Some(crawl), None) => Ok(to(&format!("/crawls/{crawl}"))),
        (None, None, _) => Ok(to("/tasks")),
    }
}
