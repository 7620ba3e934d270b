//! Inputs for measuring single functions: URLs, a sitemap and pages like those of real sites.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The pages of Debian's package `rust-doc`.
const REAL_PAGES: &str = "/usr/share/doc/rust-doc/html/std";

/// Maximum number of bytes of pages that are used.
const PAGES_BYTES: usize = 4 << 20;

/// Returns URLs as sitemaps and pages write them: most are canonical, some have tracking parameters, some are odd.
pub fn urls(count: usize) -> Vec<String> {
    let url = |number: usize| {
        let (host, section) = (number % 97, ["products", "news/2026", "en/docs", "a"][number / 7 % 4]);
        let plain = format!("https://www.shop{host}.example/{section}/some-title-of-a-page-{number}");
        match number % 20 {
            0 => format!("{plain}?utm_source=newsletter&utm_medium=email&id={number}&fbclid=IwAR{number:x}"),
            1 => format!("HTTPS://WWW.Shop{host}.Example:443/{section}/./x/../page-{number}#reviews"),
            2 => format!("{plain}/Grüße?q=a b"),
            3..6 => format!("{plain}?page={host}&sort=price_asc"),
            6..8 => format!("  {plain}.html\n"),
            _ => plain,
        }
    };
    (0..count).map(url).collect()
}

/// Returns a sitemap with `entries` entries, each with the fields that sitemaps commonly have.
pub fn sitemap(entries: usize) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for url in urls(entries) {
        let loc = url.trim().replace('&', "&amp;");
        let _ = write!(
            text,
            "  <url>\n    <loc>{loc}</loc>\n    <lastmod>2026-10-17T08:25:31+00:00</lastmod>\n    \
             <changefreq>weekly</changefreq>\n    <priority>0.8</priority>\n  </url>\n"
        );
    }
    text + "</urlset>\n"
}

/// Returns some pages of Debian's `rust-doc` if it is installed, else made-up pages.
pub fn pages() -> Vec<Vec<u8>> {
    let mut files = html_files(Path::new(REAL_PAGES));
    files.sort();
    let mut bytes = 0;
    // The smallest ones are redirects without content.
    let real = files.into_iter().filter_map(|file| fs::read(file).ok()).filter(|page| page.len() > 1_024);
    let pages: Vec<Vec<u8>> = real
        .take_while(|page| {
            bytes += page.len();
            bytes < PAGES_BYTES
        })
        .collect();
    if pages.is_empty() { (0..128).map(made_up_page).collect() } else { pages }
}

fn html_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .flat_map(|path| match path.is_dir() {
            true => html_files(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "html"))
        .collect()
}

fn made_up_page(number: usize) -> Vec<u8> {
    let mut page = format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page {number} of a manual</title>\
         <meta name=\"description\" content=\"What page {number} says\">\
         <link rel=\"canonical\" href=\"https://manual.example/{number}.html\"></head><body><nav class=\"sidebar\"><ul>"
    );
    for link in 0..40 {
        let _ = write!(
            page,
            "<li><a class=\"link\" href=\"../chapter/{link}.html#s{number}\">Chapter {link}</a></li>"
        );
    }
    page.push_str("</ul></nav><main>");
    for paragraph in 0..number % 80 + 10 {
        let _ = write!(
            page,
            "<h2 id=\"s{paragraph}\">Section {paragraph}</h2><div class=\"docblock\"><p>A <em>paragraph</em> of \
             some length, with <code>code&lt;T&gt;</code> and <a href=\"struct.{paragraph}.html\">a link</a>, as \
             manuals have them, again and again.</p></div>"
        );
    }
    page.push_str("</main></body></html>");
    page.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sitemap_has_an_entry_for_each_url() {
        assert_eq!(sitemap(1_000).matches("<loc>").count(), 1_000);
    }

    #[test]
    fn made_up_pages_are_of_the_size_of_real_ones() {
        let bytes: usize = (0..128).map(|number| made_up_page(number).len()).sum();
        assert!((8_000..32_000).contains(&(bytes / 128)), "{}", bytes / 128);
    }
}
