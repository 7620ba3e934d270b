//! Reads the responses in a WARC file (ISO 28500), whoever wrote it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde_json::Value;
use trawl_common::frontier::Key;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::time::UnixMs;

/// Maximum size of the fields of a record, in bytes.
const MAX_HEAD: u64 = 64 << 10;

/// Maximum size of metadata that is read, in bytes. trawl writes less.
const MAX_METADATA: u64 = 1 << 20;

/// A file that is being read, plain or compressed by gzip.
pub struct WarcReader {
    input: Box<dyn BufRead + Send>,
    max_message: u64,
    /// The number of records so far.
    records: u64,
    /// The notes about the response with this id.
    noted: Option<(String, Noted)>,
}

/// An archived HTTP response.
#[derive(Debug)]
pub struct Archived {
    /// The URL that the response is from.
    pub target: String,
    /// The date of the fetch.
    pub fetched_at: UnixMs,
    /// The HTTP message; `None` if it is too large.
    pub message: Option<Vec<u8>>,
    /// The notes of trawl, if it wrote the file.
    pub noted: Option<Noted>,
}

/// The notes of trawl about an archived page.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted {
    /// The key of the URL as it was admitted.
    pub key: Key,
    /// The crawl.
    pub crawl: CrawlRef,
    /// The page that linked to it, or the task that yielded it.
    pub referrer: Option<Key>,
    /// Number of links from the start.
    pub depth: u16,
    /// The data of its request.
    pub data: Option<Value>,
}

/// The reason why a file cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file cannot be read, or is cut off, or its compression is broken.
    #[error("record {0}: {1}")]
    Broken(u64, io::Error),
    /// It has something else where a record begins.
    #[error("record {0} is none of WARC: {1}")]
    NoRecord(u64, &'static str),
}

/// Returns the files at `path`: itself, or if it is a folder, those in it that are finished, by name.
///
/// # Errors
/// If the folder cannot be read.
pub fn warc_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_archive = name.ends_with(".warc") || name.ends_with(".warc.gz");
        if is_archive && !name.starts_with('_') {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    Ok(files)
}

impl WarcReader {
    /// Opens a file. Responses of more than `max_message` bytes are named, but not read.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path, max_message: u64) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(64 << 10, File::open(path)?);
        let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let input: Box<dyn BufRead + Send> =
            if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        Ok(Self { input, max_message, records: 0, noted: None })
    }

    /// Reads the next response; `None` at the end of the file.
    ///
    /// # Errors
    /// If the rest of the file cannot be read.
    pub fn next_response(&mut self) -> Result<Option<Archived>, Unreadable> {
        while let Some(head) = self.head()? {
            let length = head.text("content-length").parse();
            let length =
                length.map_err(|_| Unreadable::NoRecord(self.records, "it has no Content-Length"))?;
            let holds = |kind| head.text("content-type").starts_with(kind);
            match head.text("warc-type") {
                "metadata" if holds("application/warc-fields") && length <= MAX_METADATA => {
                    let block = self.block(length)?;
                    let noted = Noted::read(&Fields::read(&String::from_utf8_lossy(&block)));
                    let of = head.text("warc-concurrent-to").to_owned();
                    self.noted = noted.map(|noted| (of, noted));
                }
                "response" if holds("application/http") => {
                    let noted = self.noted.take();
                    let noted = noted.filter(|(of, _)| of == head.text("warc-record-id"));
                    let message = match length <= self.max_message {
                        true => Some(self.block(length)?),
                        false => self.skip(length).map(|()| None)?,
                    };
                    return Ok(Some(Archived {
                        target: head.text("warc-target-uri").trim_matches(['<', '>']).to_owned(),
                        fetched_at: head.text("warc-date").parse().unwrap_or_default(),
                        message,
                        noted: noted.map(|(_, noted)| noted),
                    }));
                }
                _ => self.skip(length)?,
            }
        }
        Ok(None)
    }

    /// Reads the fields of the next record; `None` at the end.
    fn head(&mut self) -> Result<Option<Fields>, Unreadable> {
        self.records += 1;
        let number = self.records;
        let mut text = Vec::new();
        let mut room = (&mut self.input).take(MAX_HEAD);
        loop {
            let start = text.len();
            let read =
                room.read_until(b'\n', &mut text).map_err(|error| Unreadable::Broken(number, error))?;
            let line = text[start..].trim_ascii();
            match (read, line.is_empty(), start) {
                (0, _, 0) => return Ok(None),
                (0, ..) => return Err(Unreadable::NoRecord(number, "its fields do not end")),
                // Two empty lines end the record before.
                (_, true, 0) => text.clear(),
                (_, true, _) => break,
                (_, false, 0) if !line.starts_with(b"WARC/") => {
                    return Err(Unreadable::NoRecord(number, "it does not begin with its version"));
                }
                (_, false, _) => {}
            }
        }
        Ok(Some(Fields::read(&String::from_utf8_lossy(&text))))
    }

    /// Reads a block of this length.
    fn block(&mut self, length: u64) -> Result<Vec<u8>, Unreadable> {
        let mut block = Vec::new();
        let read = (&mut self.input).take(length).read_to_end(&mut block);
        self.check(read.map(|read| read as u64), length)?;
        Ok(block)
    }

    fn skip(&mut self, length: u64) -> Result<(), Unreadable> {
        let read = io::copy(&mut (&mut self.input).take(length), &mut io::sink());
        self.check(read, length)
    }

    fn check(&self, read: io::Result<u64>, length: u64) -> Result<(), Unreadable> {
        let broken = |error| Unreadable::Broken(self.records, error);
        match read.map_err(broken)? {
            read if read < length => {
                Err(broken(io::Error::new(ErrorKind::UnexpectedEof, "the file ends in it")))
            }
            _ => Ok(()),
        }
    }
}

/// Fields by name in lower case: of several with one name, the last.
struct Fields(HashMap<String, String>);

impl Fields {
    fn read(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Self(fields.map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned())).collect())
    }

    /// Returns the value of a field; empty if it is missing.
    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }
}

impl Noted {
    /// Reads what trawl writes; `None` if another program wrote it.
    fn read(fields: &Fields) -> Option<Self> {
        let key = fields.0.get("key").or_else(|| fields.0.get("url"))?;
        let spider: SpiderName = fields.text("spider").parse().ok()?;
        let id: CrawlId = fields.text("crawl").parse().ok()?;
        Some(Self {
            key: Key::recorded(key).ok()?,
            crawl: CrawlRef { id, spider },
            referrer: Key::recorded(fields.text("via")).ok(),
            depth: fields.text("depth").parse().unwrap_or_default(),
            data: serde_json::from_str(fields.text("data")).ok(),
        })
    }
}
