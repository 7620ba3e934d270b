//! Back-offs, blocks, and the view of a host for operators.

use std::time::Duration;

use trawl_common::politeness::gcra::{BackoffTerms, Slot};
use trawl_common::ports::{BackoffRequest, Ended, Result};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

use super::{HostPorts, ask, at, ended, is_about, key, one, wait, with};
use crate::conformance::{eventually, unique};

fn refusal(asked: Option<u64>) -> BackoffRequest {
    let terms = BackoffTerms {
        asked: asked.map(Duration::from_secs),
        base: Duration::from_secs(30),
        jitter: 0.0,
        most: Duration::from_secs(3_600),
    };
    BackoffRequest { status: 429, terms, crawl: None }
}

/// Returns a refusal without `Retry-After`, with a first back-off of `base` milliseconds.
fn brief(base: u64) -> BackoffRequest {
    let refusal = refusal(None);
    BackoffRequest { terms: BackoffTerms { base: Duration::from_millis(base), ..refusal.terms }, ..refusal }
}

async fn strikes(ports: &HostPorts, host: &HostKey) -> Result<u32> {
    Ok(ports.control.host(host).await?.and_then(|host| host.backoff).map_or(0, |backoff| backoff.strikes))
}

/// A back-off holds for every worker, and voids slots that were reserved before.
pub async fn a_back_off_holds_for_every_worker(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let fresh = ask(&host, 5, 1);
    let slots = ports.hosts.reserve(&[fresh.clone(), fresh.clone()]).await?;
    let until = ports.hosts.push_back(&key(&host), &refusal(Some(20))).await?;
    assert!(is_about(until.wait_from(UnixMs::now()), 20));
    let held = Some(at(slots[1]));
    let slots = ports.hosts.reserve(&[with(&fresh, |request| request.held = held), fresh]).await?;
    assert!(is_about(wait(slots[0]), 20) && is_about(wait(slots[1]), 25), "{slots:?}");
    Ok(())
}

/// Refusals in a row double the back-off; those of requests that were in flight together count as one.
pub async fn refusals_in_a_row_double_the_back_off_and_those_at_once_count_once(
    ports: &HostPorts,
) -> Result<()> {
    let at_once = key(&unique("host"));
    ports.hosts.push_back(&at_once, &refusal(None)).await?;
    let first = ports.control.host(&at_once).await?.and_then(|host| host.backoff).expect("it backs off");
    let message = UnixMs::now();
    eventually(Duration::from_secs(10), async || Ok(UnixMs::now() > message)).await?;
    let until = ports.hosts.push_back(&at_once, &refusal(None)).await?;
    let again = ports.control.host(&at_once).await?.and_then(|host| host.backoff);
    assert_eq!((first.strikes, again), (1, Some(first)));
    assert!(is_about(until.since(first.until), 0), "{first:?} {until}");
    let (host, brief) = (key(&unique("host")), brief(100));
    ports.hosts.push_back(&host, &brief).await?;
    let before = strikes(ports, &host).await?;
    eventually(Duration::from_secs(10), async || {
        ports.hosts.push_back(&host, &brief).await?;
        Ok(strikes(ports, &host).await? > before + 2)
    })
    .await?;
    let state = ports.control.host(&host).await?.and_then(|host| host.backoff).expect("it backs off");
    let wait = state.until.since(state.since).as_millis() as u64;
    assert!(wait.abs_diff(100 << (state.strikes - 1)) <= 2, "{state:?}");
    Ok(())
}

/// An answer ends a streak of refusals, with and without a limit on requests in flight.
pub async fn an_answer_ends_a_streak_of_refusals(ports: &HostPorts) -> Result<()> {
    let name = unique("host");
    let host = key(&name);
    for token in [1, 2] {
        ports.hosts.push_back(&host, &brief(20)).await?;
        assert_eq!(strikes(ports, &host).await?, 1);
        if token == 1 {
            let has_gone = async || {
                let ask =
                    with(&ask(&name, 0, 1), |request| (request.pace.concurrency, request.token) = (2, token));
                Ok(one(ports, &ask).await? == Slot::Now)
            };
            eventually(Duration::from_secs(10), has_gone).await?;
        } else {
            let backoff =
                ports.control.host(&host).await?.and_then(|host| host.backoff).expect("it backs off");
            tokio::time::sleep(backoff.until.plus(Duration::from_millis(5)).wait_from(UnixMs::now())).await;
        }
        ports.hosts.leave(&[Ended { is_welcome: false, ..ended(&name, token) }]).await?;
        assert_eq!(strikes(ports, &host).await?, 1, "it did not answer as it should");
        ports.hosts.leave(&[ended(&name, token)]).await?;
        assert_eq!(strikes(ports, &host).await?, 0);
    }
    ports.hosts.push_back(&host, &brief(60_000)).await?;
    ports.hosts.leave(&[ended(&name, 3)]).await?;
    assert_eq!(
        strikes(ports, &host).await?,
        1,
        "what was under way beside a refusal says nothing of later ones"
    );
    Ok(())
}

/// A `Retry-After` is taken as it is: it is not doubled, and does not count as a refusal in a row.
pub async fn a_retry_after_is_taken_as_it_is(ports: &HostPorts) -> Result<()> {
    let host = key(&unique("host"));
    let timed = |millis| {
        let refusal = refusal(None);
        let asked = Some(Duration::from_millis(millis));
        BackoffRequest { terms: BackoffTerms { asked, ..refusal.terms }, ..refusal }
    };
    for _ in 0..5 {
        let until = ports.hosts.push_back(&host, &timed(10)).await?;
        tokio::time::sleep(until.plus(Duration::from_millis(5)).wait_from(UnixMs::now())).await;
    }
    let until = ports.hosts.push_back(&host, &refusal(None)).await?;
    assert!(is_about(until.wait_from(UnixMs::now()), 30));
    Ok(())
}

/// No back-off is longer than the settings allow, whatever the host asks for.
pub async fn no_back_off_is_longer_than_the_settings_allow(ports: &HostPorts) -> Result<()> {
    let host = key(&unique("host"));
    for asked in [u64::MAX / 2_000, 1] {
        let until = ports.hosts.push_back(&host, &refusal(Some(asked))).await?;
        assert!(is_about(until.wait_from(UnixMs::now()), 3_600));
    }
    Ok(())
}

/// A blocked host is not requested until it is unblocked, not even for a URL that holds a slot.
pub async fn a_blocked_host_is_not_asked_until_it_is_unblocked(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    let fresh = ask(&host, 0, 1);
    ports.control.block(&key(&host)).await?;
    let held = with(&fresh, |request| request.held = Some(UnixMs::now()));
    assert_eq!(ports.hosts.reserve(&[fresh.clone(), held]).await?, [Slot::Blocked; 2]);
    ports.control.block(&key(&host)).await?;
    assert!(ports.control.unblock(&key(&host)).await?);
    assert!(!ports.control.unblock(&key(&host)).await?);
    assert_eq!(one(ports, &fresh).await?, Slot::Now);
    Ok(())
}

/// Unblocking lifts a back-off: an operator overrules the host.
pub async fn unblocking_lifts_a_back_off(ports: &HostPorts) -> Result<()> {
    let host = unique("host");
    ports.hosts.push_back(&key(&host), &refusal(Some(3_600))).await?;
    assert!(ports.control.unblock(&key(&host)).await?);
    assert_eq!(one(ports, &ask(&host, 5, 1)).await?, Slot::Now);
    Ok(())
}

/// All that is known of a host can be read, in the list and alone.
pub async fn everything_known_of_a_host_can_be_listed(ports: &HostPorts) -> Result<()> {
    let (host, blocked) = (unique("host"), unique("blocked"));
    assert_eq!(ports.control.host(&key(&host)).await?, None);
    let fresh = with(&ask(&host, 8, 1), |request| request.pace.concurrency = 4);
    let other = with(&fresh, |request| request.token = 1);
    ports.hosts.reserve(&[fresh, other]).await?;
    ports.hosts.push_back(&key(&host), &refusal(Some(100))).await?;
    ports.control.block(&key(&blocked)).await?;
    let minute = || UnixMs::now().0 / 60_000;
    let before = minute();
    let state = ports.control.host(&key(&host)).await?.expect("it was asked");
    assert_eq!((state.interval, state.under_way, state.blocked), (Some(Duration::from_secs(8)), 1, None));
    assert!(state.requests == 1 || minute() > before, "one was let go: {state:?}");
    let backoff = state.backoff.expect("it backs off");
    assert_eq!((backoff.status, backoff.strikes), (429, 0), "the host named the time itself");
    assert!(state.next >= backoff.until);
    let listed = ports.control.hosts().await?;
    assert!(listed.is_sorted_by_key(|host| host.key.clone()));
    assert!(listed.contains(&state));
    let blocked = listed.iter().find(|state| state.key == key(&blocked)).expect("it is listed");
    assert!(blocked.blocked.is_some() && blocked.interval.is_none());
    Ok(())
}
