//! Many hosts at one address: each has its own rate, and all together have the rate of the address.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::time::sleep;
use trawl_backends::embedded::Embedded;
use trawl_common::host_schedules::{Decision, HostRequest, HostSchedules};
use trawl_common::politeness::addresses::AddressRate;
use trawl_common::politeness::waiting::NEAR;
use trawl_common::settings::{HostPolicy, Politeness};
use trawl_common::web::url::CanonicalUrl;

/// Number of hosts that share an address before it gets its own rate.
const FREE: usize = 50;

const ADDRESS: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))];

fn schedules(engine: &Embedded) -> HostSchedules {
    let (health, in_flight, ceiling) = Default::default();
    let addresses = Arc::new(AddressRate::new(Politeness::default().address_rate));
    HostSchedules {
        hosts: engine.hosts(),
        health,
        in_flight,
        lapse: Duration::from_secs(60),
        ceiling,
        addresses,
    }
}

fn policy(number: usize) -> HostPolicy {
    let url: CanonicalUrl = format!("http://h{number}.example/").parse().unwrap();
    Politeness::default().host_policy(&url.host())
}

#[tokio::test]
async fn many_hosts_at_one_address_are_asked_at_its_rate_all_together() {
    let engine = Embedded::in_memory().unwrap();
    let schedules = schedules(&engine);
    let began = Instant::now();
    let asking = (0..3 * FREE).map(|number| {
        let schedules = schedules.clone();
        async move {
            let mut request = HostRequest::new(&policy(number));
            loop {
                match schedules.ask(&mut request, &ADDRESS, NEAR).await.unwrap() {
                    Decision::Go(_) => break,
                    Decision::At { wait, .. } => sleep(wait).await,
                    other => panic!("host {number} was sent away: {other:?}"),
                }
            }
            began.elapsed()
        }
    });
    let mut asked = join_all(asking).await;
    asked.sort();
    // At 50 a second; requests that are late by less than 50 ms, the period of such a rate, catch up.
    let (first, last) = (asked[FREE], asked[3 * FREE - 1]);
    assert!(last - first > Duration::from_millis(1_900), "{:?}", last - first);
}

#[tokio::test]
async fn a_host_whose_address_has_no_slot_soon_comes_back_after_those_before_it() {
    let engine = Embedded::in_memory().unwrap();
    let schedules = schedules(&engine);
    let mut away = Vec::new();
    for number in 0..4 * FREE {
        away.extend(schedules.at_addresses(&policy(number).key, &ADDRESS, Duration::ZERO).await.unwrap());
    }
    assert!(away.len() > 2 * FREE, "only {} were sent away", away.len());
    assert!(away.last().unwrap() > away.first().unwrap());
    let other = ["198.51.100.1".parse().unwrap()];
    assert_eq!(schedules.at_addresses(&policy(0).key, &other, Duration::ZERO).await, Ok(None));
}
