//! Measures the rate at which this machine can fetch pages and keep nothing: bare reqwest, with or without lol_html.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use lol_html::{HtmlRewriter, Settings, element, text};
use reqwest::Client;

/// Fetches every URL of a list, and keeps nothing.
#[derive(Parser)]
struct Arguments {
    /// The list, one URL a line.
    urls: PathBuf,
    /// Number of requests at once.
    #[arg(long, default_value_t = 64)]
    concurrency: usize,
    /// Also reads title and links of each page.
    #[arg(long)]
    read: bool,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let Arguments { urls, concurrency, read } = Arguments::parse();
    let urls: Arc<Vec<String>> =
        Arc::new(std::fs::read_to_string(urls)?.lines().map(str::to_owned).collect());
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| io::Error::other("no TLS provider"))?;
    let client = Client::builder().no_proxy().build().map_err(io::Error::other)?;
    let (next, links) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..concurrency {
        let (urls, client, next, links) =
            (Arc::clone(&urls), client.clone(), Arc::clone(&next), Arc::clone(&links));
        tasks.spawn(async move {
            while let Some(url) = urls.get(next.fetch_add(1, Ordering::Relaxed)) {
                let body = get(&client, url).await?;
                if read {
                    links.fetch_add(title_and_links(&body)?.1.len(), Ordering::Relaxed);
                }
            }
            io::Result::Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    eprintln!("{} pages, {} links", urls.len(), links.load(Ordering::Relaxed));
    Ok(())
}

async fn get(client: &Client, url: &str) -> io::Result<bytes::Bytes> {
    let answer = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
    answer.map_err(io::Error::other)?.bytes().await.map_err(io::Error::other)
}

fn title_and_links(body: &[u8]) -> io::Result<(String, Vec<String>)> {
    let (mut title, mut links) = (String::new(), Vec::new());
    let settings = Settings::new()
        .append_element_content_handler(text!("title", |piece| {
            title.push_str(piece.as_str());
            Ok(())
        }))
        .append_element_content_handler(element!("a[href]", |link| {
            links.extend(link.get_attribute("href"));
            Ok(())
        }));
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    rewriter.write(body).and_then(|()| rewriter.end()).map_err(io::Error::other)?;
    Ok((title, links))
}
