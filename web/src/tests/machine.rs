//! Resources that this machine lacks are no failure of a host.

use std::io;
use std::net::{IpAddr, SocketAddr};

use futures::FutureExt;
use futures::future::BoxFuture;
use rustix::io::Errno;

use super::*;
use crate::resolver::NoResolver;

fn lookup(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    let error = match name.as_str() {
        "no-resolver.example" => io::Error::other(NoResolver),
        "no-files.example" => Errno::MFILE.into(),
        "no-threads.example" => Errno::AGAIN.into(),
        _ => io::Error::other("Name or service not known"),
    };
    std::future::ready(Err(error)).boxed()
}

#[tokio::test]
async fn a_name_that_this_machine_cannot_look_up_is_not_to_blame() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let fetcher = Fetcher::with(&settings(), lookup, trust::tls().unwrap()).unwrap();
    for (name, class, part) in [
        ("no-resolver", Class::Machine, "/etc/resolv.conf"),
        ("no-files", Class::Machine, "ulimit -n"),
        ("no-threads", Class::Machine, ""),
        ("unknown", Class::Dns, "not known"),
    ] {
        let url = format!("http://{name}.example/").parse().unwrap();
        let failure = fetcher.fetch(&url).await.unwrap_err();
        assert!(failure.class == class && failure.detail.contains(part), "{name}: {failure}");
        let failure = fetcher.passage().unwrap().connect(&url).await.unwrap_err();
        assert_eq!(failure.class, class, "{name}: {failure}");
    }
}

#[test]
fn a_port_is_lacking_only_where_there_is_an_address_to_ask_from() {
    let error = io::Error::from(Errno::ADDRNOTAVAIL);
    let failure = |address: &str| crate::machine::failure(&error, &[address.parse::<IpAddr>().unwrap()]);
    assert_eq!(failure("127.0.0.1").unwrap().class, Class::Machine);
    // An ordinary socket can never send there, just as a machine without IPv6 cannot send to an IPv6 address.
    assert_eq!(failure("255.255.255.255"), None);
}
