//! Checks of RabbitMQ before a fleet relies on it.

use trawl_common::finding::Finding;
use trawl_common::ports::Result;
use trawl_common::settings::{self, QueueType, Queues};

use super::connection::Endpoint;
use super::erased::Connection;
use super::layout::Layout;
use super::topology::Declaring;
use super::{names, passive};
use crate::versions::is_older;

const SUBJECT: &str = "rabbitmq";
/// The oldest version that trawl is tested with.
const OLDEST: [u32; 2] = [3, 10];

/// Connects to the broker, and returns what is to be said of it and of trawl's queues. Declares nothing.
pub async fn examine(broker: &settings::RabbitMq, queues: &Queues) -> Vec<Finding> {
    let found = async {
        let (endpoint, layout) = (Endpoint::new(broker)?, Layout::new(queues)?);
        let connection = endpoint.open("trawl doctor").await?;
        let version = endpoint.server_version().unwrap_or_default();
        let mut all =
            vec![Finding::ok(SUBJECT, format_args!("rabbitmq {version} at {} answers", broker.url))];
        if is_older(&version, OLDEST) {
            let what = format!("rabbitmq {version} is older than any that trawl is tested with");
            all.push(Finding::warning(SUBJECT, what).advise("update it to 3.10 or newer"));
        }
        all.extend(fault(&version, queues));
        all.push(queues_on(&connection, &layout).await?);
        Ok(all)
    };
    found.await.unwrap_or_else(|error: trawl_common::ports::Error| vec![Finding::error(SUBJECT, error)])
}

/// Returns a warning if this version can permanently stop dead-lettering over an `x-death` that it cannot read: 3.10.8
/// does, 4.0.5 does not.
pub(super) fn fault(version: &str, queues: &Queues) -> Option<Finding> {
    let what = format!(
        "rabbitmq {version}: whoever may write to the default exchange can stop all dead-lettering of the node, and the \
         delay ladder with it, for good by one message"
    );
    let advice = format!(
        "give other programs a user that may write to the exchange `{}` alone (docs/attacks.md), or run RabbitMQ 4",
        names::URLS
    );
    let is_faulty = is_older(version, [4, 0]) && queues.kind == QueueType::Quorum;
    is_faulty.then(|| Finding::warning(SUBJECT, what).advise(advice))
}

/// Compares the queues that exist with the settings.
async fn queues_on(connection: &Connection, layout: &Layout) -> Result<Finding> {
    let (mut there, mut missing) = (0, Vec::new());
    let mut declaring = Declaring::on(connection).await?;
    for (name, arguments) in layout.all() {
        if !passive::exists(connection, &name).await? {
            missing.push(name);
            continue;
        }
        there += 1;
        if layout.queues.topology == settings::Topology::Declare {
            // Of a queue that exists, this only compares the arguments.
            declaring.queue(&name, arguments).await?;
        }
    }
    if let Err(conflict) = declaring.end().await {
        return Ok(Finding::error(SUBJECT, conflict));
    }
    Ok(match &missing[..] {
        [] => Finding::ok(SUBJECT, format_args!("its {there} queues are as the settings say")),
        _ if there == 0 => {
            Finding::ok(SUBJECT, "it has no queues yet: the first worker or producer declares them")
        }
        missing => {
            let what = format!(
                "it lacks {} of {} queues: {}",
                missing.len(),
                there + missing.len(),
                missing.join(", ")
            );
            Finding::warning(SUBJECT, what).advise("the next worker or producer declares what it may")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quorum_queues_of_versions_before_4_have_the_fault() {
        let quorum = Queues::default();
        let classic = Queues { kind: QueueType::Classic, ..Queues::default() };
        assert!(fault("3.10.8", &quorum).is_some());
        for (version, queues) in [("4.0.5", &quorum), ("3.10.8", &classic), ("", &quorum)] {
            assert_eq!(fault(version, queues), None, "{version}");
        }
    }
}
