//! The time in which RabbitMQ notices that a program has stopped.
//!
//! Messages of a stopped worker are delivered to another once the broker has closed its connection. Recovery
//! assumes that this happens within `recovery.lost_after`: otherwise a crawl would end before its last URLs.

use std::time::Duration;

use url::Url;

use super::{RabbitMq, ServerUrl};

/// Maximum heartbeat in seconds if the URL names none.
const MAX_SECONDS: u64 = 10;

/// Number of heartbeats after which the broker closes a connection at the latest: it waits for two without a sign,
/// and checks once in each.
const NOTICED_AFTER: u32 = 3;

/// The reason why a fleet could not recover what a stopped worker holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unnoticed {
    /// The broker notices too late.
    #[error(
        "recovery.lost_after is {}, and rabbitmq notices a stopped worker only after {} (three heartbeats of {heartbeat} s): \
         make it at least that{}",
        humantime::format_duration(*.lost_after),
        humantime::format_duration(NOTICED_AFTER * Duration::from_secs(*.heartbeat)),
        if *.heartbeat > 1 { ", or the heartbeat in rabbitmq.url shorter (`?heartbeat=1`)" } else { "" }
    )]
    TooLate {
        /// The value of the settings.
        lost_after: Duration,
        /// The heartbeat in seconds.
        heartbeat: u64,
    },
    /// The broker never notices.
    #[error("rabbitmq.url has `heartbeat=0`: rabbitmq would never notice that a worker has stopped")]
    Never,
}

impl RabbitMq {
    /// Returns the same settings with a heartbeat in the URL by which the broker notices within `lost_after` that
    /// a program has stopped.
    ///
    /// # Errors
    /// Fails if the URL names a heartbeat that is too long for that, or if none is short enough.
    pub fn noticing(&self, lost_after: Duration) -> Result<Self, Unnoticed> {
        let Ok(mut url) = Url::parse(self.url.reveal()) else { return Ok(self.clone()) };
        let named = url.query_pairs().find(|(name, _)| name == "heartbeat");
        let heartbeat = match named.and_then(|(_, seconds)| seconds.parse().ok()) {
            Some(0) => return Err(Unnoticed::Never),
            Some(named) => named,
            None => {
                let fitting = (lost_after.as_secs() / u64::from(2 * NOTICED_AFTER)).clamp(1, MAX_SECONDS);
                url.query_pairs_mut().append_pair("heartbeat", &fitting.to_string());
                fitting
            }
        };
        if NOTICED_AFTER * Duration::from_secs(heartbeat) > lost_after {
            return Err(Unnoticed::TooLate { lost_after, heartbeat });
        }
        Ok(Self { url: ServerUrl::new(url), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heartbeat(url: &str, lost_after: u64) -> Result<String, Unnoticed> {
        let broker = RabbitMq { url: ServerUrl::new(url), ..RabbitMq::default() };
        Ok(broker.noticing(Duration::from_secs(lost_after))?.url.reveal().to_owned())
    }

    #[test]
    fn a_connection_has_a_heartbeat_that_fits_the_patience() {
        let named = |lost_after| heartbeat("amqp://a:b@mq:5672/%2f", lost_after).unwrap();
        assert_eq!(named(60), "amqp://a:b@mq:5672/%2f?heartbeat=10");
        assert_eq!(named(600), "amqp://a:b@mq:5672/%2f?heartbeat=10");
        assert_eq!(named(3), "amqp://a:b@mq:5672/%2f?heartbeat=1");
        let own = "amqp://mq/?heartbeat=20";
        assert_eq!(heartbeat(own, 60).unwrap(), own);
    }

    #[test]
    fn a_patience_that_ends_before_the_broker_notices_is_refused() {
        let error = |url, lost_after| heartbeat(url, lost_after).unwrap_err().to_string();
        let message = error("amqp://mq", 2);
        assert!(message.contains("recovery.lost_after is 2s") && message.contains("after 3s"), "{message}");
        let message = error("amqp://mq?heartbeat=30", 60);
        assert!(message.contains("after 1m 30s") && message.contains("heartbeat=1"), "{message}");
        assert!(error("amqp://mq?heartbeat=0", 60).contains("never"));
    }
}
