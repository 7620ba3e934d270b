//! Items as JSON Lines, appended to a file.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use trawl_common::ports::{Error, ErrorKind, Page, Result, Sink};

/// A JSON Lines file that holds whole lines only.
///
/// Each batch is one write, so a killed process leaves at most one half line at the end, which the next
/// one to open the file cuts off: its item was not yet acknowledged and is written again.
pub struct JsonLines {
    name: String,
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl JsonLines {
    /// Opens `path` for appending, with the folders it needs.
    pub fn open(path: &Path) -> Result<Self> {
        let file = open_whole(path).map_err(|error| trouble(path, &error))?;
        Ok(Self {
            name: format!("jsonl {}", path.display()),
            path: path.to_owned(),
            file: Arc::new(Mutex::new(file)),
        })
    }
}

#[async_trait]
impl Sink for JsonLines {
    fn name(&self) -> &str {
        &self.name
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let mut lines = Vec::with_capacity(pages.len() * 512);
        for item in pages.iter().flat_map(|page| &page.items) {
            serde_json::to_writer(&mut lines, item).map_err(|error| trouble(&self.path, &error))?;
            lines.push(b'\n');
        }
        let file = Arc::clone(&self.file);
        let writing = tokio::task::spawn_blocking(move || append(&file, &lines));
        match writing.await {
            Ok(written) => written.map_err(|error| trouble(&self.path, &error)),
            Err(panic) => Err(trouble(&self.path, &panic)),
        }
    }
}

/// Appends all or nothing: what a full disk cut short is taken back.
fn append(file: &Mutex<File>, lines: &[u8]) -> std::io::Result<()> {
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    let before = file.metadata()?.len();
    file.write_all(lines).or_else(|error| {
        file.set_len(before)?;
        Err(error)
    })
}

fn open_whole(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    // A pipe or a terminal has no end to mend.
    if file.metadata()?.is_file() {
        let whole = end_of_last_line(&mut file)?;
        file.set_len(whole)?;
    }
    Ok(file)
}

/// Where the last line that ends in a line feed ends.
fn end_of_last_line(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = [0; 4096];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn trouble(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("items to {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use trawl_common::item::Item;
    use trawl_common::names::CrawlRef;

    use super::*;

    fn page(path: &str) -> Page {
        let url: trawl_common::url::CanonicalUrl = format!("https://example.com/{path}").parse().unwrap();
        let CrawlRef { id, spider } = CrawlRef::adhoc();
        let item = Item {
            id: path.to_owned(),
            url: url.to_string(),
            crawl: id,
            spider,
            fetched_at: "2026-01-01T00:00:00Z".to_owned(),
            status: 200,
            depth: 0,
            item: None,
            change: None,
            fields: serde_json::Map::new(),
        };
        Page { url, crawl: CrawlRef::adhoc(), referrer: None, items: vec![item], exchange: None }
    }

    #[tokio::test]
    async fn items_are_lines_in_order_and_a_second_run_appends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/items.jsonl");
        JsonLines::open(&path).unwrap().put(&[page("a"), page("b")]).await.unwrap();
        JsonLines::open(&path).unwrap().put(&[page("c")]).await.unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let urls: Vec<String> =
            text.lines().map(|line| serde_json::from_str::<Item>(line).unwrap().url).collect();
        assert_eq!(urls, ["https://example.com/a", "https://example.com/b", "https://example.com/c"]);
    }

    #[tokio::test]
    async fn a_half_line_that_a_crash_left_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items.jsonl");
        for half in ["{\"id\":\"x", &"y".repeat(10_000)] {
            fs::write(&path, format!("{{}}\n{half}")).unwrap();
            drop(JsonLines::open(&path).unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
        }
        fs::write(&path, "no line feed at all").unwrap();
        drop(JsonLines::open(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[tokio::test]
    async fn a_full_disk_is_an_error_that_names_the_file() {
        let error = JsonLines::open(Path::new("/dev/full")).unwrap().put(&[page("a")]).await.unwrap_err();
        assert!(error.is_temporary());
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}
