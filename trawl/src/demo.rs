//! `trawl demo`: a small site, served and crawled by this command, to see what trawl does.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use tokio::net::TcpListener;
use trawl_cli::{ArgumentFlags, DedupFlags, EndFlags, Fail, Global, Outcome};
use trawl_common::exit::Exit;
use trawl_common::politeness::rate::Rate;
use trawl_common::settings::Settings;
use trawl_producer::Source;

use crate::crawl;

const PAGES: u32 = 200;

/// The destination of the demo's items.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Append items to FILE, as JSON Lines
    #[arg(long, value_name = "FILE", default_value = "demo.jsonl")]
    out: std::path::PathBuf,
    /// Print the crawl's stats as JSON at the end
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let mut source = global.source();
        source.usual.log.level = crawl::LOG_LEVEL.to_owned();
        let loaded = global.load(&source)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Fail::run)?;
        let site = format!("http://{}", listener.local_addr().map_err(Fail::run)?);
        tokio::spawn(axum::serve(listener, router(site.clone())).into_future());
        global.say(format_args!(
            "serving a site of {PAGES} pages at {site}: one of them is missing, one fails at first, and one entry of \
             its sitemap is no URL"
        ));
        let folder = tempfile::tempdir().map_err(Fail::run)?;
        let sitemap = format!("{site}/sitemap.xml").parse::<Source>().map_err(Fail::run)?;
        let crawl = crawl::Args {
            sources: vec![sitemap],
            spider: None,
            no_file: false,
            arguments: ArgumentFlags::default(),
            out: vec![self.out.clone()],
            state: folder.path().join("demo.db"),
            rate: None,
            concurrency: None,
            limit: None,
            follow: false,
            max_pages: None,
            dedup: DedupFlags::default(),
            end: EndFlags::default(),
            render: None,
            allow_private: true,
            json: self.json,
            is_passing: true,
        };
        let exit = crawl.crawl(settings(loaded), &global).await?;
        global.say(format_args!("look at the items with: head -3 {}", self.out.display()));
        // The missing page is part of the demo.
        Ok(if exit == Exit::FailedUrls { Exit::Ok } else { exit })
    }
}

/// Allows requests to this machine, at a high rate; the failing page recovers quickly, too.
fn settings(mut settings: Settings) -> Settings {
    settings.fetch.allow_private = true;
    settings.politeness.rate = Rate::Unlimited;
    settings.retry.backoff = Duration::from_millis(500);
    settings
}

fn router(site: String) -> Router {
    let site = Arc::new(site);
    let fails = Arc::new(AtomicU32::new(2));
    let sitemap = move || {
        let site = Arc::clone(&site);
        async move { ([(header::CONTENT_TYPE, "application/xml")], sitemap(&site)) }
    };
    let page = move |Path(number): Path<u32>| {
        let fails = Arc::clone(&fails);
        async move { page(number, &fails) }
    };
    Router::new().route("/sitemap.xml", get(sitemap)).route("/page/{number}", get(page))
}

fn sitemap(site: &str) -> String {
    let entry = |number| format!("  <url><loc>{site}/page/{number}</loc></url>\n");
    let entries: String = (1..=PAGES).map(entry).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{entries}  \
         <url><loc>not a URL</loc></url>\n</urlset>\n"
    )
}

fn page(number: u32, fails: &AtomicU32) -> axum::response::Response {
    let fails_now =
        || fails.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    match number {
        13 => StatusCode::NOT_FOUND.into_response(),
        42 if fails_now() => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => {
            let next = number % PAGES + 1;
            Html(format!(
                "<!doctype html><html lang=\"en\"><head><title>Page {number} of the demo</title>\
                 <meta name=\"description\" content=\"The page with the number {number}\"></head>\
                 <body><h1>Page {number}</h1><p>On to <a href=\"/page/{next}\">page {next}</a>.</p></body></html>\n"
            ))
            .into_response()
        }
    }
}
