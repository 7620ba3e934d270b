//! One crawl: its progress, and the actions on it.

use std::sync::Arc;

use askama::Template;
use axum::routing::{MethodRouter, post};
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::text::counted;

use super::Nothing;
use crate::Console;
use crate::answers::{Crawl, CrawlHost, CrawlHosts, CrawlTasks};
use crate::ask::Call;
use crate::form::{Posted, Segments};
use crate::page::{Answer, Confirm, Here, Page, html, to};
use crate::visit::Visit;

/// The number of hosts shown.
const MAX_HOSTS: usize = 25;
/// The number of hosts requested: if a crawl has fewer, the counts of its tasks are known.
const HOSTS: &str = "200";

#[derive(Template)]
#[template(path = "crawl.html")]
struct CrawlPage {
    page: Page,
    crawl: Crawl,
    hosts: Vec<CrawlHost>,
    /// The counts of its tasks; `None` if it has none, or they are not known.
    tasks: Option<CrawlTasks>,
}

impl CrawlPage {
    /// Whether it has tasks only.
    fn has_only_tasks(&self) -> bool {
        self.tasks.is_some() && self.hosts.is_empty()
    }

    /// The word for its work.
    fn units(&self) -> &'static str {
        match self.tasks {
            None => "URLs",
            Some(_) if self.has_only_tasks() => "tasks",
            Some(_) => "URLs and tasks",
        }
    }
}

pub(crate) async fn show(visit: Visit, Segments(id): Segments<String>) -> Answer {
    let crawl: Crawl = visit.ask(Call::get(&["crawls", &id])).await?;
    let call = Call::get(&["crawls", &id, "hosts"]).with("limit", HOSTS);
    let CrawlHosts { mut hosts, tasks } = visit.ask(call).await?;
    hosts.truncate(MAX_HOSTS);
    let title = format!("Crawl {}", crawl.crawl);
    let page = Page::new(title, Here::Crawls, &visit).live(!crawl.over);
    let tasks = tasks.filter(|tasks| tasks.admitted.0 > 0);
    html(&CrawlPage { page, crawl, hosts, tasks })
}

/// Returns the handler of a form that pauses, resumes or cancels a crawl, as the API's `verb` does.
pub(crate) fn change(verb: &'static str) -> MethodRouter<Arc<Console>> {
    post(async move |visit: Visit, Segments(id): Segments<String>, Posted(Nothing {})| -> Answer {
        let Crawl { crawl, .. } = visit.ask(Call::post(&["crawls", &id, verb])).await?;
        Ok(to(&format!("/crawls/{crawl}")))
    })
}

pub(crate) async fn ask_to_cancel(visit: Visit, Segments(id): Segments<String>) -> Answer {
    let crawl: Crawl = visit.ask(Call::get(&["crawls", &id])).await?;
    let Crawl { crawl: id, spider, .. } = &crawl;
    let note = match crawl.status {
        CrawlState::Pending => "It has not begun, and will not begin.".to_owned(),
        _ => {
            let dropped = counted(crawl.pending.0, "URL");
            format!("{dropped} will not be fetched any more. What was fetched stays.")
        }
    };
    html(&Confirm {
        page: Page::new("Cancel a crawl", Here::Crawls, &visit),
        question: format!("Cancel crawl {id} of spider {spider}?").into(),
        notes: vec![note.into(), "A cancelled crawl cannot go on. To hold it for a while, pause it.".into()],
        action: format!("/crawls/{id}/cancel"),
        fields: Vec::new(),
        verb: "Cancel the crawl",
        back: format!("/crawls/{id}"),
    })
}
