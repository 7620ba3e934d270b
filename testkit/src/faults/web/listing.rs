//! The lists of a site's pages: its sitemaps, and the lists of tasks.

use std::ops::Range;

use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::{Shared, number};

/// Maximum number of URLs in one sitemap, and of tasks in one list.
const SITEMAP: usize = 50;

impl Shared {
    /// Returns the sitemap or list of this path once the crawl has caught up with it, or `None` if there is none.
    pub(super) async fn listing(&self, path: &str) -> Option<Response> {
        if path == "/sitemap.xml" {
            return Some(xml(self.index()));
        }
        if let Some(number) = number(path, "/sitemap-", ".xml") {
            self.caught_up(number).await;
            return Some(xml(self.sitemap(number)));
        }
        let number = number(path, "/tasks-", ".jsonl")?;
        self.caught_up(number).await;
        Some(self.list(number).into_response())
    }

    fn index(&self) -> String {
        let log = self.log.lock();
        let entry = |number| format!("<sitemap><loc>{}/sitemap-{number}.xml</loc></sitemap>\n", self.origin);
        // Like a site that lists its news: a producer that reads it after Redis forgot everything finds the pages left.
        let is_new = |number: &usize| self.pages_of(*number).any(|page| !log.times.contains_key(&page));
        let count = self.pages.len().div_ceil(self.share());
        let entries: String = (0..count).filter(is_new).map(entry).collect();
        format!(
            "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</sitemapindex>\n"
        )
    }

    fn sitemap(&self, number: usize) -> String {
        let entry = |page: usize| format!("<url><loc>{}</loc></url>\n", self.pages[page].url);
        let entries: String = self.pages_of(number).map(entry).collect();
        format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}</urlset>\n")
    }

    /// Returns the number of lists of tasks: one, with only the first task, if that leads to all others.
    pub(super) fn lists(&self) -> usize {
        if self.layout.is_listed { self.pages.len().div_ceil(self.share()) } else { 1 }
    }

    fn list(&self, number: usize) -> String {
        let named = if self.layout.is_listed { self.pages_of(number) } else { 0..1 };
        named.map(|page| format!("{}\n", self.recipes().task(page))).collect()
    }

    /// Returns the pages in a sitemap.
    fn pages_of(&self, sitemap: usize) -> Range<usize> {
        let end = self.pages.len();
        (sitemap * self.share()).min(end)..((sitemap + 1) * self.share()).min(end)
    }

    /// Returns the number of URLs in each sitemap, such that there are several and a producer lives for a while.
    fn share(&self) -> usize {
        (self.pages.len() / 10).clamp(1, SITEMAP)
    }

    /// Waits until the crawl has caught up. The producer runs beside the crawl, and is never far ahead: faults hit it
    /// at work, and URLs in the servers are soon fetched.
    async fn caught_up(&self, sitemap: usize) {
        let wanted = sitemap.saturating_sub(1) * self.share();
        let mut progress = self.progress.subscribe();
        // The sender lives as long as the site.
        let _ = progress.wait_for(|progress| progress.pages >= wanted).await;
        if self.layout.is_listed {
            self.log.lock().announce(self.pages_of(sitemap));
        }
    }
}

fn xml(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/xml")], text).into_response()
}
