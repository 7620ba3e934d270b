//! Resolves the URLs in a page.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use trawl_common::settings::Urls;
use trawl_common::web::url::{CanonicalUrl, MAX_URL_BYTES};
use url::{ParseError, Url};

/// The base of a page's links, the encoding of their queries (servers expect that of the page), and the settings that
/// decide which URLs are the same.
pub(crate) struct Base<'a> {
    url: Url,
    urls: &'a Urls,
    encoding: &'static Encoding,
}

impl<'a> Base<'a> {
    /// Returns the base of the page at `url`: its `<base>` element if that is usable, else `url` itself.
    pub(crate) fn new(
        base: Option<&str>,
        url: &CanonicalUrl,
        urls: &'a Urls,
        encoding: &'static Encoding,
    ) -> Self {
        let page = Self { url: url.to_url(), urls, encoding: encoding.output_encoding() };
        let base = base.and_then(|base| page.join(base)).filter(|base| !base.cannot_be_a_base());
        Self { url: base.unwrap_or(page.url), ..page }
    }

    /// Returns the target of a link, if it can be crawled, and the spelling in which it is written, if that is another.
    pub(crate) fn written_link(&self, link: &str) -> Option<(CanonicalUrl, Option<CanonicalUrl>)> {
        self.urls.spelled(self.join(link)?).ok()
    }

    /// Returns the target of a link, if it can be crawled.
    pub(crate) fn link(&self, link: &str) -> Option<CanonicalUrl> {
        self.written_link(link).map(|(url, _)| url)
    }

    /// Resolves a link of any scheme; HTTP and HTTPS URLs are made canonical. Returns `None` for an invalid link.
    pub(crate) fn resolve(&self, link: &str) -> Option<String> {
        if link.trim().is_empty() {
            return None;
        }
        let url = self.join(link)?;
        if matches!(url.scheme(), "http" | "https") {
            let url = CanonicalUrl::from_url(url).ok()?;
            return Some(self.urls.canonical(url).into());
        }
        Some(url.into()).filter(|url: &String| url.len() <= MAX_URL_BYTES)
    }

    /// Returns the canonical form of `url` under these settings.
    pub(crate) fn canonical(&self, url: &CanonicalUrl) -> CanonicalUrl {
        self.urls.canonical(url.clone())
    }

    /// Refuses long links: each join copies both the link and the base.
    fn join(&self, link: &str) -> Option<Url> {
        if link.len() > MAX_URL_BYTES { None } else { self.parse(link).ok() }
    }

    fn parse(&self, link: &str) -> Result<Url, ParseError> {
        if self.encoding == UTF_8 || link.is_ascii() {
            return self.url.join(link);
        }
        let encode: &dyn Fn(&str) -> Cow<'_, [u8]> = &|text| Cow::Owned(encoded(text, self.encoding));
        Url::options().base_url(Some(&self.url)).encoding_override(Some(encode)).parse(link)
    }
}

/// Encodes a part of a query. A character that the encoding lacks becomes a percent-encoded character reference, as in
/// the WHATWG URL standard.
fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    let mut encoder = encoding.new_encoder();
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    loop {
        // Enough room unless a character is unmappable.
        bytes.reserve(encoder.max_buffer_length_from_utf8_without_replacement(rest.len()).unwrap_or(0));
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = &rest[read..];
        match result {
            EncoderResult::Unmappable(character) => {
                bytes.extend(format!("%26%23{}%3B", u32::from(character)).into_bytes());
            }
            EncoderResult::InputEmpty | EncoderResult::OutputFull => return bytes,
        }
    }
}

/// Returns a link without its fragment, which is not part of a request.
pub(crate) fn without_fragment(link: &str) -> &str {
    link.split('#').next().unwrap_or(link)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{EUC_KR, ISO_2022_JP, SHIFT_JIS, UTF_16LE, WINDOWS_1251, WINDOWS_1252};

    use super::*;

    fn link(link: &str, encoding: &'static Encoding) -> String {
        let page = "http://a.example/dir/page".parse().unwrap();
        Base::new(None, &page, &Urls::default(), encoding).link(link).unwrap().to_string()
    }

    #[test]
    fn a_query_is_sent_in_the_encoding_of_its_page_and_a_path_in_utf_8() {
        for (encoding, query) in [
            (UTF_8, "%C3%A9"),
            (UTF_16LE, "%C3%A9"),
            (WINDOWS_1252, "%E9"),
            (WINDOWS_1251, "%26%23233%3B"),
            (ISO_2022_JP, "%26%23233%3B"),
        ] {
            assert_eq!(link("/é?é=a&b", encoding), format!("http://a.example/%C3%A9?{query}=a&b"));
        }
        assert_eq!(link("?q=日本", SHIFT_JIS), "http://a.example/dir/page?q=%93%FA%96{");
        assert_eq!(link("?q=한#é", EUC_KR), "http://a.example/dir/page?q=%C7%D1");
        assert_eq!(link("?q=あ", ISO_2022_JP), "http://a.example/dir/page?q=%1B$B$%22%1B(B");
        assert_eq!(link("?q=%C3%A9+a", WINDOWS_1252), "http://a.example/dir/page?q=%C3%A9+a");
    }

    #[test]
    fn a_link_is_asked_for_as_it_is_written() {
        let page = "http://a.example/dir/page".parse().unwrap();
        let urls = Urls::default();
        let base = Base::new(None, &page, &urls, UTF_8);
        for (link, url, written) in [
            ("/%7Ejoe", "http://a.example/~joe", Some("http://a.example/%7Ejoe")),
            (
                "?sig=a%2fb",
                "http://a.example/dir/page?sig=a%2Fb",
                Some("http://a.example/dir/page?sig=a%2fb"),
            ),
            ("/é%C3%A9", "http://a.example/%C3%A9%C3%A9", None),
            ("/x", "http://a.example/x", None),
            // What tracks visitors is not asked for in any spelling.
            ("/%7E?utm_source=x", "http://a.example/~", Some("http://a.example/%7E")),
        ] {
            let (found, spelling) = base.written_link(link).unwrap();
            assert_eq!(
                (found.as_str(), spelling.as_ref().map(CanonicalUrl::as_str)),
                (url, written),
                "{link}"
            );
        }
    }

    #[test]
    fn the_base_of_a_page_is_itself_in_the_encoding_of_the_page() {
        let page = "http://a.example/dir/page".parse().unwrap();
        let urls = Urls::default();
        let base = Base::new(Some("/b?é"), &page, &urls, WINDOWS_1252);
        assert_eq!(base.link("").unwrap().as_str(), "http://a.example/b?%E9");
        assert_eq!(base.link("x?é").unwrap().as_str(), "http://a.example/x?%E9");
    }
}
