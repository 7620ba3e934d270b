//! The test that a browser passes before it renders pages. A page tries each way to reach an address of this machine: the
//! proxy is asked for it, and nothing arrives there.

mod forbidden;
mod proxy;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use self::forbidden::Forbidden;
use self::proxy::Proxy;
use crate::browser::Browser;
use crate::tab::{PageError, Tab};

/// A page that tries each way to reach `ADDRESS`.
const PAGE: &str = include_str!("page.html");

/// Paths that the proxy has to be asked for: otherwise the page has tried nothing.
const TRIED: [&str; 5] = ["/fetch", "/frame", "/script", "/style", "/worker"];

/// Maximum time that the page may take.
const LIMIT: Duration = Duration::from_secs(15);

/// Has a browser load that page.
///
/// # Errors
/// Returns the reason why the browser may not render pages.
pub(crate) async fn run(browser: &Arc<Browser>) -> Result<(), String> {
    let forbidden = Forbidden::listen().map_err(|error| format!("cannot test Chromium: {error}"))?;
    let proxy = Proxy::start(PAGE, forbidden.address());
    let proxy = proxy.map_err(|error| format!("cannot test Chromium: {error}"))?;
    let loaded = timeout(LIMIT, load(browser, &proxy)).await;
    if forbidden.is_reached() {
        return Err("Chromium goes round its proxy here: it has reached an address by itself".to_owned());
    }
    match loaded {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(format!("Chromium fails its self-test: {error}")),
        Err(_) => return Err(format!("Chromium fails its self-test: it takes more than {LIMIT:?}")),
    }
    match TRIED.into_iter().find(|path| !proxy.was_asked_for(path)) {
        Some(path) => Err(format!("Chromium fails its self-test: it does not ask its proxy for {path}")),
        None => Ok(()),
    }
}

async fn load(browser: &Arc<Browser>, proxy: &Proxy) -> Result<(), PageError> {
    let mut tab = Tab::open_in(Arc::clone(browser), None, proxy.address(), "trawl").await?;
    tab.go(proxy::URL).await?;
    let loaded = tab.loaded();
    tab.during(async {
        loaded.cancelled().await;
        proxy.quiet().await;
    })
    .await
}
