//! The known spiders.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use crate::Console;
use crate::answers::{Spider, Spiders};
use crate::ask::Call;
use crate::page::{Answer, Here, Page, html};
use crate::visitor::Visitor;

#[derive(Template)]
#[template(path = "spiders.html")]
struct SpidersPage {
    page: Page,
    spiders: Vec<Spider>,
}

pub(crate) async fn list(State(console): State<Arc<Console>>, visitor: Visitor) -> Answer {
    let Spiders { spiders } = console.ask(&visitor, Call::get(&["spiders"])).await?;
    html(&SpidersPage { page: Page::new("Spiders", Here::Spiders, &visitor), spiders })
}
