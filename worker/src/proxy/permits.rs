//! Decides when a program may ask a host: by its spider's politeness, and in a slot of the host.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::host_schedules::HostPermit;
use trawl_common::politeness::gcra::QUANTUM;
use trawl_common::settings::HostPolicy;
use trawl_common::web::url::CanonicalUrl;

use super::refusal::Refusal;
use super::{HandlerProxy, User};
use crate::schedule::polite::NotAsked;

/// Maximum time that a request waits: slots are reserved half a minute ahead, and if there is a crawl it
/// always takes half of them.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Waits for a permit to request `url`, if its host's robots.txt allows that.
pub(super) async fn request(
    proxy: &Arc<HandlerProxy>,
    user: &Arc<User>,
    url: &CanonicalUrl,
) -> Result<(HostPolicy, HostPermit), Refusal> {
    let deadline = Instant::now() + PERMIT_TIMEOUT;
    wait(proxy, async {
        may_ask(proxy, user, url).await?;
        let policy = policy(proxy, user, url).await?;
        let permit = proxy.asker.permit(&user.own, &policy, &url.host(), deadline).await?;
        Ok((policy, permit))
    })
    .await
}

/// Returns the policy of the host of `url`, if its robots.txt allows a request that takes no slot.
pub(super) async fn without_slot(
    proxy: &Arc<HandlerProxy>,
    user: &Arc<User>,
    url: &CanonicalUrl,
) -> Result<HostPolicy, Refusal> {
    wait(proxy, async {
        may_ask(proxy, user, url).await?;
        policy(proxy, user, url).await
    })
    .await
}

/// Waits for a permit to connect to the host of `url`, or for a further exchange on a connection. The content
/// cannot be seen, so robots.txt does not apply.
pub(super) async fn exchange(
    proxy: &Arc<HandlerProxy>,
    user: &Arc<User>,
    url: &CanonicalUrl,
) -> Result<HostPermit, Refusal> {
    let deadline = Instant::now() + PERMIT_TIMEOUT;
    wait(proxy, async {
        may_ask(proxy, user, url).await?;
        let policy = user.own.politeness.host_policy(&url.host());
        proxy.asker.permit(&user.own, &policy, &url.host(), deadline).await
    })
    .await
}

async fn wait<T>(
    proxy: &HandlerProxy,
    asking: impl Future<Output = Result<T, NotAsked>>,
) -> Result<T, Refusal> {
    // A slot at the end of that time can be used.
    let asked =
        timeout(PERMIT_TIMEOUT + QUANTUM, asking).await.map_err(|_| Refusal::overdue(PERMIT_TIMEOUT))?;
    asked.map_err(|not_asked| {
        if let NotAsked::Port(error) = &not_asked {
            proxy.asker.schedules.health.abort(error.clone());
        }
        not_asked.into()
    })
}

/// Returns the policy of the host. A fetch of its robots.txt is completed, whether or not the program waits
/// for it.
async fn policy(
    proxy: &Arc<HandlerProxy>,
    user: &Arc<User>,
    url: &CanonicalUrl,
) -> Result<HostPolicy, NotAsked> {
    loop {
        if let Some(decided) = proxy.asker.policy(&user.own, url) {
            return decided;
        }
        let (proxy_of, user, origin) = (Arc::clone(proxy), Arc::clone(user), url.origin());
        let learning = proxy.tasks.spawn(async move {
            let learning = proxy_of.asker.learn(&user.own, &origin);
            proxy_of.stop.run_until_cancelled(learning).await
        });
        match learning.await {
            Ok(Some(learnt)) => learnt?,
            Ok(None) => return Err(broken_off("the worker stops")),
            Err(_) => return Err(broken_off("reading it made the worker panic")),
        }
    }
}

fn broken_off(why: &str) -> NotAsked {
    NotAsked::Failed(Failure::new(Class::Robots, format_args!("robots.txt is not known: {why}")))
}

/// Fails unless the settings allow requests to `url`, and it leads neither to the proxy nor to this process's
/// metrics.
async fn may_ask(proxy: &HandlerProxy, user: &User, url: &CanonicalUrl) -> Result<(), NotAsked> {
    user.passage.may_ask(url).await.map_err(NotAsked::Failed)?;
    let port = url.to_url().port_or_known_default().unwrap_or_default();
    let own = [proxy.known_address(), proxy.asker.settings.metrics.listen];
    let own: Vec<SocketAddr> = own.into_iter().flatten().filter(|own| own.port() == port).collect();
    if own.is_empty() {
        return Ok(());
    }
    let addresses = user.own.fetcher.addresses(&url.host()).await;
    let is_own = |address: &IpAddr| {
        is_of_this_machine(*address)
            && own.iter().any(|own| own.ip().is_unspecified() || reaches(*address, own.ip()))
    };
    match addresses.iter().any(is_own) {
        true => {
            Err(NotAsked::Failed(Failure::new(Class::Forbidden, format_args!("{url} is the worker itself"))))
        }
        false => Ok(()),
    }
}

/// Whether a connection to `address` may reach the listener at `own`. A connection to the unspecified address
/// reaches this machine.
fn reaches(address: IpAddr, own: IpAddr) -> bool {
    address.to_canonical() == own.to_canonical() || address.to_canonical().is_unspecified()
}

/// Whether an address is one of this machine's: the system lets a socket be bound to no other.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_which_addresses_are_of_this_machine() {
        for own in ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1", "0.0.0.0"] {
            assert!(is_of_this_machine(own.parse().unwrap()), "{own}");
        }
        assert!(!is_of_this_machine("192.0.2.1".parse().unwrap()));
        assert!(reaches("::ffff:127.0.0.1".parse().unwrap(), "127.0.0.1".parse().unwrap()));
    }
}
