//! Dead letters: the list, a single one, replaying and purging them.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use serde::Deserialize;
use strum::VariantNames;
use trawl_common::frontier::outcome::Reason;
use trawl_common::text::counted;

use super::filled::{self, Spot};
use super::selection::Selection;
use crate::Console;
use crate::address;
use crate::answers::{Changed, Counted, DeadLetter, DeadLetters};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted, written};
use crate::page::{Answer, Confirm, Here, Page, html};
use crate::visit::Visit;

/// The number of dead letters on one page. The API's pages are larger, and as the store has them.
const PAGE_SIZE: usize = 500;

/// Maximum number of API pages requested to fill one page.
const MAX_REQUESTS: usize = 16;

/// The fields of a page or a form.
#[derive(Deserialize)]
pub(crate) struct Said {
    crawl: Option<String>,
    spider: Option<String>,
    url: Option<String>,
    reason: Option<String>,
    host: Option<String>,
    older_than: Option<String>,
    /// The cursor of the API's list.
    cursor: Option<String>,
    /// The number of dead letters at the cursor that were shown already.
    skip: Option<String>,
}

impl Said {
    fn selection(&self) -> Selection {
        let Self { crawl, spider, url, reason, host, older_than, .. } = self;
        let [crawl, spider, url, reason, host, older_than] =
            [crawl, spider, url, reason, host, older_than].map(Clone::clone);
        Selection { crawl, spider, url, reason, host, older_than }
    }
}

#[derive(Template)]
#[template(path = "dead_letters.html")]
struct DeadLettersPage {
    page: Page,
    selection: Selection,
    reasons: &'static [&'static str],
    /// The dead letters by what failed, the most frequent first.
    groups: Vec<(String, Vec<DeadLetter>)>,
    is_first: bool,
    next: Option<String>,
}

impl DeadLetter {
    /// A selection of this dead letter alone.
    fn selection(&self) -> Selection {
        let url = Some(self.url.to_string());
        Selection { crawl: Some(self.crawl.clone()), url, ..Selection::default() }
    }

    pub(crate) fn path(&self) -> String {
        self.selection().path("/dead-letters/one")
    }

    /// The address of the page of its URL or task in its crawl.
    fn standing(&self) -> String {
        address::standing(self.url.as_str(), &self.crawl)
    }

    /// The class of the failure, and the HTTP status if there was one.
    fn kind(&self) -> String {
        let class = self.class.as_ref().unwrap_or(&self.reason);
        match self.status {
            Some(status) => format!("{class} {status}"),
            None => class.clone(),
        }
    }

    /// A short description of the failure.
    pub(crate) fn what(&self) -> String {
        match (self.status, &self.class) {
            (Some(status), _) => format!("{} {status}", self.reason),
            (None, Some(class)) if *class != self.reason => format!("{} {class}", self.reason),
            _ => self.reason.clone(),
        }
    }
}

pub(crate) async fn list(visit: Visit, Asked(said): Asked<Said>) -> Answer {
    let selection = said.selection();
    let from = Spot::new(said.cursor, &said.skip);
    let is_first = from.is_first();
    let ask = async |cursor: Option<String>| {
        let call = selection.call().with_any("cursor", cursor.as_deref());
        let DeadLetters { dead_letters, next } = visit.ask(call).await?;
        Ok((dead_letters, next))
    };
    let (letters, next) = filled::fill(from, PAGE_SIZE, MAX_REQUESTS, ask).await?;
    let next = next.map(|next| selection.path_with("/dead-letters", next.fields()));
    html(&DeadLettersPage {
        page: Page::new("Dead letters", Here::DeadLetters, &visit),
        reasons: Reason::VARIANTS,
        is_first,
        groups: grouped(letters),
        selection,
        next,
    })
}

/// Groups dead letters by what failed, the most frequent first.
fn grouped(letters: Vec<DeadLetter>) -> Vec<(String, Vec<DeadLetter>)> {
    let mut groups: Vec<(String, Vec<DeadLetter>)> = Vec::new();
    for letter in letters {
        let what = letter.kind();
        match groups.iter_mut().find(|(other, _)| *other == what) {
            Some((_, group)) => group.push(letter),
            None => groups.push((what, vec![letter])),
        }
    }
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.len()));
    groups
}

#[derive(Template)]
#[template(path = "dead_letter.html")]
struct DeadLetterPage {
    page: Page,
    letter: DeadLetter,
    selection: Selection,
}

pub(crate) async fn show(visit: Visit, Asked(said): Asked<Said>) -> Answer {
    let selection = said.selection();
    let DeadLetters { dead_letters, .. } = visit.ask(selection.call()).await?;
    let letter = dead_letters.into_iter().next().ok_or_else(|| {
        let title = "There is no such dead letter";
        Failure::new(StatusCode::NOT_FOUND, title, "it was sent again, or purged")
    })?;
    let page = Page::new("A dead letter", Here::DeadLetters, &visit);
    html(&DeadLetterPage { page, selection: letter.selection(), letter })
}

pub(crate) async fn ask_to_replay(visit: Visit, Asked(said): Asked<Said>) -> Answer {
    let note = "Their URLs are fetched again and their tasks done again, with no failure counted. Those of a crawl that is over go into \
                a crawl of their own.";
    confirm(&visit, &said.selection(), ["Replay", "Replay it", "Replay them"], note).await
}

pub(crate) async fn ask_to_purge(visit: Visit, Asked(said): Asked<Said>) -> Answer {
    let note = "They are taken out of the list for good, and cannot be replayed after that. The counters of \
                their crawls stay.";
    confirm(&visit, &said.selection(), ["Purge", "Purge it", "Purge them"], note).await
}

/// Returns the page that asks whether the selected dead letters are to be changed. The verbs are for the title, for one
/// of them and for several.
async fn confirm(
    visit: &Visit,
    selection: &Selection,
    [verb, it, them]: [&'static str; 3],
    note: &'static str,
) -> Answer {
    let (number, counted) = count(visit, selection).await?;
    html(&Confirm {
        page: Page::new(format!("{verb} dead letters"), Here::DeadLetters, visit),
        question: format!("{verb} {counted}?").into(),
        notes: vec![format!("Of {}.", selection.words()).into(), note.into()],
        action: format!("/dead-letters/{}", verb.to_lowercase()),
        fields: fields(selection),
        verb: if number == 1 { it } else { them },
        back: selection.path("/dead-letters"),
    })
}

fn fields(selection: &Selection) -> Vec<(&'static str, String)> {
    selection.fields().into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

/// Returns the number of selected dead letters, and a description of it. Fails if there are none: there is
/// nothing to confirm.
async fn count(visit: &Visit, selection: &Selection) -> Result<(u64, String), Failure> {
    let call = selection.call_for(&["dead-letters", "count"]);
    let Counted { count, more } = visit.ask(call).await?;
    let counted = counted(count, "dead letter");
    match (count, more) {
        (0, false) => Err(Failure::malformed(format!("there is no dead letter of {}", selection.words()))),
        (count, true) => Ok((count, format!("more than {counted}"))),
        (count, false) => Ok((count, counted)),
    }
}

#[derive(Template)]
#[template(path = "dead_letters_done.html")]
struct Done {
    page: Page,
    /// The result.
    what: String,
    /// The crawls of the URLs that were sent again.
    crawls: Vec<String>,
    selection: Selection,
    action: String,
    /// The cursor at which to continue, if there is more to do.
    cursor: Option<String>,
}

/// Returns the handler of a form that replays or purges dead letters, as `verb` says. `done` says what has become of them.
pub(crate) fn change(verb: &'static str, done: &'static str) -> MethodRouter<Arc<Console>> {
    post(async move |visit: Visit, Posted(said): Posted<Said>| -> Answer {
        let (selection, name) = (said.selection(), verb.to_lowercase());
        let order = selection.order(written(&said.cursor));
        let call = Call::post(&["dead-letters", &name]).body(&order);
        let Changed { number, crawls, next: cursor } = visit.ask(call).await?;
        let were = if number == 1 { "was" } else { "were" };
        html(&Done {
            page: Page::new(format!("{verb} dead letters"), Here::DeadLetters, &visit),
            what: format!("{} {were} {done}.", counted(number, "dead letter")),
            crawls,
            selection,
            action: format!("/dead-letters/{name}"),
            cursor,
        })
    })
}
