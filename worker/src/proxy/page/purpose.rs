//! The purposes of a browser's requests, by the fields that tell them (Fetch Metadata). Over plain HTTP a browser sends
//! none of these to other machines, so `Accept` and the path tell them there.

use hyper::header::{ACCEPT, UPGRADE};
use hyper::{HeaderMap, Request};

/// The purpose of a request that is sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The document of the page itself.
    Document,
    /// A document of the page itself or of a frame: which one does not show.
    AnyDocument,
    /// The document of a frame, or data that a script asks for.
    Data,
    /// A script or a style sheet, which the page needs to show anything.
    Part,
}

const REFUSED_PICTURE: &str = "a browser gets no images, fonts, sounds and videos";
const REFUSED_AHEAD: &str = "nothing is fetched ahead";
const REFUSED_OPEN: &str = "a page gets no connection that stays open";
const REFUSED_OTHER: &str = "no page needs it";

/// Returns the purpose of a request.
///
/// # Errors
/// Returns the reason why it is not sent on.
pub(super) fn purpose<B>(request: &Request<B>) -> Result<Purpose, &'static str> {
    let fields = request.headers();
    if fields.contains_key(UPGRADE) || text(fields, ACCEPT.as_str()).starts_with("text/event-stream") {
        return Err(REFUSED_OPEN);
    }
    let is_ahead = |name| text(fields, name).starts_with("prefetch");
    if is_ahead("sec-purpose") || is_ahead("purpose") {
        return Err(REFUSED_AHEAD);
    }
    let is_download =
        text(fields, "sec-fetch-mode") == "navigate" && text(fields, "sec-fetch-dest") == "empty";
    if is_download || fields.contains_key("ping-to") {
        return Err(REFUSED_OTHER);
    }
    match text(fields, "sec-fetch-dest") {
        "" => by_accept(text(fields, ACCEPT.as_str()), request.uri().path()),
        "document" => Ok(Purpose::Document),
        "iframe" | "frame" | "fencedframe" | "empty" | "json" => Ok(Purpose::Data),
        "script" | "style" | "worker" | "sharedworker" | "serviceworker" | "xslt" => Ok(Purpose::Part),
        "image" | "font" | "audio" | "video" | "track" | "embed" | "object" => Err(REFUSED_PICTURE),
        _ => Err(REFUSED_OTHER),
    }
}

/// Returns the purpose of a request over plain HTTP. What remains unclear waits for a slot, as data does.
fn by_accept(accept: &str, path: &str) -> Result<Purpose, &'static str> {
    let is_script = [".js", ".mjs"].iter().any(|end| path.ends_with(end));
    match accept {
        _ if accept.starts_with("text/html") => Ok(Purpose::AnyDocument),
        _ if accept.starts_with("text/css") => Ok(Purpose::Part),
        _ if accept.starts_with("image/") => Err(REFUSED_PICTURE),
        "*/*" if is_script => Ok(Purpose::Part),
        _ => Ok(Purpose::Data),
    }
}

fn text<'a>(fields: &'a HeaderMap, name: &str) -> &'a str {
    fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(uri: &str, fields: &[(&str, &str)]) -> Result<Purpose, &'static str> {
        let mut request = Request::get(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        purpose(&request.body(()).unwrap())
    }

    #[test]
    fn a_browser_says_what_it_asks_for() {
        let asks_for = |what| of("https://a.example/x", &[("sec-fetch-dest", what), ("accept", "*/*")]);
        assert_eq!(asks_for("document"), Ok(Purpose::Document));
        assert_eq!(["iframe", "empty"].map(asks_for), [Ok(Purpose::Data); 2]);
        assert_eq!(["script", "style", "serviceworker"].map(asks_for), [Ok(Purpose::Part); 3]);
        assert_eq!(["image", "font", "video"].map(asks_for), [Err(REFUSED_PICTURE); 3]);
        assert_eq!(["report", "webidentity", "something-new"].map(asks_for), [Err(REFUSED_OTHER); 3]);
        for other in [("sec-fetch-mode", "navigate"), ("ping-to", "https://a.example/")] {
            assert_eq!(of("https://a.example/", &[("sec-fetch-dest", "empty"), other]), Err(REFUSED_OTHER));
        }
    }

    #[test]
    fn over_plain_http_it_shows_by_what_is_accepted_and_what_does_not_show_waits_for_a_slot() {
        let asks_for = |path: &str, accept| of(&format!("http://a.example{path}"), &[("accept", accept)]);
        assert_eq!(asks_for("/", "text/html,application/xhtml+xml"), Ok(Purpose::AnyDocument));
        assert_eq!(asks_for("/style", "text/css,*/*;q=0.1"), Ok(Purpose::Part));
        assert_eq!(asks_for("/app.js", "*/*"), Ok(Purpose::Part));
        assert_eq!(asks_for("/data", "*/*"), Ok(Purpose::Data));
        assert_eq!(asks_for("/a.png", "image/avif,image/webp,*/*;q=0.8"), Err(REFUSED_PICTURE));
    }

    #[test]
    fn nothing_is_fetched_ahead_or_stays_open() {
        for ahead in ["prefetch", "prefetch;prerender"] {
            let fields = [("sec-purpose", ahead), ("sec-fetch-dest", "document")];
            assert_eq!(of("https://a.example/", &fields), Err(REFUSED_AHEAD));
        }
        let open = [[("upgrade", "websocket")], [("accept", "text/event-stream")]];
        assert_eq!(open.map(|fields| of("https://a.example/", &fields)), [Err(REFUSED_OPEN); 2]);
    }
}
