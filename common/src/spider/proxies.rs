//! `[proxies]` of a spider.

use crate::settings::ServerUrl;

/// The proxies among which a spider's requests are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxies {
    /// Their addresses: `http://user:password@host:port`, or `socks5://`.
    pub urls: Vec<ServerUrl>,
    /// The requests that go through the same one.
    pub per: ProxyPer,
}

/// The requests that go through the same proxy, as long as it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum ProxyPer {
    /// All requests for a host, on all workers.
    #[default]
    Host,
    /// All requests of the spider, on all workers: with a session, sites see one client.
    Spider,
    /// Each request goes through the next one.
    Request,
}
