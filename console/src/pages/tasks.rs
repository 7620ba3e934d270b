//! Tasks that are not done: which wait, run, are put aside or failed.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use serde::Deserialize;
use trawl_common::task::report::TaskPlace;

use crate::Console;
use crate::address::address;
use crate::answers::{IN_LIST, Task, Tasks};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, written};
use crate::guard::Visitor;
use crate::page::{Answer, Here, Page, html};
use crate::shown::Text;

/// How many are on one page. The API's pages are as the store has them, and larger.
const SHOWN: usize = 100;

/// So many pages of the API are asked for to fill one.
const ASKED: usize = 4;

/// A page whose recipes have more bytes together does not update itself.
const READ: u64 = 1024 * 1024;

/// Which tasks. What is empty leaves all in.
#[derive(Deserialize)]
pub(crate) struct Listing {
    crawl: Option<String>,
    spider: Option<String>,
    place: Option<String>,
    /// Where the API's list goes on.
    cursor: Option<String>,
    /// How many of its page were shown already.
    skip: Option<String>,
}

#[derive(Template)]
#[template(path = "tasks.html")]
struct TasksPage {
    page: Page,
    listing: Listing,
    /// What can be chosen: a name, where it leads, and whether it is.
    choices: Vec<(&'static str, String, bool)>,
    tasks: Vec<Task>,
    is_first: bool,
    next: Option<String>,
}

impl Listing {
    /// Its fields that say something, but for the place.
    fn of_crawls(&self) -> Vec<(&'static str, &str)> {
        let all = [("crawl", &self.crawl), ("spider", &self.spider)];
        all.into_iter().filter_map(|(name, field)| Some((name, written(field)?))).collect()
    }

    fn place(&self) -> Option<&str> {
        written(&self.place)
    }

    fn is_of_failed(&self) -> bool {
        self.place() == Some("failed")
    }

    fn is_empty(&self) -> bool {
        self.of_crawls().is_empty() && self.place().is_none()
    }

    /// What one of its fields says, as its input shows it.
    fn shown(&self, name: &str) -> Text {
        self.of_crawls().into_iter().find(|(field, _)| *field == name).map_or("", |(_, value)| value).into()
    }

    /// The page of those at a place, with more that it says.
    fn path(&self, place: Option<&str>, more: &[(&str, &str)]) -> String {
        let all = self.of_crawls().into_iter().chain(place.map(|place| ("place", place)));
        address("/tasks", all.chain(more.iter().copied()))
    }

    /// The first page of them.
    fn first(&self) -> String {
        self.path(self.place(), &[])
    }

    /// The page of them from a place on.
    fn at(&self, Spot { cursor, skip }: &Spot) -> String {
        let skip = skip.to_string();
        let cursor = cursor.as_deref().map(|cursor| ("cursor", cursor));
        let skip = (skip != "0").then_some(("skip", skip.as_str()));
        self.path(self.place(), &cursor.into_iter().chain(skip).collect::<Vec<_>>())
    }

    /// Their dead letters, to be sent again.
    fn replay(&self) -> String {
        address("/dead-letters/replay", self.of_crawls())
    }

    /// All that have no end of the one crawl, to be cancelled; `None` of more crawls than one.
    fn cancel(&self) -> Option<String> {
        let crawl = written(&self.crawl)?;
        Some(address("/tasks/cancel", [("crawl", crawl)]))
    }

    fn call(&self) -> Call {
        let call = Call::get(&["tasks"]).with("recipe_bytes", &(IN_LIST + 1).to_string());
        self.of_crawls().into_iter().fold(call, |call, (name, value)| call.with(name, value))
    }

    /// Whether its first page, which has these, costs little each time. To find those that are put aside, or that wait among many that
    /// are, takes a search through all; and each recipe is read, however little of it is shown.
    fn is_cheap(&self, tasks: &[Task]) -> bool {
        let is_found_at_once = self.place().is_none_or(|place| place == "running" || place == "failed");
        let bytes: u64 = tasks.iter().map(|task| task.recipe_bytes.0).sum();
        is_found_at_once && bytes <= READ
    }
}

pub(crate) async fn list(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Asked(listing): Asked<Listing>,
) -> Answer {
    let skip = written(&listing.skip).and_then(|skip| skip.parse().ok()).unwrap_or_default();
    let from = Spot { cursor: listing.cursor.clone(), skip };
    let is_first = from.cursor.is_none() && skip == 0;
    let (mut tasks, next) = part(&console, &visitor, &listing, from).await?;
    if is_first && listing.place().is_none() {
        tasks = running_first(&console, &visitor, &listing, tasks).await?;
    }
    let choice = |name: &'static str| {
        let chosen = (name != "all").then_some(name);
        (name, listing.path(chosen, &[]), chosen == listing.place())
    };
    html(&TasksPage {
        page: Page::new("Tasks", Here::Tasks, &visitor).live(is_first && listing.is_cheap(&tasks)),
        choices: std::iter::once("all").chain(TaskPlace::NAMES.iter().copied()).map(choice).collect(),
        tasks,
        is_first,
        next: next.map(|next| listing.at(&next)),
        listing,
    })
}

/// A place in the list of the API: of the page at this cursor so many were shown already.
struct Spot {
    cursor: Option<String>,
    skip: usize,
}

/// As many as one page shows from a place on, of several pages of the API if those are short; and where to go on.
async fn part(
    console: &Console,
    visitor: &Visitor,
    listing: &Listing,
    from: Spot,
) -> Result<(Vec<Task>, Option<Spot>), Failure> {
    let (mut shown, mut at) = (Vec::new(), Some(from));
    for _ in 0..ASKED {
        let Some(Spot { cursor, skip }) = at.take() else { break };
        let call = listing.call().with_any("place", listing.place()).with_any("cursor", cursor.as_deref());
        let Tasks { tasks, next } = console.ask(visitor, call).await?;
        let (count, left) = (tasks.len(), SHOWN - shown.len());
        shown.extend(tasks.into_iter().skip(skip).take(left));
        at = match count > skip.saturating_add(left) {
            true => Some(Spot { cursor, skip: skip + left }),
            false => next.map(|next| Spot { cursor: Some(next), skip: 0 }),
        };
        // Where a page of the API has none, the search for them has taken long already.
        if shown.len() == SHOWN || count == 0 {
            break;
        }
    }
    Ok((shown, at))
}

/// These, after all that run.
async fn running_first(
    console: &Console,
    visitor: &Visitor,
    listing: &Listing,
    others: Vec<Task>,
) -> Result<Vec<Task>, Failure> {
    let Tasks { tasks, .. } = console.ask(visitor, listing.call().with("place", "running")).await?;
    let is_other =
        |other: &Task| !tasks.iter().any(|task| (&task.task, &task.crawl) == (&other.task, &other.crawl));
    let others: Vec<Task> = others.into_iter().filter(is_other).collect();
    Ok(tasks.into_iter().chain(others).collect())
}
