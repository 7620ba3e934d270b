//! The crate spider over a fixed list of URLs: one JSON line an item, `{url, title, links}`.
//!
//! Environment: `URLS` (a file, one URL a line), `OUT` (the file to write), `CONCURRENCY` (requests at a time, all
//! told).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::{env, error, fs, process};

use serde::Serialize;
use spider::page::Page;
use spider::url::Url;
use spider::website::Website;
use spider::{hashbrown::HashSet, tokio, CaseInsensitiveString};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Error = Box<dyn error::Error + Send + Sync>;
type Urls = HashSet<CaseInsensitiveString>;

#[derive(Serialize)]
struct Item<'a> {
    url: &'a str,
    title: &'a str,
    links: Vec<String>,
}

/// Spider has found the title and the links while the page came in; the links are as they stand in the page.
fn line(page: &Page) -> Result<Vec<u8>, Error> {
    let url = page.get_url();
    let base = Url::parse(url)?;
    let title = page.get_metadata().as_ref().and_then(|found| found.title.as_deref());
    let links = page.page_links.iter().flat_map(|links| links.iter());
    let mut line = serde_json::to_vec(&Item {
        url,
        title: title.unwrap_or_default().trim(),
        links: links.filter_map(|link| base.join(link.inner()).ok()).map(String::from).collect(),
    })?;
    line.push(b'\n');
    Ok(line)
}

/// Crawls these URLs and no others, and gives back the output and how many pages it has written.
async fn crawl(
    urls: Urls,
    concurrency: usize,
    mut out: BufWriter<File>,
) -> Result<(BufWriter<File>, usize), Error> {
    let Some(first) = urls.iter().next() else { return Ok((out, 0)) };
    let mut website = Website::new(first.inner());
    website
        .with_concurrency_limit(Some(concurrency))
        .with_return_page_links(true)
        .with_no_control_thread(true)
        .with_retry(0)
        // The links of a page are wanted, not followed.
        .with_on_should_crawl_callback(Some(|_| false));
    // Keeps the links that are set from now on over the start of the crawl, which takes them instead of the start page.
    website.persist_links();
    // As many as there are URLs: the channel drops the oldest page when it is full.
    let mut pages = website.subscribe(urls.len());
    website.set_extra_links(urls);
    let writer = tokio::spawn(async move {
        let mut written = 0;
        while let Ok(page) = pages.recv().await {
            if page.status_code.is_success() {
                out.write_all(&line(&page)?)?;
                written += 1;
            }
        }
        out.flush()?;
        Ok((out, written))
    });
    website.crawl().await;
    website.unsubscribe();
    writer.await?
}

async fn run() -> Result<(), Error> {
    let concurrency = env::var("CONCURRENCY").map_or(Ok(64), |number| number.parse())?;
    let mut out = BufWriter::new(File::create(env::var("OUT")?)?);
    let (mut wanted, mut written) = (0, 0);
    // To a website, URLs that differ only in case are one: such a pair is for two websites. As a rule, there is one.
    let mut groups = Vec::<Urls>::new();
    for url in fs::read_to_string(env::var("URLS")?)?.lines().filter(|line| !line.is_empty()) {
        let url = CaseInsensitiveString::from(url);
        match groups.iter_mut().find(|group| !group.contains(&url)) {
            Some(group) => _ = group.insert(url),
            None => groups.push(Urls::from_iter([url])),
        }
        wanted += 1;
    }
    for group in groups {
        let more;
        (out, more) = crawl(group, concurrency, out).await?;
        written += more;
    }
    if written == wanted {
        Ok(())
    } else {
        Err(format!("{written} pages of {wanted}").into())
    }
}

#[tokio::main]
async fn main() {
    if let Err(error) = run().await {
        eprintln!("{error}");
        process::exit(1);
    }
}
