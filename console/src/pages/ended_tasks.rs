//! The tasks that have ended lately.

use askama::Template;
use serde::Deserialize;

use super::tasks::choices;
use crate::address::address;
use crate::answers::{EndedTask, EndedTasks};
use crate::ask::Call;
use crate::form::{Asked, all_written, text_of};
use crate::page::{Answer, Here, Page, html};
use crate::shown::Text;
use crate::visit::Visit;

/// The number of tasks on one page.
const LIMIT: &str = "100";

/// The filter and the position. An empty field matches everything.
#[derive(Deserialize)]
pub(crate) struct Listing {
    crawl: Option<String>,
    spider: Option<String>,
    cursor: Option<String>,
}

impl Listing {
    /// The non-empty fields other than the position.
    fn of_crawls(&self) -> Vec<(&'static str, &str)> {
        all_written([("crawl", &self.crawl), ("spider", &self.spider)])
    }

    /// The value of a field for its input.
    fn shown(&self, name: &str) -> Text {
        text_of(&self.of_crawls(), name).into()
    }

    /// The address of the page that starts at a cursor.
    fn path(&self, cursor: Option<&str>) -> String {
        address("/tasks/ended", self.of_crawls().into_iter().chain(cursor.map(|cursor| ("cursor", cursor))))
    }
}

#[derive(Template)]
#[template(path = "ended_tasks.html")]
struct EndedTasksPage {
    page: Page,
    listing: Listing,
    choices: Vec<(&'static str, String, bool)>,
    tasks: Vec<EndedTask>,
    is_first: bool,
    next: Option<String>,
}

pub(crate) async fn list(visit: Visit, Asked(listing): Asked<Listing>) -> Answer {
    let call =
        Call::get(&["tasks", "ended"]).with("limit", LIMIT).with_any("cursor", listing.cursor.as_deref());
    let call = listing.of_crawls().into_iter().fold(call, |call, (name, value)| call.with(name, value));
    let EndedTasks { tasks, next } = visit.ask(call).await?;
    let is_first = listing.cursor.is_none();
    html(&EndedTasksPage {
        // Older ends do not change.
        page: Page::new("Ended tasks", Here::Tasks, &visit).live(is_first),
        choices: choices(&listing.of_crawls(), Some("ended")),
        tasks,
        is_first,
        next: next.map(|next| listing.path(Some(&next))),
        listing,
    })
}
