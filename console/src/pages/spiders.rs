//! The known spiders.

use askama::Template;

use crate::answers::{Spider, Spiders};
use crate::ask::Call;
use crate::page::{Answer, Here, Page, html};
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "spiders.html")]
struct SpidersPage {
    page: Page,
    spiders: Vec<Spider>,
}

pub(crate) async fn list(visit: Visit) -> Answer {
    let Spiders { spiders } = visit.ask(Call::get(&["spiders"])).await?;
    html(&SpidersPage { page: Page::new("Spiders", Here::Spiders, &visit), spiders })
}
