//! Limits on requests in flight.

use std::time::Duration;

use trawl_common::politeness::gcra::Slot;
use trawl_common::ports::{InFlightRequest, Result};

use super::{HostPorts, ask, ended, key, one, wait, with};
use crate::conformance::{eventually, unique};

/// No more requests are in flight than the pace allows. When one ends, another may be sent.
pub async fn no_more_requests_are_in_flight_than_the_pace_allows(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let ask =
        |token| with(&ask(&host, 0, 1), |request| (request.pace.concurrency, request.token) = (2, token));
    let slots = ports.hosts.reserve(&[ask(1), ask(2), ask(3)]).await?;
    assert_eq!(slots[..2], [Slot::Now; 2]);
    assert!(wait(slots[2]) > Duration::ZERO);
    assert_eq!(one(ports, &ask(2)).await?, Slot::Now, "a request in flight counts once");
    let gone = ended(&host, 1);
    ports.hosts.leave(&[gone.clone(), gone]).await?;
    assert_eq!(one(ports, &ask(3)).await?, Slot::Now);
    wait(one(ports, &ask(4)).await?);
    Ok(())
}

/// A request that is neither ended nor extended stops counting after a while, as its worker may be gone. One that is
/// extended still counts.
pub async fn a_request_that_nobody_ends_or_extends_stops_counting_after_a_while(
    ports: &HostPorts,
) -> Result<()> {
    let host = unique("host");
    let brief = Duration::from_millis(200);
    let long = Duration::from_secs(60);
    let ask = |token, lapse| {
        with(&ask(&host, 0, 1), |request| {
            (request.pace.concurrency, request.token, request.lapse) = (2, token, lapse);
        })
    };
    assert_eq!(ports.hosts.reserve(&[ask(1, brief), ask(2, brief)]).await?, [Slot::Now; 2]);
    // A request that is not in flight is not extended.
    let stays = [1, 9].map(|token| InFlightRequest { key: key(&host), token });
    ports.hosts.stay(&stays, long).await?;
    eventually(Duration::from_secs(10), async || Ok(one(ports, &ask(3, long)).await? == Slot::Now)).await?;
    let under_way = ports.control.host(&key(&host)).await?.map(|host| host.under_way);
    assert_eq!(under_way, Some(2), "the one that stays, and the new one");
    assert!(wait(one(ports, &ask(4, long)).await?) > Duration::ZERO);
    Ok(())
}

/// A slow host is requested as often as its limit in flight allows, measured by the time that a request takes.
pub async fn a_slow_host_is_asked_as_often_as_its_limit_in_flight_allows(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let ask =
        |token| with(&ask(&host, 0, 1), |request| (request.pace.concurrency, request.token) = (1, token));
    assert_eq!(one(ports, &ask(1)).await?, Slot::Now);
    tokio::time::sleep(Duration::from_millis(60)).await;
    ports.hosts.leave(&[ended(&host, 1)]).await?;
    let took = ports.control.host(&key(&host)).await?.and_then(|host| host.latency);
    assert!(took.is_some_and(|took| took >= Duration::from_millis(50)), "{took:?}");
    assert_eq!(one(ports, &ask(2)).await?, Slot::Now);
    assert!(wait(one(ports, &ask(3)).await?) >= Duration::from_millis(50));
    Ok(())
}
