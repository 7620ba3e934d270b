//! Redirects that lead where nobody may be asked, or nowhere.

use crate::server::Script;
use crate::{attack, settings, try_all};

const PRIVATE: &str = "forbidden: is not a public address";

#[tokio::test]
async fn a_redirect_leads_nowhere_that_a_url_may_not() {
    let to = |name, location: &str, gets| attack(name, Script::redirect(location), gets);
    let attacks = vec![
        to("to the metadata service", "http://169.254.169.254/latest/meta-data/", PRIVATE),
        to("to a private address", "http://10.0.0.1/", PRIVATE),
        to("to another loopback address", "http://127.0.0.2/", PRIVATE),
        to("to loopback by IPv6", "http://[::1]/", PRIVATE),
        to("to the metadata service as one number", "//2852039166/", PRIVATE),
        to("to a private address without a scheme", "//10.0.0.1/", PRIVATE),
        to("to a private address with backslashes", "\\\\10.0.0.1\\", PRIVATE),
        to("to a private address with a tab inside", "http://10.0\t.0.1/", PRIVATE),
        to(
            "to a port that may not be asked",
            "http://8.8.8.8:22/",
            "forbidden: port 22 is not among `fetch.ports`",
        ),
        to("to a file", "file:///etc/passwd", "redirect: scheme `file` is not http or https"),
        to("to a script", "javascript:alert(1)", "redirect: scheme `javascript` is not http or https"),
        to("to data", "data:text/html,hello", "redirect: scheme `data` is not http or https"),
        to(
            "to another protocol",
            "gopher://example.com/_x",
            "redirect: scheme `gopher` is not http or https",
        ),
        to(
            "to a host with credentials",
            "http://user:secret@example.com/",
            "redirect: credentials in the URL",
        ),
        to("to a URL without a host", "http://", "redirect: empty host"),
        to("to itself", "/", "redirect: redirected in a circle"),
        to("in a circle of two", "/?a", "redirect: redirected in a circle"),
        to("to ever new URLs", "on/", "redirect: more than 10 redirects"),
        to("to a path with an encoded line break", "/%0d%0aX-Injected:1", "redirect: /%0d%0aX-Injected:1"),
        to(
            "to a path with a raw line break: the next line is another header",
            "/a\r\nX-Injected: 1",
            "redirect: in a circle",
        ),
        to("to a path with a bare carriage return", "/a\rX-Injected: 1", "http: 302"),
        to("to a URL of 100 KB", &"x".repeat(100_000), "redirect: longer than 8192 bytes"),
        to("to a URL of 1 MB", &"x".repeat(1_000_000), "size: message head is too large"),
        attack("to a path that is not UTF-8", Script::redirect(b"/\xff\xfe"), "redirect: /%FF%FE"),
        to("to two targets, the first private", "http://10.0.0.1/\r\nlocation: http://8.8.8.8/", PRIVATE),
    ];
    try_all("Redirects", &settings(), attacks).await;
}
