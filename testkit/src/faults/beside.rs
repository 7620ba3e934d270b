//! Crawls that run beside the crawl under test, each with a site and a spider of its own.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::disk::Disk;
use super::fate::Fate;
use super::fleet::Programs;
use super::layout::Layout;
use super::ledger::SETTLING;
use super::order::{GIVEN_FOR, order};
use super::private::{POLL_INTERVAL, output};
use super::stored::files;
use super::web::Web;

/// The address of such a crawl's site, other than that of the crawl under test: that site delays its pages, and they
/// may take all permits for slow pages of their domain meanwhile.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Number of pages of such a crawl.
const PAGES: usize = 20;
/// Number of pages requested before it is cancelled.
const BEGUN: usize = 4;
/// Size in KiB of the disk of such a crawl, more than its items take.
const DISK_KIB: u64 = 256;

/// A crawl that runs beside the crawl under test, or did.
pub(super) struct Beside {
    id: String,
    web: Web,
    outcome: Outcome,
}

enum Outcome {
    /// The crawl was cancelled. Holds when that was confirmed.
    Cancelled(Duration),
    /// The URLs of the items in its sink, and whether the crawl had ended before the sink took anything.
    Stored { urls: BTreeSet<String>, is_early: bool },
}

impl Beside {
    /// Starts a crawl, and cancels it half-way.
    pub(super) async fn cancelled(programs: &Programs, start: Instant, number: usize) -> io::Result<Self> {
        let (id, web) = begin(programs, start, number, "").await?;
        web.pace(BEGUN);
        let mut progress = web.progress();
        drop(
            timeout(GIVEN_FOR, progress.wait_for(|now| now.pages >= BEGUN))
                .await?
                .map_err(io::Error::other)?,
        );
        order(programs, &["cancel", &id]).await?;
        Ok(Self { id, web, outcome: Outcome::Cancelled(start.elapsed()) })
    }

    /// Runs a crawl whose sink, a pipe, is full for `time`; then reads the pipe until the crawl has ended.
    pub(super) async fn stuck(
        programs: &Programs,
        start: Instant,
        number: usize,
        time: Duration,
    ) -> io::Result<Self> {
        let path = programs.folder.join(format!("pipe-{number}"));
        let mut pipe = full_pipe(&path).await?;
        let sink = format!("[[sinks]]\nkind = 'jsonl'\npath = '{}'\n", path.display());
        let (id, web) = begin(programs, start, number, &sink).await?;
        web.pace(PAGES);
        sleep(time).await;
        let is_early = is_over(programs, &id).await;
        let deadline = Instant::now() + GIVEN_FOR;
        let mut text = Vec::new();
        loop {
            let is_over = is_over(programs, &id).await;
            drain(&mut pipe, &mut text)?;
            if is_over || Instant::now() > deadline {
                break;
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(Self { id, web, outcome: Outcome::Stored { urls: urls(&text), is_early } })
    }

    /// Runs a crawl whose sink is on a disk that is full for `time`; then makes room.
    pub(super) async fn full(
        programs: &Programs,
        start: Instant,
        number: usize,
        time: Duration,
    ) -> io::Result<Self> {
        let disk = Disk::mount(DISK_KIB)?;
        let ballast = disk.path().join("ballast");
        fill(&ballast)?;
        let sink =
            format!("[[sinks]]\nkind = 'jsonl'\npath = '{}/{{worker}}.jsonl'\n", disk.path().display());
        let (id, web) = begin(programs, start, number, &sink).await?;
        web.pace(PAGES);
        sleep(time).await;
        let is_early = is_over(programs, &id).await;
        fs::remove_file(&ballast)?;
        let deadline = Instant::now() + GIVEN_FOR;
        while !is_over(programs, &id).await && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
        }
        let mut text = Vec::new();
        for file in files(disk.path(), "jsonl")? {
            text.extend(fs::read(file)?);
        }
        Ok(Self { id, web, outcome: Outcome::Stored { urls: urls(&text), is_early } })
    }

    /// Whether `url` is one of its pages.
    pub(super) fn has(&self, url: &str) -> bool {
        url.starts_with(&self.web.origin)
    }

    /// Returns what is wrong with it at the end, or `None`.
    pub(super) async fn problem(&self, programs: &Programs) -> Option<String> {
        let id = &self.id;
        match &self.outcome {
            Outcome::Cancelled(at) => {
                let late = self.web.log().iter().filter(|ask| ask.asked > *at + SETTLING).count();
                if late > 0 {
                    return Some(format!("{late} pages of {id} were asked for after it was cancelled"));
                }
                // A server that was emptied may not know it any more.
                let stats = programs.stats(id).await?;
                let stays = stats.status == "cancelled" && stats.pending == 0;
                (!stays).then(|| format!("{id} was cancelled, and now: {stats:?}"))
            }
            Outcome::Stored { is_early: true, .. } => {
                Some(format!("{id} had ended before its sink took anything"))
            }
            Outcome::Stored { urls, .. } => {
                let is_good = |fate| matches!(fate, Fate::Good | Fate::Flaky(_));
                let good = self.web.pages().iter().filter(|page| is_good(page.fate));
                let lost: Vec<&str> =
                    good.map(|page| page.url.as_str()).filter(|url| !urls.contains(*url)).collect();
                (!lost.is_empty()).then(|| format!("the sink of {id} lacks {} pages: {lost:?}", lost.len()))
            }
        }
    }
}

/// Starts a crawl whose spider's file has the text `spider`.
async fn begin(
    programs: &Programs,
    start: Instant,
    number: usize,
    spider: &str,
) -> io::Result<(String, Web)> {
    let id = format!("beside-{}", number + 1);
    let web = Web::serve_at(ADDRESS, Layout::listed(PAGES, 0), start).await?;
    let spiders = programs.folder.join("spiders");
    fs::create_dir_all(&spiders)?;
    fs::write(spiders.join(format!("{id}.toml")), spider)?;
    let list = programs.folder.join(format!("{id}.txt"));
    fs::write(&list, web.pages().iter().map(|page| format!("{}\n", page.url)).collect::<String>())?;
    order(programs, &["producer", &list.to_string_lossy(), "--spider", &id, "--crawl", &id]).await?;
    Ok((id, web))
}

async fn is_over(programs: &Programs, id: &str) -> bool {
    programs.stats(id).await.is_some_and(|stats| stats.status == "finished")
}

/// Returns the URLs of items in JSON Lines.
fn urls(text: &[u8]) -> BTreeSet<String> {
    let items = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    items.filter_map(|item: Value| item["url"].as_str().map(str::to_owned)).collect()
}

/// Writes a file until its disk is full.
fn fill(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    loop {
        match file.write(&[0; 4096]) {
            Ok(_) => {}
            Err(full) if full.kind() == ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Returns a full pipe, which takes nothing until it is read.
async fn full_pipe(path: &Path) -> io::Result<File> {
    const NONBLOCK: i32 = 0o4000;
    let mut make = Command::new("mkfifo");
    make.arg(path);
    output(make).await?;
    let mut pipe = OpenOptions::new().read(true).write(true).custom_flags(NONBLOCK).open(path)?;
    loop {
        match pipe.write(b"\n") {
            Ok(_) => {}
            Err(full) if full.kind() == ErrorKind::WouldBlock => return Ok(pipe),
            Err(error) => return Err(error),
        }
    }
}

/// Reads the current contents of a pipe.
fn drain(pipe: &mut File, text: &mut Vec<u8>) -> io::Result<()> {
    match pipe.read_to_end(text) {
        Err(empty) if empty.kind() == ErrorKind::WouldBlock => Ok(()),
        read => read.map(drop),
    }
}
