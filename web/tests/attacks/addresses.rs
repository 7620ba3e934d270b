//! URLs of forbidden addresses. Nothing listens there, so a request that is sent fails in another way.

use trawl_common::settings::Fetch;
use trawl_common::web::url::CanonicalUrl;
use trawl_testkit::attacks::Section;

use crate::{fetcher, page, shown};

const PRIVATE: &str = "forbidden: is not a public address";

async fn try_all(title: &'static str, urls: &[(&str, &str)]) {
    let fetcher = fetcher(&Fetch::default());
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), title);
    for &(url, gets) in urls {
        let got = match CanonicalUrl::parse(url) {
            Ok(canonical) => shown(page(&fetcher, &canonical).await),
            Err(reason) => format!("no URL: {reason}"),
        };
        let escaped: String = url.chars().flat_map(char::escape_default).collect();
        section.tried(&format!("`{escaped}`"), gets, &got);
    }
    section.check();
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_asked() {
    try_all(
        "Addresses",
        &[
            ("http://127.0.0.1/", PRIVATE),
            ("http://127.1/", PRIVATE),
            ("http://2130706433/", PRIVATE),
            ("http://0x7f000001/", PRIVATE),
            ("http://0x7f.1/", PRIVATE),
            ("http://0177.0.0.1/", PRIVATE),
            ("http://017700000001/", PRIVATE),
            ("http://127.0.0.1./", PRIVATE),
            ("http://%31%32%37.0.0.1/", PRIVATE),
            ("http://127%2e0%2e0%2e1/", PRIVATE),
            ("http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", PRIVATE),
            ("http://127\u{3002}0\u{3002}0\u{3002}1/", PRIVATE),
            ("http://\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}/", PRIVATE),
            ("http://127.0.0.\u{ad}1/", PRIVATE),
            ("http://127.0.0.1\\@example.com/", PRIVATE),
            ("http://0/", PRIVATE),
            ("http://0.0.0.0/", PRIVATE),
            ("http://10.0.0.1/", PRIVATE),
            ("http://172.16.0.1/", PRIVATE),
            ("http://192.168.1.1/", PRIVATE),
            ("http://100.64.0.1/", PRIVATE),
            ("http://169.254.169.254/latest/meta-data/", PRIVATE),
            ("http://2852039166/", PRIVATE),
            ("http://100.100.100.200/", PRIVATE),
            ("http://168.63.129.16/", PRIVATE),
            ("http://192.0.0.192/", PRIVATE),
            ("http://224.0.0.1/", PRIVATE),
            ("http://255.255.255.255/", PRIVATE),
            ("http://[::]/", PRIVATE),
            ("http://[::1]/", PRIVATE),
            ("http://[0:0:0:0:0:0:0:1]/", PRIVATE),
            ("http://[::ffff:127.0.0.1]/", PRIVATE),
            ("http://[::ffff:7f00:1]/", PRIVATE),
            ("http://[::127.0.0.1]/", PRIVATE),
            ("http://[64:ff9b::127.0.0.1]/", PRIVATE),
            ("http://[64:ff9b:1::127.0.0.1]/", PRIVATE),
            ("http://[2002:7f00:1::]/", PRIVATE),
            ("http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", PRIVATE),
            ("http://[fe80::1]/", PRIVATE),
            ("http://[fd00:ec2::254]/", PRIVATE),
            ("http://[ff02::1]/", PRIVATE),
            ("http://[fe80::1%25eth0]/", "no URL: not an absolute URL: invalid IPv6 address"),
            ("http://256.0.0.1/", "no URL: not an absolute URL: invalid IPv4 address"),
            ("http://1.2.3.4.5/", "no URL: not an absolute URL: invalid IPv4 address"),
            ("http://example.com@127.0.0.1/", "no URL: credentials in the URL"),
            (
                "http://127.0.0.1%00.example.com/",
                "no URL: not an absolute URL: invalid international domain name",
            ),
            ("file:///etc/passwd", "no URL: scheme `file` is not http or https"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_port_that_settings_do_not_name_is_not_asked() {
    try_all(
        "Ports",
        &[
            ("http://8.8.8.8:22/", "forbidden: port 22 is not among `fetch.ports`"),
            ("http://8.8.8.8:25/", "forbidden: port 25 is not among `fetch.ports`"),
            ("http://8.8.8.8:0/", "forbidden: port 0 is not among `fetch.ports`"),
            ("http://8.8.8.8:00022/", "forbidden: port 22 is not among `fetch.ports`"),
            ("https://8.8.8.8:465/", "forbidden: port 465 is not among `fetch.ports`"),
            ("http://8.8.8.8:65558/", "no URL: not an absolute URL: invalid port number"),
        ],
    )
    .await;
}
