//! URLs in a form that others may see. They have neither user nor password: trawl takes in none that has.

use url::Url;

use crate::web::url::CanonicalUrl;

/// Prefixes and suffixes of parameters whose values are secrets: OpenTelemetry's own list (`sig`, `signature`,
/// `awsaccesskeyid`), and names that sites use.
const SECRETS: [&str; 10] =
    ["sig", "signature", "accesskeyid", "token", "secret", "password", "passwd", "key", "auth", "session"];

/// The replacement for a secret.
const REDACTED: &str = "REDACTED";

/// Returns the URL, with the values of parameters replaced that look like secrets.
pub(super) fn without_secrets(url: &CanonicalUrl) -> String {
    let Some((page, query)) = url.as_str().split_once('?') else { return url.as_str().to_owned() };
    let parameter = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={REDACTED}"),
        _ => parameter.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(parameter).collect();
    format!("{page}?{}", query.join("&"))
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRETS.iter().any(|secret| name.starts_with(secret) || name.ends_with(secret))
}

/// Returns the port of a URL's host.
pub(super) fn port(url: &CanonicalUrl) -> Option<u16> {
    Url::parse(url.as_str()).ok()?.port_or_known_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_left_out_and_all_else_is_as_it_was() {
        let shown = |url: &str| without_secrets(&url.parse().unwrap());
        assert_eq!(shown("https://a.example/b?q=1&p=2"), "https://a.example/b?q=1&p=2");
        let secret =
            "https://a.example/?X-Amz-Signature=1&api_key=2&Access_Token=3&auth=4&page=5&sessionid=6&keyword";
        let expected = "https://a.example/?X-Amz-Signature=REDACTED&api_key=REDACTED&Access_Token=REDACTED&auth=REDACTED&page=5&sessionid=REDACTED&keyword";
        assert_eq!(shown(secret), expected);
    }
}
