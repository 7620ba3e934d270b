//! Takes the steps of a spider in a page.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use trawl_browser::{Attempt, PageError, Tab};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::spider::{Action, Awaited, PageStep};

use super::NoDocument;
use crate::proxy::page::{PageProxy, Stopped};

/// Delay before a step is tried again for which the page is not ready.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Maximum time, waits for slots not counted, until a page is at rest after a step: some always ask for more.
const SETTLE_TIME: Duration = Duration::from_secs(5);

/// Takes steps one after another, each within `limit` or its own, and notes the time that each took.
///
/// # Errors
/// Fails if the page does not let one be taken in time.
pub(super) async fn take(
    tab: &mut Tab,
    proxy: &PageProxy,
    (steps, limit): (&[PageStep], Duration),
    taken: &mut Vec<(String, Duration)>,
) -> Result<(), NoDocument> {
    for (number, step) in (1..).zip(steps) {
        let begun = Instant::now();
        take_one(tab, proxy, step, limit).await.map_err(|error| at_step(error, number, step))?;
        taken.push((step.action.to_string(), begun.elapsed()));
    }
    Ok(())
}

/// The reason why a step is not taken.
enum NotTaken {
    /// The page is not ready for it in time, for this reason.
    Overdue(String, Duration),
    /// The page fails, or has gone to where it may not.
    Page(NoDocument),
}

impl From<PageError> for NotTaken {
    fn from(error: PageError) -> Self {
        Self::Page(error.into())
    }
}

async fn take_one(
    tab: &mut Tab,
    proxy: &PageProxy,
    PageStep { action, within }: &PageStep,
    limit: Duration,
) -> Result<(), NotTaken> {
    let is_scroll = matches!(action, Action::Scroll(_));
    let limit = within.unwrap_or(if is_scroll { PageStep::MAX_WITHIN } else { limit });
    let mut why = "it is not over".to_owned();
    let taking = async {
        while let Attempt::NotYet(reason) = attempt(tab, proxy, action).await? {
            why = reason;
            tab.during(sleep(RETRY_DELAY)).await?;
        }
        Ok::<_, NotTaken>(())
    };
    match proxy.within(limit, taking).await {
        Ok(taken) => taken?,
        // A page that has ever more to show is read as it is.
        Err(Stopped::Overdue) if is_scroll => {}
        Err(Stopped::Overdue) => return Err(NotTaken::Overdue(why, limit)),
        Err(Stopped::NoPage(no_page)) => return Err(NotTaken::Page(no_page.into())),
    }
    if matches!(action, Action::Wait(_)) { Ok(()) } else { settle(tab, proxy).await }
}

async fn attempt(tab: &mut Tab, proxy: &PageProxy, action: &Action) -> Result<Attempt, NotTaken> {
    match action {
        Action::Wait(Awaited::Element(target)) => return Ok(tab.look_for(target).await?),
        Action::Wait(Awaited::Text(text)) => return Ok(tab.look_for_text(text).await?),
        Action::Click(target) => return Ok(tab.click(target).await?),
        Action::Fill(target, text) => return Ok(tab.fill(target, text).await?),
        Action::Select(target, option) => return Ok(tab.select(target, option).await?),
        Action::Wait(Awaited::Rest) => tab.during(proxy.quiet()).await?,
        Action::Press(key) => tab.press(*key).await?,
        Action::Scroll(screens) => scroll(tab, proxy, screens.get()).await?,
        Action::Evaluate(script) => tab.evaluate(script).await?,
        Action::Goto(url) => tab.leave_for(url).await?,
    }
    Ok(Attempt::Done)
}

/// Scrolls until the page grows no more.
async fn scroll(tab: &mut Tab, proxy: &PageProxy, screens: u16) -> Result<(), NotTaken> {
    let mut height = 0.0;
    for _ in 0..screens {
        let now = tab.scroll().await?;
        if now <= height {
            break;
        }
        height = now;
        settle(tab, proxy).await?;
    }
    Ok(())
}

/// Waits until the page is at rest after something was done to it.
async fn settle(tab: &mut Tab, proxy: &PageProxy) -> Result<(), NotTaken> {
    proxy.stir();
    match tab.during(proxy.within(SETTLE_TIME, proxy.quiet())).await? {
        Ok(()) | Err(Stopped::Overdue) => Ok(()),
        Err(Stopped::NoPage(no_page)) => Err(NotTaken::Page(no_page.into())),
    }
}

/// Returns the failure of a page at a step, which says at which.
fn at_step(error: NotTaken, number: usize, PageStep { action, .. }: &PageStep) -> NoDocument {
    let (class, why) = match error {
        NotTaken::Overdue(why, limit) => (Class::Timeout, format!("{why} after {limit:?}")),
        NotTaken::Page(NoDocument::Tab(PageError::Threw(why) | PageError::Refused(why))) => {
            (Class::Body, why)
        }
        NotTaken::Page(error) => return error,
    };
    Failure::new(class, format_args!("step {number}, {action}: {why}")).into()
}
