//! A download that is being written.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tracing::debug;
use trawl_common::ports::{self, Error, FileContent, Left, PartialFile, Result, Resume};
use trawl_common::web::url::Fingerprint;

use super::destination::{Destination, PART};
use super::staging::{self, Staged, Staging};
use crate::sinks::disk;

/// Number of bytes that are written at once.
const MAX_PENDING: usize = 256 * 1024;

/// A download in a staging file.
pub(super) struct Partial {
    destination: Destination,
    left: Option<Left>,
    /// Not written yet.
    pending: Vec<Bytes>,
    /// Shared with the operation that waits for the disk, which holds the lock of the file until it is over, even if
    /// nobody waits for it any more.
    writer: Arc<Mutex<Writer>>,
}

struct Writer {
    file: File,
    path: PathBuf,
    len: u64,
    hash: Sha256,
    /// Number of bytes that `hash` is of.
    hashed: u64,
    /// Whether the file stays when this is dropped: a later attempt can go on with it, or it has its name.
    stays: bool,
}

impl Partial {
    /// Opens the download with this key.
    pub(super) async fn open(destination: Destination, staging: Staging, key: Fingerprint) -> Result<Self> {
        let opened = tokio::task::spawn_blocking(move || {
            let Staged { mut file, path, resume } = staging.open(&key)?;
            let len = file.seek(SeekFrom::End(0))?;
            let is_left = |resume: &Resume| (1..resume.total).contains(&len);
            let left = resume.filter(is_left).map(|resume| Left { bytes: len, resume });
            let stays = left.is_some();
            Ok((left, Writer { file, path, len, hash: Sha256::new(), hashed: 0, stays }))
        });
        let (left, writer) = match opened.await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return Err(failed(&destination, &error)),
            Err(panicked) => return Err(failed(&destination, &io::Error::other(panicked))),
        };
        Ok(Self { destination, left, pending: Vec::new(), writer: Arc::new(Mutex::new(writer)) })
    }

    /// Runs an operation where it blocks nothing else, after what is pending is written.
    async fn written<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let (writer, pending) = (Arc::clone(&self.writer), std::mem::take(&mut self.pending));
        let done = tokio::task::spawn_blocking(move || {
            let mut writer = writer.lock();
            for bytes in pending {
                writer.append(&bytes)?;
            }
            work(&mut writer)
        });
        match done.await {
            Ok(done) => done.map_err(|error| failed(&self.destination, &error)),
            Err(panicked) => Err(failed(&self.destination, &io::Error::other(panicked))),
        }
    }
}

#[async_trait]
impl PartialFile for Partial {
    fn left(&self) -> Option<&Left> {
        self.left.as_ref()
    }

    async fn restart(&mut self, resume: Option<Resume>) -> Result<()> {
        self.pending.clear();
        self.left = None;
        self.written(move |writer| writer.restart(resume.as_ref())).await
    }

    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.pending.push(bytes);
        let pending: usize = self.pending.iter().map(Bytes::len).sum();
        if pending < MAX_PENDING { Ok(()) } else { self.written(|_| Ok(())).await }
    }

    async fn start(&mut self, most: usize) -> Result<Bytes> {
        self.written(move |writer| writer.start(most)).await
    }

    async fn content(&mut self) -> Result<FileContent> {
        self.written(Writer::content).await
    }

    async fn keep(mut self: Box<Self>, path: &str, content: &FileContent) -> Result<String> {
        let (destination, path, content) = (self.destination.clone(), path.to_owned(), content.clone());
        self.written(move |writer| {
            if destination.is_synced {
                writer.file.sync_all()?;
            }
            let place = destination.place(&writer.path, &path, &content)?;
            staging::note_resume(&writer.path, None)?;
            writer.stays = true;
            Ok(place)
        })
        .await
    }

    async fn discard(mut self: Box<Self>) -> Result<()> {
        self.pending.clear();
        self.written(|writer| {
            writer.stays = false;
            writer.remove()
        })
        .await
    }
}

impl Writer {
    fn restart(&mut self, resume: Option<&Resume>) -> io::Result<()> {
        // First, so that no other content is taken for the beginning of this file.
        staging::note_resume(&self.path, None)?;
        self.stays = false;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.len, self.hash, self.hashed) = (0, Sha256::new(), 0);
        if resume.is_some() {
            staging::note_resume(&self.path, resume)?;
            self.stays = true;
        }
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        staging::note_resume(&self.path, None)?;
        staging::remove(&self.path)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            // A part may be written: the next one must follow what is counted.
            self.file.set_len(self.len)?;
            self.file.seek(SeekFrom::Start(self.len))?;
            return Err(error);
        }
        if self.hashed == self.len {
            self.hash.update(bytes);
            self.hashed += bytes.len() as u64;
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn start(&mut self, most: usize) -> io::Result<Bytes> {
        let mut start = vec![0; usize::try_from(self.len).unwrap_or(most).min(most)];
        self.file.read_exact_at(&mut start, 0)?;
        Ok(start.into())
    }

    /// Returns the content, of which earlier attempts have written a part.
    fn content(&mut self) -> io::Result<FileContent> {
        let mut part = vec![0; PART];
        while self.hashed < self.len {
            let most = part.len().min(usize::try_from(self.len - self.hashed).unwrap_or(part.len()));
            self.file.read_exact_at(&mut part[..most], self.hashed)?;
            self.hash.update(&part[..most]);
            self.hashed += most as u64;
        }
        Ok(FileContent { size: self.len, sha256: HEXLOWER.encode(&self.hash.clone().finalize()) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.stays
            && let Err(error) = self.remove()
        {
            debug!(%error, path = %self.path.display(), "left to the next sweep");
        }
    }
}

fn failed(destination: &Destination, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::ResourceBusy => {
            Error::new(ports::ErrorKind::Busy, "another attempt is downloading the same file")
        }
        ErrorKind::NotADirectory
        | ErrorKind::AlreadyExists
        | ErrorKind::InvalidInput
        | ErrorKind::InvalidFilename => {
            Error::new(ports::ErrorKind::Refused, format_args!("{}: {error}", destination.to.display()))
        }
        _ => disk::failed(&destination.to, error),
    }
}
