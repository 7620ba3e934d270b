//! Hosts: their pace, and blocking them.

use std::sync::Arc;

use askama::Template;
use axum::routing::{MethodRouter, post};
use serde::Deserialize;

use crate::Console;
use crate::address::address;
use crate::answers::{Host, Hosts};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted, written};
use crate::page::{Answer, Confirm, Here, Page, html, to};
use crate::shown::Text;
use crate::visit::Visit;

/// The number of hosts on one page.
const LIMIT: &str = "100";

/// The filter and the position in the list.
#[derive(Deserialize)]
pub(crate) struct Listing {
    host: Option<String>,
    cursor: Option<String>,
}

/// The response to a change of a host.
#[derive(Deserialize)]
struct Blocking {
    host: String,
}

#[derive(Deserialize)]
pub(crate) struct Named {
    #[serde(default)]
    host: String,
}

#[derive(Template)]
#[template(path = "hosts.html")]
struct HostsPage {
    page: Page,
    hosts: Vec<Host>,
    /// The host searched for.
    named: Option<Text>,
    is_first: bool,
    next: Option<String>,
}

pub(crate) async fn list(visit: Visit, Asked(listing): Asked<Listing>) -> Answer {
    let Hosts { hosts, next } = match written(&listing.host) {
        Some(host) => named(&visit, host).await?,
        None => {
            let call = Call::get(&["hosts"]).with("limit", LIMIT);
            visit.ask(call.with_any("cursor", listing.cursor.as_deref())).await?
        }
    };
    html(&HostsPage {
        page: Page::new("Hosts", Here::Hosts, &visit).live(true),
        hosts,
        named: written(&listing.host).map(Text::from),
        is_first: listing.cursor.is_none(),
        next: next.map(|next| path("cursor", &next)),
    })
}

/// Returns the host of this name, if it is known.
async fn named(visit: &Visit, host: &str) -> Result<Hosts, Failure> {
    match visit.ask(Call::get(&["hosts", host])).await {
        Ok(host) => Ok(Hosts { hosts: vec![host], next: None }),
        Err(Failure { status: 404, .. }) => Ok(Hosts { hosts: Vec::new(), next: None }),
        Err(failure) => Err(failure),
    }
}

pub(crate) async fn ask_to_block(visit: Visit, Asked(Named { host }): Asked<Named>) -> Answer {
    let host = host.trim().to_owned();
    if host.is_empty() {
        return Err(Failure::malformed("name a host"));
    }
    html(&Confirm {
        page: Page::new("Block a host", Here::Hosts, &visit),
        question: format!("Block {host}?").into(),
        notes: vec![
            "Nobody will ask it any more, in any crawl.".into(),
            "What waits for it is skipped, and kept as dead letters. These can be replayed when it is \
             unblocked."
                .into(),
        ],
        action: "/hosts/block".to_owned(),
        back: path("host", &host),
        fields: vec![("host", host)],
        verb: "Block the host",
    })
}

/// Returns the handler of a form that blocks or unblocks a host, as the API's `verb` does.
pub(crate) fn change(verb: &'static str) -> MethodRouter<Arc<Console>> {
    post(async move |visit: Visit, Posted(Named { host })| -> Answer {
        let Blocking { host } = visit.ask(Call::post(&["hosts", host.trim(), verb])).await?;
        Ok(to(&path("host", &host)))
    })
}

fn path(name: &str, value: &str) -> String {
    address("/hosts", [(name, value)])
}
