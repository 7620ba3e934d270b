//! The command line of Chromium. What it would do by itself is turned off, and so is each way to the network but the
//! proxy of a page.

use crate::Chromium;

/// Becomes Chromium, with its end of the pipe where it expects it: a supervised program has it as standard input and
/// output. Its profile is in the run's own folder.
const SCRIPT: &str =
    r#"HOME=$TMPDIR exec "$0" --user-data-dir="$TMPDIR/profile" "$@" 3<&0 4>&1 </dev/null >&2"#;

/// The unit of the memory that a process may reserve, and the least that all do with, in bytes.
const PART: u64 = 64 << 20;
const MIN_RESERVABLE: u64 = 16 * PART;

/// Returns the script that becomes a browser with at most so much memory. One of its processes gets half of that at
/// most: a page that wants more fails before the browser does.
pub(crate) fn script(memory: u64) -> String {
    let most = (memory / 2).max(MIN_RESERVABLE) / PART * PART;
    format!("ulimit -d {} && {SCRIPT}", most >> 10)
}

/// The proxy of all that belongs to no page: nothing listens there.
const NOWHERE: &str = "--proxy-server=http://127.0.0.1:9";

/// The arguments of every browser.
const ALWAYS: [&str; 31] = [
    "--headless",
    "--remote-debugging-pipe",
    // Ways to the network.
    NOWHERE,
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--disable-features=AutofillServerCommunication,CertificateTransparencyComponentUpdater,DnsOverHttps,\
     HttpsFirstBalancedMode,HttpsUpgrades,MediaRouter,OptimizationHints,Translate,WebRtcHideLocalIpsWithMdns",
    // Requests that would be refused.
    "--blink-settings=imagesEnabled=false",
    // Nobody looks at it.
    "--block-new-web-contents",
    "--deny-permission-prompts",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--password-store=basic",
    "--window-size=1280,1024",
    // Pages are never in view.
    "--disable-renderer-backgrounding",
    // Containers have little of it.
    "--disable-dev-shm-usage",
];

/// Returns the arguments of a browser that trusts certificates for the key whose hash is `spki`, whoever they name.
pub(crate) fn arguments(chromium: &Chromium, spki: &str) -> Vec<String> {
    let trusted = format!("--ignore-certificate-errors-spki-list={spki}");
    let sandbox = (!chromium.sandbox).then_some("--no-sandbox");
    ALWAYS.into_iter().chain(sandbox).map(str::to_owned).chain([trusted]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_gets_half_of_the_memory_in_whole_parts_or_as_much_as_it_needs() {
        let limit = |memory| script(memory).split_whitespace().nth(2).unwrap().to_owned();
        assert_eq!([4_000_000_000, 1_000_000_000].map(limit), ["1900544", "1048576"]);
    }
}
