//! Requests for robots.txt and its redirects, each in a slot of its host.

use std::sync::Arc;
use std::time::Duration;

use trawl_backends::embedded::Embedded;
use trawl_common::host_schedules::HostSchedules;
use trawl_common::politeness::addresses::AddressRate;
use trawl_common::settings::{Fetch, HostRule, Politeness};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_testkit::many_hosts::{ManyHosts, Plan, Robots};
use trawl_web::{Fetcher, NoRobots, RobotsWay};

const RULES: &str = "User-agent: *\nAllow: /\n";

fn fetcher() -> Fetcher {
    // Every test of the process tries to install it; the first one succeeds.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Fetcher::new(&Fetch { allow_private: true, ports: vec!["1-65535".parse().unwrap()], ..Fetch::default() })
        .unwrap()
}

fn schedules(engine: &Embedded) -> HostSchedules {
    let lapse = Duration::from_secs(60);
    let (health, in_flight, ceiling) = Default::default();
    let addresses = Arc::new(AddressRate::new(Politeness::default().address_rate));
    HostSchedules { hosts: engine.hosts(), health, in_flight, lapse, ceiling, addresses }
}

/// A fetch of the robots.txt of each host.
fn ways(world: &ManyHosts, hosts: usize) -> Vec<RobotsWay> {
    let url = |host| world.url(host, "/").parse::<CanonicalUrl>().unwrap();
    (0..hosts).map(|host| RobotsWay::to(&url(host).origin())).collect()
}

fn asked(world: &ManyHosts, host: usize) -> usize {
    world.log().iter().filter(|arrival| arrival.host == host).count()
}

#[tokio::test]
async fn five_redirects_are_followed_and_more_lead_to_no_file() {
    let text = Plan { robots: Some(Robots::Text(RULES.to_owned())), ..Plan::default() };
    let to = |host| Plan { robots: Some(Robots::At(host)), ..Plan::default() };
    let world = ManyHosts::serve(&[text, to(0), to(1), to(2), to(3), to(4), to(5)]).await.unwrap();
    let engine = Embedded::in_memory().unwrap();
    let (fetcher, schedules, mut ways) = (fetcher(), schedules(&engine), ways(&world, 7));
    let near = fetcher.robots(&schedules, &Politeness::default(), &mut ways[5]).await.unwrap();
    assert_eq!((near.file.body.as_ref(), near.is_lasting), (RULES.as_bytes(), true));
    let unlimited = Politeness { rate: "unlimited".parse().unwrap(), ..Politeness::default() };
    let far = fetcher.robots(&schedules, &unlimited, &mut ways[6]).await.unwrap();
    assert_eq!((far.file.status, far.is_lasting), (404, false));
    assert_eq!(asked(&world, 0), 1);
}

#[tokio::test]
async fn a_way_that_was_given_up_for_a_while_goes_on_where_it_ended() {
    let text = Plan { robots: Some(Robots::Text(RULES.to_owned())), ..Plan::default() };
    let to_it = Plan { robots: Some(Robots::At(0)), ..Plan::default() };
    let world = ManyHosts::serve(&[text, to_it.clone(), to_it]).await.unwrap();
    let engine = Embedded::in_memory().unwrap();
    let (fetcher, schedules, mut ways) = (fetcher(), schedules(&engine), ways(&world, 3));
    let hourly = |host: &str| HostRule {
        host: vec![host.to_owned()],
        rate: Some("1/h".parse().unwrap()),
        ..HostRule::default()
    };
    let politeness = Politeness { host: vec![hourly(&world.host(0))], ..Politeness::default() };
    fetcher.robots(&schedules, &politeness, &mut ways[1]).await.unwrap();
    for _ in 0..3 {
        let given_up = fetcher.robots(&schedules, &politeness, &mut ways[2]).await.unwrap_err();
        let NoRobots::Later(until) = given_up else { panic!("{given_up:?}") };
        assert!(until > UnixMs::now().plus(Duration::from_secs(50)), "{until}");
    }
    let unlimited = Politeness { rate: "unlimited".parse().unwrap(), ..Politeness::default() };
    fetcher.robots(&schedules, &unlimited, &mut ways[2]).await.unwrap();
    assert_eq!([0, 1, 2].map(|host| asked(&world, host)), [2, 1, 1]);
}

#[tokio::test]
async fn the_host_that_refuses_on_the_way_is_left_alone_and_not_the_one_that_led_there() {
    let busy = Plan { robots: Some(Robots::Fails(503, 1)), ..Plan::default() };
    let to_it = Plan { robots: Some(Robots::At(0)), ..Plan::default() };
    let world = ManyHosts::serve(&[busy, to_it]).await.unwrap();
    let engine = Embedded::in_memory().unwrap();
    let (fetcher, schedules, mut ways) = (fetcher(), schedules(&engine), ways(&world, 2));
    let refused = fetcher.robots(&schedules, &Politeness::default(), &mut ways[1]).await.unwrap_err();
    let NoRobots::Refused(host, failure, until) = refused else { panic!("{refused:?}") };
    assert_eq!((host.to_string(), failure.status), (world.host(0), Some(503)));
    assert!(until > UnixMs::now().plus(Duration::from_secs(20)), "{until}");
    let known = engine.host_control().hosts().await.unwrap();
    let backs_off: Vec<_> =
        known.iter().map(|state| (state.key.to_string(), state.backoff.is_some())).collect();
    assert_eq!(backs_off, [(world.host(0), true), (world.host(1), false)]);
}
