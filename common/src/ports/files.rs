//! Downloaded files, and what is left of downloads that were interrupted.

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::web::url::Fingerprint;

/// Keeps the files of one `[[download]]`.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Returns the name that people see in health and status: `files files/shop`.
    fn name(&self) -> &str;

    /// Opens the download with this key, with what earlier attempts on this machine have left of it. Fails with `Busy`
    /// while another attempt writes to it.
    async fn open(&self, key: Fingerprint) -> Result<Box<dyn PartialFile>>;
}

/// A download that is being written. If it is dropped, what is written stays for the next attempt, for a day, if that
/// can go on with it; otherwise it is removed.
#[async_trait]
pub trait PartialFile: Send + Sync {
    /// Returns what an earlier attempt has left.
    fn left(&self) -> Option<&Left>;

    /// Begins anew with an empty file. With `resume`, a later attempt may go on from what is written until then.
    async fn restart(&mut self, resume: Option<Resume>) -> Result<()>;

    /// Appends bytes. Once it returns, at most some hundred kilobytes are in memory alone.
    async fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Returns the first bytes of the file, `most` at most.
    async fn start(&mut self, most: usize) -> Result<Bytes>;

    /// Returns the size and the hash of everything that is written.
    async fn content(&mut self) -> Result<FileContent>;

    /// Keeps the file under this path below the folder of its store, and returns where it is. A file of the same
    /// content under that path is kept in its place. One of other content keeps its name, and the new file gets one
    /// with a part of its hash. Once it returns, the file survives the death of this process.
    ///
    /// # Errors
    /// Fails with `Refused` if no file can have this path.
    async fn keep(self: Box<Self>, path: &str, content: &FileContent) -> Result<String>;

    /// Removes everything that is written, as nothing can go on with it.
    async fn discard(self: Box<Self>) -> Result<()>;
}

/// The means to go on with a download.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The URL that the body came from, after redirects.
    pub url: String,
    /// The validator for `If-Range` (RFC 9110 13.1.5).
    pub validator: String,
    /// The size of the whole file in bytes.
    pub total: u64,
}

/// The remains of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Number of bytes, at least one and fewer than the whole file has.
    pub bytes: u64,
    /// The means to go on.
    pub resume: Resume,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}
