//! Hostile hosts of a synthetic web.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The behavior of a hostile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Hostile {
    /// Pages with 9,000 links to pages of their own host.
    LinksToItself,
    /// Pages with 9,000 links, each to another private address.
    LinksToPrivateAddresses,
    /// Pages with 9,000 links, each to another name that does not exist.
    LinksToNoHosts,
    /// Interim responses (1xx) without end, whatever the request.
    InterimAnswers,
    /// Pages that take 20 s, and many of them.
    SlowPages,
}

/// Number of links of a page.
const LINKS: usize = 9_000;

/// How long a slow page takes.
const SLOW: Duration = Duration::from_secs(20);

impl Hostile {
    /// How many pages a host has.
    pub fn pages(self) -> usize {
        if self == Self::SlowPages { 500 } else { 5 }
    }

    /// How long each takes.
    pub(crate) fn latency(self) -> Duration {
        if self == Self::SlowPages { SLOW } else { Duration::ZERO }
    }

    /// The page of this number, of the host of this number.
    pub(crate) fn page(self, host: usize, page: usize) -> String {
        let link = |link: usize| match self {
            Self::LinksToItself | Self::InterimAnswers | Self::SlowPages => format!("/deep/{page}/{link}"),
            Self::LinksToPrivateAddresses => {
                let [_, second, high, low] =
                    Ipv4Addr::from_bits(((host * 16 + page) << 16 | link) as u32).octets();
                format!("http://10.{second}.{high}.{low}/")
            }
            Self::LinksToNoHosts => format!("http://h{link}.p{page}.host{host}.invalid/"),
        };
        let count = if self == Self::SlowPages { 0 } else { LINKS };
        let links: String =
            (0..count).map(|number| format!("<a href=\"{}\">x</a>\n", link(number))).collect();
        format!("<!doctype html><html lang=\"en\"><title>Page {page}</title>{links}</html>\n")
    }
}

/// Sends interim responses on each connection for as long as it lasts.
pub(crate) async fn flood(listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(flood_one(connection));
    }
}

async fn flood_one(mut connection: TcpStream) -> std::io::Result<()> {
    connection.read_buf(&mut Vec::new()).await?;
    let answers = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(1_000);
    loop {
        connection.write_all(&answers).await?;
        // At the speed of a good connection, rather than of this machine.
        sleep(Duration::from_millis(1)).await;
    }
}
