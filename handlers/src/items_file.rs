//! Items that a program leaves in a file because an answer cannot hold that many: one JSON object per line.
//!
//! The file is opened and unlinked when the program has answered. From then on no other process can reach it, and the
//! system frees it even if this process dies.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, open, openat, unlinkat};
use rustix::io::Errno;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use trawl_common::handler::{MAX_ITEM_BYTES, item_from_json};
use trawl_common::text::printable;

/// Approximate maximum of bytes of items in memory at once, not counting one more item.
const BATCH_BYTES: usize = 1 << 20;

/// Maximum number of items in memory at once.
const BATCH_ITEMS: usize = 1000;

type Fields = Map<String, Value>;

/// The open folder of a program, which stays valid whatever happens to its path.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(open(path, flags, Mode::empty())?))
    }

    /// Takes the file of items called `named`, which is a name in this folder or a path into it; the folder's own path
    /// is `path`. The error says why it cannot be taken.
    pub(crate) fn take(&self, path: &Path, named: &str) -> Result<ItemsFile, String> {
        self.take_named(path, named).map_err(|why| format!("`items_file` {}: {why}", printable(named, 200)))
    }

    fn take_named(&self, path: &Path, named: &str) -> Result<ItemsFile, String> {
        let name = Path::new(named).strip_prefix(path).unwrap_or(Path::new(named));
        if name.file_name() != Some(name.as_os_str()) {
            return Err("it has to be directly in the folder TRAWL_TMP".to_owned());
        }
        // Without waiting for a writer if it is a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => "there is no such file in the folder TRAWL_TMP".to_owned(),
            Errno::LOOP => "it is a symbolic link".to_owned(),
            error => io::Error::from(error).to_string(),
        })?;
        let status = fstat(file.as_fd()).map_err(|error| io::Error::from(error).to_string())?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err("it is no regular file".to_owned());
        }
        // A failure is harmless: the folder is removed with the program.
        let _ = unlinkat(&self.0, name, AtFlags::empty());
        Ok(ItemsFile::new(file.into(), u64::try_from(status.st_size).unwrap_or_default()))
    }
}

/// A file of items, up to the length that it had when its program answered. It can be read any number of times.
#[derive(Clone, Debug)]
pub struct ItemsFile {
    file: Arc<File>,
    bytes: u64,
    items: u64,
}

/// A position in a file of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePosition {
    bytes: u64,
    lines: u64,
    items: u64,
}

impl FilePosition {
    /// Returns the number of items before it.
    pub fn items(&self) -> u64 {
        self.items
    }
}

/// Items read from a file of items.
#[derive(Debug)]
pub struct Batch {
    /// The fields of each item, in file order; empty at the end of the file.
    pub items: Vec<Fields>,
    /// The position to read on from.
    pub next: FilePosition,
}

impl ItemsFile {
    /// Wraps the first `bytes` bytes of a file whose items are not counted yet.
    pub fn new(file: File, bytes: u64) -> Self {
        Self { file: Arc::new(file), bytes, items: 0 }
    }

    /// Returns the number of items; 0 until it is [checked](Self::checked).
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Reads the whole file once, and counts its items.
    ///
    /// # Errors
    /// If a line is not an item; the error says which one, and why.
    pub async fn checked(mut self) -> Result<Self, String> {
        self.items = self.look(|_| ()).await?;
        Ok(self)
    }

    /// Reads the whole file once, and passes each item to `show`. Returns the number of items.
    ///
    /// # Errors
    /// If a line is not an item; the error says which one, and why.
    pub async fn look(&self, mut show: impl FnMut(&Fields)) -> Result<u64, String> {
        let mut place = FilePosition::default();
        loop {
            let Batch { items, next } = self.read(place).await?;
            if items.is_empty() {
                return Ok(place.items);
            }
            items.iter().for_each(&mut show);
            place = next;
        }
    }

    /// Reads the items from a position on, up to the limits on items in memory. Cancel safe.
    ///
    /// # Errors
    /// If a line is not an item; the error says which one, and why.
    pub async fn read(&self, from: FilePosition) -> Result<Batch, String> {
        let file = self.clone();
        let reading = spawn_blocking(move || file.batch(from)).await;
        reading.unwrap_or_else(|_| Err("the items_file cannot be read".to_owned()))
    }

    fn batch(&self, from: FilePosition) -> Result<Batch, String> {
        let rest = At { file: &self.file, at: from.bytes }.take(self.bytes.saturating_sub(from.bytes));
        let (mut rest, mut line) = (BufReader::new(rest), Vec::new());
        let mut batch = Batch { items: Vec::new(), next: from };
        let begun = from.bytes;
        while batch.items.len() < BATCH_ITEMS && batch.next.bytes - begun < BATCH_BYTES as u64 {
            line.clear();
            let place = &mut batch.next;
            let wrong = |why: String| format!("the items_file, line {}: {why}", place.lines + 1);
            let read = rest.by_ref().take(MAX_ITEM_BYTES as u64 + 1).read_until(b'\n', &mut line);
            let count = read.map_err(|error| wrong(error.to_string()))?;
            if count == 0 {
                break;
            }
            if count > MAX_ITEM_BYTES {
                return Err(wrong(format!(
                    "it has more than the {MAX_ITEM_BYTES} bytes that an item may have"
                )));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                batch.items.push(item_from_json(&line).map_err(|error| wrong(error.to_string()))?);
                place.items += 1;
            }
            place.lines += 1;
            place.bytes += count as u64;
        }
        Ok(batch)
    }
}

/// A reader of a file from an offset on, independent of other readers of the same file.
struct At<'a> {
    file: &'a File,
    at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn take(folder: &Path, named: &str) -> Result<ItemsFile, String> {
        Folder::open(folder).unwrap().take(folder, named)
    }

    async fn checked(content: &[u8]) -> Result<u64, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("items"), content).unwrap();
        take(folder.path(), "items").unwrap().checked().await.map(|file| file.items())
    }

    #[tokio::test]
    async fn a_file_in_the_folder_is_taken_by_its_name_or_its_path_and_is_gone_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items");
        for named in ["items", path.to_str().unwrap()] {
            fs::write(&path, "{}\n").unwrap();
            let file = take(folder.path(), named).unwrap();
            assert!(!path.exists());
            assert_eq!(file.checked().await.unwrap().items(), 1);
        }
    }

    #[test]
    fn what_is_no_regular_file_in_the_folder_is_not_taken_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/items"), "{}").unwrap();
        symlink("folder/items", at("link")).unwrap();
        symlink("nowhere", at("broken")).unwrap();
        rustix::fs::mknodat(Folder::open(folder.path()).unwrap().0, "pipe", FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for (named, why) in [
            ("none", "there is no such file"),
            ("folder", "it is no regular file"),
            ("pipe", "it is no regular file"),
            ("socket", "No such device"),
            ("link", "it is a symbolic link"),
            ("broken", "it is a symbolic link"),
            ("folder/items", "directly in the folder"),
            ("../items", "directly in the folder"),
            ("/etc/passwd", "directly in the folder"),
            ("..", "directly in the folder"),
            ("", "directly in the folder"),
            ("a\0b", "nvalid"),
            ("\u{1b}[1m", "there is no such file"),
        ] {
            let error = take(folder.path(), named).unwrap_err();
            assert!(error.contains(why) && !error.contains(char::is_control), "{named:?}: {error}");
        }
        assert!(at("folder/items").exists());
    }

    #[test]
    fn a_folder_that_was_put_in_the_place_of_the_programs_is_not_looked_into() {
        let parent = tempfile::tempdir().unwrap();
        let (own, other) = (parent.path().join("own"), parent.path().join("other"));
        fs::create_dir(&own).unwrap();
        let folder = Folder::open(&own).unwrap();
        fs::rename(&own, parent.path().join("moved")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("items"), "{}").unwrap();
        symlink(&other, &own).unwrap();
        assert!(folder.take(&own, "items").unwrap_err().contains("no such file"));
        assert!(other.join("items").exists());
    }

    #[tokio::test]
    async fn a_line_that_is_no_item_is_named() {
        let long = |bytes: usize| format!("{{}}\n{{\"a\": \"{}\"}}", "x".repeat(bytes)).into_bytes();
        assert_eq!(checked(b"").await, Ok(0));
        assert_eq!(checked(b"{}\n\n \r\n{\"a\": 1}").await, Ok(2));
        assert_eq!(checked(&long(MAX_ITEM_BYTES - 9)).await, Ok(2));
        for (content, expected) in [
            (&b"{}\n{}\n[]\n"[..], "the items_file, line 3: an item is a JSON object, not a list"),
            (b"{}\n{\"a\": ", "the items_file, line 2: not JSON (EOF"),
            (b"{}\n\xff\n", "the items_file, line 2: not JSON ("),
            (&long(MAX_ITEM_BYTES), "the items_file, line 2: it has more than the"),
        ] {
            let error = checked(content).await.unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn a_sparse_file_is_an_error_at_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("items")).unwrap();
        file.set_len(100 << 30).unwrap();
        let error = take(folder.path(), "items").unwrap().checked().await.unwrap_err();
        assert!(error.contains("line 1: it has more than"), "{error}");
    }

    #[tokio::test]
    async fn what_is_written_to_a_file_after_it_was_taken_is_not_read_and_what_is_cut_off_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = File::create(folder.path().join("items")).unwrap();
        file.write_all(b"{\"a\": 1}\n{\"a\": 2}\n").unwrap();
        let taken = take(folder.path(), "items").unwrap();
        file.write_all(b"rubbish").unwrap();
        let checked = taken.checked().await.unwrap();
        assert_eq!(checked.items(), 2);
        file.set_len(12).unwrap();
        assert!(checked.read(FilePosition::default()).await.unwrap_err().contains("line 2"));
    }

    #[tokio::test]
    async fn a_file_is_read_in_batches_that_make_it_whole() {
        let folder = tempfile::tempdir().unwrap();
        let lines: String = (0..2500).map(|number| format!("{{\"n\": {number}}}\n")).collect();
        fs::write(folder.path().join("items"), lines).unwrap();
        fs::set_permissions(folder.path().join("items"), Permissions::from_mode(0o400)).unwrap();
        let file = take(folder.path(), "items").unwrap();
        let (mut place, mut found, mut batches) = (FilePosition::default(), Vec::new(), 0);
        loop {
            let batch = file.read(place).await.unwrap();
            if batch.items.is_empty() {
                break;
            }
            found.extend(batch.items.into_iter().map(|item| item["n"].as_u64().unwrap()));
            (place, batches) = (batch.next, batches + 1);
        }
        assert_eq!((batches, found), (3, (0..2500).collect()));
    }
}
