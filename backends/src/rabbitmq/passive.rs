//! Uses queues as others have declared them, reports differences, and declares trawl's own missing queues where
//! permitted.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::protocol::AMQPSoftError;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{ExchangeKind, Queue};
use tracing::warn;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Topology;

use super::arguments::{Arguments, shown};
use super::channel::{answered, close, durable, is_precondition_failed, is_soft};
use super::connection::failed;
use super::erased::{Channel, Connection};
use super::layout::Layout;
use super::names;

/// An upper bound on the number of differences: trawl's queues have fewer arguments.
const MAX_DIFFERENCES: usize = 12;

/// Uses these queues as they are. If a queue's arguments differ from trawl's, that is logged once. Missing queues of
/// trawl's own are declared. Fails if a `needed` queue is missing and belongs to another program, or cannot be
/// declared.
pub(super) async fn complete(
    connection: &Connection,
    layout: &Layout,
    queues: Vec<(String, Arguments<'_>)>,
    needed: impl Fn(&str) -> bool,
) -> Result<()> {
    for (name, arguments) in queues {
        if exists(connection, &name).await? {
            if layout.is_news(&name) {
                let differences = differences(connection, &name, arguments).await?;
                tell(&name, &differences);
            }
            continue;
        }
        let is_declared =
            !names::is_of_others(&name) && declare(connection, &name, arguments.table()).await?;
        if !is_declared && needed(&name) {
            return Err(missing(&name, &shown(&arguments.table())));
        }
    }
    Ok(())
}

/// Declares a missing queue. Returns whether trawl has the permission.
pub(super) async fn declare(connection: &Connection, name: &str, table: FieldTable) -> Result<bool> {
    let channel = connection.channel().await?;
    let declared = answered(channel.queue_declare(name.into(), durable(), table)).await.map(drop);
    allowed(&channel, declared).await
}

/// Declares an exchange unless it exists, and binds queues to it, each with its key. Skips what trawl has no permission
/// for.
pub(super) async fn feed(
    connection: &Connection,
    exchange: &str,
    kind: ExchangeKind,
    queues: &[(&str, &str)],
) -> Result<()> {
    let none = FieldTable::default;
    let channel = connection.channel().await?;
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declared = answered(channel.exchange_declare(exchange.into(), kind, options, none())).await;
    allowed(&channel, declared).await?;
    for (queue, key) in queues {
        if exists(connection, queue).await? {
            let channel = connection.channel().await?;
            let options = QueueBindOptions::default();
            let bound = channel.queue_bind((*queue).into(), exchange.into(), (*key).into(), options, none());
            let bound = answered(bound).await;
            allowed(&channel, bound).await?;
        }
    }
    Ok(())
}

/// Whether what was asked for on a channel of its own was done, or had been done by somebody else with other arguments.
async fn allowed(channel: &Channel, done: lapin::Result<()>) -> Result<bool> {
    match done {
        Ok(()) => {
            close(channel).await;
            Ok(true)
        }
        Err(error) if is_precondition_failed(&error) && read(&error.to_string()).is_some() => Ok(true),
        Err(error) if is_soft(&error, AMQPSoftError::ACCESSREFUSED) => Ok(false),
        // Also of another condition that fails, as where there are as many queues as there may be.
        Err(error) => Err(failed(error)),
    }
}

/// Returns the error for a missing queue; `wanted` describes the queue.
pub(super) fn missing(name: &str, wanted: &str) -> Error {
    let why = match names::is_of_others(name) {
        true => "is for the other program to declare: start that first, or declare it yourself",
        false => "this user may not declare it: do so yourself, or give it the right to configure",
    };
    let text = format!(
        "queues.topology is passive, and rabbitmq has no queue {name}, which {why} (durable; {wanted})"
    );
    Error::new(ErrorKind::Refused, text)
}

/// Whether the queue of tasks is missing and cannot be declared. Everything else works without it.
pub(super) async fn lacks_tasks(connection: &Connection, layout: &Layout) -> Result<bool> {
    if layout.queues.topology == Topology::Declare {
        return Ok(false);
    }
    let queues = layout.all().into_iter().filter(|(name, _)| name == names::TASKS).collect();
    complete(connection, layout, queues, |_| false).await?;
    if exists(connection, names::TASKS).await? {
        return Ok(false);
    }
    if layout.is_news(names::TASKS) {
        warn!(
            queue = names::TASKS,
            "no tasks are taken: queues.topology is passive, there is no such queue, and this user may not declare it. Declare it, and start the \
             worker anew"
        );
    }
    Ok(true)
}

/// Whether there is a queue of this name.
pub(super) async fn exists(connection: &Connection, name: &str) -> Result<bool> {
    Ok(look(connection, name).await?.is_some())
}

/// Whether a queue is empty and has no consumer, or does not exist.
pub(super) async fn is_idle(connection: &Connection, name: &str) -> Result<bool> {
    let queue = look(connection, name).await?;
    Ok(queue.is_none_or(|queue| queue.message_count() == 0 && queue.consumer_count() == 0))
}

async fn look(connection: &Connection, name: &str) -> Result<Option<Queue>> {
    let channel = connection.channel().await?;
    let look = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    match answered(channel.queue_declare(name.into(), look, FieldTable::default())).await {
        Ok(queue) => {
            close(&channel).await;
            Ok(Some(queue))
        }
        Err(error) if is_soft(&error, AMQPSoftError::NOTFOUND) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// An argument of a queue whose value differs from trawl's declaration.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    argument: String,
    /// The queue's value; `None` if it does not have the argument.
    current: Option<String>,
}

/// Returns how an existing queue differs. A broker reports only one argument at a time, when the queue is declared with
/// other arguments.
async fn differences(
    connection: &Connection,
    name: &str,
    arguments: Arguments<'_>,
) -> Result<Vec<Difference>> {
    let (mut options, mut table) = (durable(), arguments.table());
    let mut all = Vec::new();
    while all.len() < MAX_DIFFERENCES {
        let channel = connection.channel().await?;
        let error = match answered(channel.queue_declare(name.into(), options, table.clone())).await {
            Ok(_) => {
                close(&channel).await;
                break;
            }
            Err(error) if is_precondition_failed(&error) => error.to_string(),
            // Without the permission to configure, there is no way to tell.
            Err(error) if is_soft(&error, AMQPSoftError::ACCESSREFUSED) => break,
            Err(error) => return Err(failed(error)),
        };
        let Some(difference) = read(&error) else { break };
        match difference.argument.as_str() {
            "durable" => options.durable = false,
            "auto_delete" => options.auto_delete = true,
            argument => table = with(table, argument, difference.current.as_deref()),
        }
        all.push(difference);
    }
    Ok(all)
}

/// Parses an error such as `inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value '1' of type
/// 'long' but current is none`.
fn read(error: &str) -> Option<Difference> {
    let (_, rest) = error.split_once("inequivalent arg '")?;
    let (argument, rest) = rest.split_once('\'')?;
    let (_, current) = rest.rsplit_once("but current is ")?;
    let quoted = current.split('\'').nth(1);
    Some(Difference { argument: argument.to_owned(), current: quoted.map(str::to_owned) })
}

/// Returns the arguments with one of them replaced or removed.
fn with(table: FieldTable, argument: &str, value: Option<&str>) -> FieldTable {
    let others = table.inner().iter().filter(|(name, _)| name.as_str() != argument);
    let mut changed = FieldTable::default();
    for (name, value) in others {
        changed.insert(name.clone(), value.clone());
    }
    if let Some(value) = value {
        let number = value.parse().map(AMQPValue::LongLongInt);
        changed.insert(
            ShortString::from(argument),
            number.unwrap_or_else(|_| AMQPValue::LongString(value.into())),
        );
    }
    changed
}

fn tell(queue: &str, differences: &[Difference]) {
    if differences.is_empty() {
        return;
    }
    let text: Vec<String> = differences.iter().map(Difference::description).collect();
    let drops = differences.iter().any(|difference| difference.argument == "x-dead-letter-exchange");
    let then = match drops {
        true => {
            "; what waits too long there is not moved to expired_urls: the sweep notices which of trawl's URLs expired, and \
             nobody what others publish"
        }
        false => "",
    };
    warn!(queue, "taken as it is: {}{then}", text.join(", "));
}

impl Difference {
    fn description(&self) -> String {
        match &self.current {
            Some(current) => format!("{} is {current}", self.argument),
            None => format!("it has no {}", self.argument),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_says_of_an_argument_is_read() {
        let description = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received the value \
                    '3600000' of type 'long' but current is";
        let read = |rest: &str| read(&format!("{description} {rest}")).unwrap();
        let ttl = |current: Option<&str>| Difference {
            argument: "x-message-ttl".to_owned(),
            current: current.map(str::to_owned),
        };
        assert_eq!(read("none"), ttl(None));
        assert_eq!(read("the value '60' of type 'signedint'"), ttl(Some("60")));
        let durable =
            "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'";
        assert_eq!(super::read(durable).unwrap().current.as_deref(), Some("false"));
        assert_eq!(super::read("something else"), None);
    }
}
