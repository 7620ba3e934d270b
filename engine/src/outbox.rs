//! Turns records into messages: publish, then confirm. A URL that is admitted but not confirmed is in the
//! outbox, from which the sweep sends it again.

use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::health::Health;
use trawl_common::ports::Result;

use crate::broker::{Broker, Parked};
use crate::records::Outbox;

/// The number of tries for a step.
#[derive(Clone, Copy)]
pub(crate) enum Tries<'a> {
    /// Once.
    One,
    /// Repeats while another try may succeed.
    Repeated(&'a Health),
}

impl Tries<'_> {
    /// Makes an idempotent call.
    pub(crate) async fn call<T, F: Future<Output = Result<T>>>(
        self,
        what: &str,
        call: impl Fn() -> F,
    ) -> Result<T> {
        match self {
            Self::One => call().await,
            Self::Repeated(health) => health.retry(what, call).await,
        }
    }
}

/// Publishes the messages of URLs and tasks that were just admitted, and confirms them.
pub(crate) async fn send(
    records: &dyn Outbox,
    broker: &dyn Broker,
    messages: Vec<Message>,
    tries: Tries<'_>,
) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    tries.call("publishing", || broker.publish(&messages)).await?;
    list_urgent(records, &messages, tries).await?;
    confirm(records, &messages, tries).await
}

/// Lists the urgent tasks among requeued messages. This comes before they are confirmed: if the process dies
/// in between, they are sent once more, and listed then.
pub(crate) async fn list_urgent(records: &dyn Outbox, messages: &[Message], tries: Tries<'_>) -> Result<()> {
    let is_urgent = |message: &&Message| message.lane == Lane::Task && message.work.priority().is_urgent();
    let urgent: Vec<&Message> = messages.iter().filter(is_urgent).collect();
    match urgent[..] {
        [] => Ok(()),
        _ => tries.call("listing urgent tasks", || records.list_urgent(&urgent)).await,
    }
}

/// Stores the messages of parked URLs, and confirms them.
pub(crate) async fn park(
    records: &dyn Outbox,
    broker: &dyn Broker,
    parked: Vec<Parked>,
    health: &Health,
) -> Result<()> {
    if parked.is_empty() {
        return Ok(());
    }
    health.retry("parking", || broker.park(&parked)).await?;
    let messages: Vec<Message> = parked.into_iter().map(|parked| parked.message).collect();
    confirm(records, &messages, Tries::Repeated(health)).await
}

/// Removes the messages from the outbox. A record that is still new counts as queued from now on.
pub(crate) async fn confirm(records: &dyn Outbox, messages: &[Message], tries: Tries<'_>) -> Result<()> {
    tries.call("confirming", || records.confirm(messages)).await
}
