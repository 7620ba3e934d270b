//! The type of a downloaded file, and the properties that its beginning shows.

use std::panic::{AssertUnwindSafe, catch_unwind};

use trawl_common::web::sniff::{MediaKind, essence, is_html, is_of};
use trawl_common::web::url::CanonicalUrl;

/// Number of the first bytes of a file that decide about its type.
pub const SNIFFED: usize = 8 * 1024;

/// Types of bytes of which nothing is known.
const UNKNOWN: &str = "application/octet-stream";

/// Formats that other formats are made of: a `Content-Type` that names one of those says more.
const CONTAINERS: [&str; 5] =
    ["application/zip", "application/gzip", "application/x-ole-storage", "application/x-bzip2", "text/xml"];

/// The usual endings of types that the first bytes do not show.
const ENDINGS: [(&str, &str); 9] = [
    ("text/html", "html"),
    ("application/xhtml+xml", "html"),
    ("text/plain", "txt"),
    ("text/csv", "csv"),
    ("text/css", "css"),
    ("application/json", "json"),
    ("application/xml", "xml"),
    ("text/xml", "xml"),
    ("image/svg+xml", "svg"),
];

/// Maximum length of an ending that is taken from a URL.
const MAX_ENDING: usize = 8;

/// The type of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileType {
    /// The media type, without parameters: `image/png`.
    pub media: String,
    /// The usual ending of its name, in lower case.
    pub ending: String,
}

impl FileType {
    /// Decides about the type of a file from `url` with this `Content-Type` and these first bytes, at most [`SNIFFED`].
    /// The bytes decide if they show the type: servers call anything `image/jpeg`, pages that say an image is gone
    /// included. Formats that others are made of, such as ZIP, do not show it.
    pub fn new(content_type: Option<&str>, url: &CanonicalUrl, start: &[u8]) -> Self {
        let said = content_type.and_then(essence).map(str::to_ascii_lowercase);
        let said = said.filter(|said| said != UNKNOWN && said != "binary/octet-stream");
        // Formats of text are recognised by what any text may begin with.
        let found = infer::get(start).filter(|found| found.mime_type() != "text/x-shellscript");
        let found = found.filter(|found| found.matcher_type() != infer::MatcherType::Text);
        let is_container = |media: &str| CONTAINERS.contains(&media);
        match (found, said) {
            (Some(found), None) => Self::known(found.mime_type(), found.extension()),
            (Some(found), Some(said)) if !is_container(found.mime_type()) => {
                // An alias of the type found is as good, and what people wrote into `types`.
                let media = if is_alias(&said, found.mime_type()) { &said } else { found.mime_type() };
                Self::known(media, found.extension())
            }
            (Some(found), Some(said)) => {
                let is_same = said == found.mime_type();
                let ending = if is_same { None } else { url_ending(url) };
                let ending = ending.unwrap_or_else(|| found.extension().to_owned());
                Self { media: said, ending }
            }
            (None, said) => {
                let is_text = |said: &str| MediaKind::new(Some(said)) != MediaKind::Other;
                let is_page = is_html(None, start) && !said.as_deref().is_some_and(is_text);
                let media = if is_page { "text/html".to_owned() } else { said.unwrap_or(UNKNOWN.to_owned()) };
                let usual = ENDINGS.iter().find(|(known, _)| *known == media);
                let ending = usual.map(|(_, ending)| (*ending).to_owned()).or_else(|| url_ending(url));
                Self { media, ending: ending.unwrap_or_else(|| "bin".to_owned()) }
            }
        }
    }

    fn known(media: &str, ending: &str) -> Self {
        Self { media: media.to_owned(), ending: ending.to_owned() }
    }

    /// Whether the file has one of these types, as `image/png` or `image/*`; any if there are none.
    pub fn is_one_of(&self, types: &[String]) -> bool {
        types.is_empty() || types.iter().any(|wanted| is_of(&self.media, wanted))
    }
}

/// Whether two names differ only by the `x-` of types that were not registered: `image/x-icon`.
fn is_alias(one: &str, other: &str) -> bool {
    let plain = |media: &str| media.replacen("/x-", "/", 1).replacen("/vnd.", "/", 1);
    plain(one) == plain(other)
}

/// Returns the ending of the path of a URL, in lower case, if it looks like one.
fn url_ending(url: &CanonicalUrl) -> Option<String> {
    let path = url.as_str().split(['?', '#']).next()?.splitn(4, '/').nth(3)?;
    let (stem, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
    let looks =
        !stem.is_empty() && ending.len() <= MAX_ENDING && ending.bytes().all(|c| c.is_ascii_alphanumeric());
    (looks && !ending.is_empty()).then(|| ending.to_ascii_lowercase())
}

/// Returns the width and height in pixels of an image that begins with these bytes; `None` if they do not show it.
pub fn image_size(start: &[u8]) -> Option<(u64, u64)> {
    // What is read here is written by strangers.
    let size = catch_unwind(AssertUnwindSafe(|| imagesize::blob_size(start))).ok()?.ok()?;
    Some((size.width as u64, size.height as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0";

    fn of(content_type: &str, path: &str, start: &[u8]) -> (String, String) {
        let url = format!("http://a.example/{path}").parse().unwrap();
        let FileType { media, ending } =
            FileType::new(Some(content_type).filter(|it| !it.is_empty()), &url, start);
        (media, ending)
    }

    #[test]
    fn the_first_bytes_decide_where_they_show_the_type_and_the_header_elsewhere() {
        for (content_type, path, start, media, ending) in [
            ("image/jpeg", "a.php?x=1.gif", PNG, "image/png", "png"),
            ("", "a", PNG, "image/png", "png"),
            ("image/png; x", "a.jpeg", PNG, "image/png", "png"),
            ("application/pdf", "a", b"%PDF-1.7\n", "application/pdf", "pdf"),
            ("application/epub+zip", "a.epub", b"PK\x03\x04....", "application/epub+zip", "epub"),
            ("application/octet-stream", "a.epub", b"PK\x03\x04....", "application/zip", "zip"),
            ("image/jpeg", "a.jpg", b"<!DOCTYPE html><p>gone", "text/html", "html"),
            ("application/octet-stream", "a.DAT", b"\x01\x02", "application/octet-stream", "dat"),
            ("text/csv", "list", b"a,b", "text/csv", "csv"),
            ("application/x-thing", "a.tar/", b"xyz", "application/x-thing", "bin"),
            ("text/plain", "a.txt", b"#!/bin/sh", "text/plain", "txt"),
            ("image/svg+xml", "a", b"<svg xmlns=", "image/svg+xml", "svg"),
            ("", "", b"", "application/octet-stream", "bin"),
        ] {
            assert_eq!(
                of(content_type, path, start),
                (media.to_owned(), ending.to_owned()),
                "{content_type} {path}"
            );
        }
    }

    #[test]
    fn an_image_has_a_size_and_a_type_of_its_kind() {
        assert_eq!(image_size(PNG), Some((2, 3)));
        assert_eq!(image_size(b"%PDF"), None);
        let png = FileType::known("image/png", "png");
        let types = |types: &[&str]| types.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        assert!(png.is_one_of(&[]) && png.is_one_of(&types(&["text/html", "image/*"])));
        assert!(!png.is_one_of(&types(&["image/jpeg", "application/*"])));
    }

    const HEADS: [&[u8]; 7] =
        [b"", PNG, b"GIF89a", b"\xff\xd8\xff", b"RIFF____WEBPVP8X", b"II*\0", b"\0\0\0\x18ftypheic"];

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            head in prop::sample::select(HEADS.to_vec()),
            rest in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let bytes = [head, &rest].concat();
            image_size(&bytes);
            let url = "http://a.example/a".parse().unwrap();
            prop_assert!(!FileType::new(None, &url, &bytes).media.is_empty());
        }
    }
}
