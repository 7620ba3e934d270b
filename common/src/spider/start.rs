//! `[start]` of a spider.

use crate::request::{NewRequest, RequestTemplate};
use crate::task::NewTask;

/// The start of a crawl. Each is a URL, or for sitemaps and robots also a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// Sitemaps, sitemap indexes, feeds, lists of URLs.
    pub sitemaps: Vec<String>,
    /// Pages.
    pub urls: Vec<String>,
    /// `robots.txt` files, whose sitemaps are read.
    pub robots: Vec<String>,
    /// Requests: pages that are asked for in another way than by a plain GET.
    pub requests: Vec<NewRequest>,
    /// Requests of which there is one for each row of a file.
    pub csv: Vec<CsvRequests>,
    /// Tasks for the spider's program.
    pub tasks: Vec<NewTask>,
}

/// Requests of which there is one for each row of a CSV file, whose columns are carried.
#[derive(Clone, Debug, PartialEq)]
pub struct CsvRequests {
    /// The file.
    pub file: String,
    /// The request.
    pub request: RequestTemplate,
}
