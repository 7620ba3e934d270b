//! Names whose addresses an attacker chooses.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};

use futures::FutureExt;
use futures::future::BoxFuture;
use trawl_common::settings::ServerUrl;
use trawl_testkit::attacks::Section;

use super::*;

thread_local! {
    /// The number of lookups during the current attack.
    static LOOKUPS: Cell<usize> = const { Cell::new(0) };
}

/// A name server controlled by the attacker. 127.0.0.1 stands for a public address: settings allow it.
fn lookup(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    let times = LOOKUPS.replace(LOOKUPS.get() + 1);
    let addresses: &[&str] = match name.as_str() {
        "localhost" | "localhost." => &["127.0.0.2", "::1"],
        "metadata.google.internal" => &["169.254.169.254"],
        "mapped.example" => &["::ffff:10.0.0.1"],
        "nat64.example" => &["64:ff9b::10.0.0.1"],
        "mixed.example" => &["10.0.0.1", "127.0.0.1"],
        "rebinding.example" if times == 0 => &["127.0.0.1"],
        "rebinding.example" => &["127.0.0.2"],
        _ => &[],
    };
    let address = |text: &&str| SocketAddr::new(text.parse::<IpAddr>().unwrap(), 0);
    std::future::ready(Ok(addresses.iter().map(address).collect())).boxed()
}

fn guarded(settings: settings::Fetch) -> Fetcher {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let allow_networks = vec!["127.0.0.1".parse().unwrap()];
    Fetcher::with(&settings::Fetch { allow_networks, ..settings }, lookup, trust::tls().unwrap()).unwrap()
}

#[tokio::test]
async fn a_proxy_that_a_delivered_spider_names_is_where_pages_may_be() {
    let origin = serve(Router::new().route("/", get(|| async { "hello" }))).await;
    let (_, port) = origin.rsplit_once(':').unwrap();
    let through = |proxy: String, is_guarded: bool| {
        let url = ServerUrl::new(proxy);
        let proxy = Some(if is_guarded { url.guarded() } else { url });
        guarded(settings::Fetch { proxy, ..settings::Fetch::default() })
    };
    let page = CanonicalUrl::parse("http://page.example/").unwrap();
    for proxy in [
        format!("http://localhost:{port}"),
        format!("http://127.0.0.2:{port}"),
        "http://127.0.0.1:25".to_owned(),
        "http://metadata.google.internal".to_owned(),
        format!("http://mapped.example:{port}"),
        format!("socks5://127.0.0.2:{port}"),
    ] {
        let asked = through(proxy.clone(), true).ask(&page, &Validators::default()).await;
        let failure = asked.expect_err(&proxy);
        let why = failure.to_string();
        let is_refused = why.contains("is not a public address") || why.contains("fetch.ports");
        assert!(is_refused || failure.class == Class::Dns, "{proxy}: {why}");
        let connected = through(proxy.clone(), true).passage().unwrap().connect(&page).await;
        assert!(connected.is_err(), "{proxy}");
    }
    let allowed = through(format!("http://rebinding.example:{port}"), true);
    LOOKUPS.set(0);
    assert!(allowed.ask(&page, &Validators::default()).await.is_ok());
    let own = through(format!("http://127.0.0.2:{port}"), false).ask(&page, &Validators::default()).await;
    assert!(!own.is_err_and(|failure| failure.class == Class::Forbidden), "whoever has the machine chose it");
}

#[tokio::test]
async fn a_name_leads_nowhere_that_an_address_may_not() {
    const PRIVATE: &str = "forbidden: is not a public address";
    const PRIVATE_NAME: &str = "forbidden: is not a public name";
    let origin = serve(Router::new().route("/", get(|| async { "hello" }))).await;
    let (_, port) = origin.rsplit_once(':').unwrap();
    let proxy = Some(ServerUrl::new(origin.as_str()));
    let direct = guarded(settings::Fetch::default());
    let proxied = guarded(settings::Fetch { proxy, ..settings::Fetch::default() });
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Names");
    for (fetcher, attack, host, gets) in [
        (&direct, "a name with a loopback address", "localhost", PRIVATE),
        (&direct, "the same with a dot at its end", "localhost.", PRIVATE),
        (&direct, "the same with encoded letters", "%6cocal%68ost", PRIVATE),
        (&direct, "the same in wide letters", "\u{ff4c}\u{ff4f}calhost", PRIVATE),
        (&direct, "a name of the metadata service", "metadata.google.internal", PRIVATE),
        (&direct, "a name with an IPv4 address in IPv6", "mapped.example", PRIVATE),
        (&direct, "a name with a private address behind NAT64", "nat64.example", PRIVATE),
        (&direct, "a name without an address", "nowhere.example", "dns: no address"),
        (
            &direct,
            "a name with a private and a public address: the public one is asked",
            "mixed.example",
            "page: hello",
        ),
        (
            &proxied,
            "a name without an address here, which a proxy may know",
            "nowhere.example",
            "page: hello",
        ),
        (
            &proxied,
            "a name of the metadata service, through a proxy",
            "metadata.google.internal",
            PRIVATE_NAME,
        ),
        (&proxied, "a name without a dot, through a proxy", "intranet", PRIVATE_NAME),
        (
            &direct,
            "rebinding: a name that is public when first looked up and private ever after",
            "rebinding.example",
            "page: hello",
        ),
    ] {
        LOOKUPS.set(0);
        let got = match fetcher.fetch(&format!("http://{host}:{port}/").parse().unwrap()).await {
            Ok(page) => format!("page: {}", String::from_utf8_lossy(&page.body)),
            Err(failure) => failure.to_string(),
        };
        section.tried(attack, gets, &got);
    }
    section.check();
}
