//! `[[sinks]]`: where items go.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::secret::ServerUrl;
use super::webhooks::WebhookSecret;
use crate::names::SpiderName;
use crate::nearest::listed;
use crate::text::printable;

/// One `[[sinks]]`. In a path, `{worker}` stands for the worker's id and `{spider}` for the spider's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SinkSettings {
    /// A file of JSON Lines.
    Jsonl(FileSink),
    /// A file of comma-separated values (RFC 4180).
    Csv(FileSink),
    /// The stream `items` of the fleet's broker.
    Stream,
    /// A table of a PostgreSQL database.
    Postgres {
        /// `postgres://user:password@host:port/database`
        url: ServerUrl,
        /// The table; by default named after the spider, or the kind of item.
        table: Option<String>,
    },
    /// A URL that items are posted to.
    Webhook {
        /// `https://host/path`
        url: ServerUrl,
        /// The secret that signs the posts.
        secret: WebhookSecret,
        /// Whether items are left out that are unchanged since the last visit of their page.
        #[serde(default)]
        changed: bool,
    },
    /// A folder of Parquet files.
    Parquet(FileSink),
    /// A folder of WARC files (ISO 28500, version 1.1), with their index.
    Warc(FileSink),
}

/// The system columns of every PostgreSQL table (documentation, 5.6): no other column may have such a name.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/// Whether this is the name of a PostgreSQL system column.
pub fn is_system_column(name: &str) -> bool {
    SYSTEM_COLUMNS.contains(&name)
}

impl SinkSettings {
    /// Returns the sink for a path: `-` for JSON Lines on standard output, else by the extension: `.csv`, `.parquet` (a
    /// folder), `.warc.gz` (a folder), any other for JSON Lines. `.csv` and JSON Lines are compressed if `.gz` or
    /// `.zst` follows.
    pub fn from_path(path: PathBuf) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (plain, compress) = match name.rsplit_once('.') {
            Some((plain, "gz")) => (plain, Compress::Gzip),
            Some((plain, "zst")) => (plain, Compress::Zstd),
            _ => (&*name, Compress::None),
        };
        let sink = FileSink::new(path);
        match plain.rsplit_once('.').map(|(_, ending)| ending) {
            Some("csv") => Self::Csv(FileSink { compress, ..sink }),
            Some("parquet") => Self::Parquet(sink),
            Some("warc") => Self::Warc(sink),
            _ => Self::Jsonl(FileSink { compress, ..sink }),
        }
    }

    /// Returns the file or folder that it writes to, if there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Jsonl(sink) | Self::Csv(sink) | Self::Parquet(sink) | Self::Warc(sink) => Some(&sink.path),
            Self::Stream | Self::Postgres { .. } | Self::Webhook { .. } => None,
        }
    }

    /// Checks that its path has no unknown placeholder, and that it has no setting that its kind does not use.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Jsonl(FileSink { bom: true, .. }) => return Err("`bom` is for csv".to_owned()),
            Self::Parquet(sink) | Self::Warc(sink) if sink.bom || sink.compress != Compress::None => {
                return Err("`bom` and `compress` are for files of lines, not for folders".to_owned());
            }
            _ => {}
        }
        self.path().map_or(Ok(()), |path| check_path(&path.to_string_lossy()))
    }

    /// Returns the path of the file of lines that it writes for this spider, if it writes one. `{worker}` is not
    /// replaced.
    pub fn file(&self, spider: &SpiderName) -> Option<PathBuf> {
        match self {
            Self::Jsonl(sink) | Self::Csv(sink) => {
                Some(sink.path.to_string_lossy().replace("{spider}", spider.as_str()).into())
            }
            Self::Stream
            | Self::Postgres { .. }
            | Self::Webhook { .. }
            | Self::Parquet(_)
            | Self::Warc(_) => None,
        }
    }
}

/// Returns the error for a path of a sink with an unknown placeholder `{...}`.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    const KNOWN: [&str; 2] = ["{spider}", "{worker}"];
    for (at, _) in path.match_indices('{') {
        let rest = &path[at..];
        if !KNOWN.iter().any(|known| rest.starts_with(known)) {
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            let shown = printable(&rest[..end], 60);
            return Err(format!("`{shown}` stands for nothing; there are {}", listed(KNOWN.into_iter())));
        }
    }
    Ok(())
}

/// Returns the part of `path` below the folder `root`, if its components stay within it: only names of folders and
/// files.
pub fn path_below(path: &Path, root: &Path) -> Option<PathBuf> {
    let mut rest = plain(path);
    for component in plain(root) {
        if rest.next()? != component {
            return None;
        }
    }
    rest.map(|component| matches!(component, Component::Normal(_)).then_some(component)).collect()
}

/// Returns the components of a path without those that have no effect.
fn plain(path: &Path) -> impl Iterator<Item = Component<'_>> {
    path.components().filter(|component| *component != Component::CurDir)
}

impl fmt::Display for SinkSettings {
    /// Shows the kind of sink and its destination, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jsonl(sink) if sink.path.as_os_str() == "-" => f.write_str("standard output"),
            Self::Jsonl(sink) | Self::Csv(sink) | Self::Parquet(sink) | Self::Warc(sink) => {
                sink.path.display().fmt(f)
            }
            Self::Stream => f.write_str("stream items"),
            Self::Postgres { url, .. } | Self::Webhook { url, .. } => url.fmt(f),
        }
    }
}

/// A file of lines, or a folder of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSink {
    /// The file or folder.
    pub path: PathBuf,
    /// The folder that it may not leave, neither by its name nor by a symbolic link; `None` for no restriction.
    #[serde(skip)]
    pub below: Option<PathBuf>,
    /// Maximum size of a file: before it would grow larger it is set aside, as `items-1.jsonl`, and a new one begun.
    /// `None` for no limit of a file of lines, and for [`Self::FOLDER_ROTATE`] in a folder.
    #[serde(default)]
    pub rotate: Option<ByteSize>,
    /// How a file of lines is compressed.
    #[serde(default)]
    pub compress: Compress,
    /// Whether a file of comma-separated values begins with a UTF-8 byte order mark, without which Excel assumes the
    /// encoding of its language.
    #[serde(default)]
    pub bom: bool,
    /// Whether output is synced to the disk before its URLs are finished: then it also survives a power cut.
    #[serde(default)]
    pub sync: bool,
}

impl FileSink {
    /// Default maximum size of a file in a folder.
    pub const FOLDER_ROTATE: ByteSize = ByteSize::gb(1);

    /// Creates a sink without restrictions, for a path named by a person with access to the machine.
    pub fn new(path: PathBuf) -> Self {
        Self { path, below: None, rotate: None, compress: Compress::None, bom: false, sync: false }
    }
}

/// How a file is compressed.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Compress {
    /// Not at all.
    #[default]
    None,
    /// As gzip (RFC 1952).
    Gzip,
    /// As zstd (RFC 8878).
    Zstd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_nothing_in_a_path_is_reported() {
        assert_eq!(check_path("items/{spider}-{worker}.jsonl"), Ok(()));
        let message = check_path("items/{date}.jsonl").unwrap_err();
        assert_eq!(message, "`{date}` stands for nothing; there are `{spider}` and `{worker}`");
        assert!(check_path("{spider}/{").is_err() && check_path("{Spider}").is_err());
    }

    #[test]
    fn a_path_stays_below_a_folder_or_is_none() {
        let below = |path: &str, root: &str| path_below(Path::new(path), Path::new(root));
        let rest = |path: &str| Some(PathBuf::from(path));
        assert_eq!(below("items/shop/a.jsonl", "items"), rest("shop/a.jsonl"));
        assert_eq!(below("./items//a.jsonl", "items/"), rest("a.jsonl"));
        assert_eq!(below("/srv/items/a.jsonl", "/srv/items"), rest("a.jsonl"));
        assert_eq!(below("a.jsonl", "."), rest("a.jsonl"));
        assert_eq!(below("items", "items"), rest(""));
        for path in
            ["a.jsonl", "/items/a", "items/../a", "items/a/../../b", "../items/a", "itemsa/b", "-", ""]
        {
            assert_eq!(below(path, "items"), None, "{path}");
        }
        assert_eq!(below("/etc/passwd", "."), None);
    }

    #[test]
    fn the_extension_of_a_path_decides_the_format() {
        let of = |path: &str| SinkSettings::from_path(path.into());
        let lines = |path: &str, compress| FileSink { compress, ..FileSink::new(path.into()) };
        for (path, compress) in [
            ("a.jsonl", Compress::None),
            ("a.jsonl.gz", Compress::Gzip),
            ("a.JSONL.ZST", Compress::Zstd),
            ("/dev/stdout", Compress::None),
            ("-", Compress::None),
            ("parquet", Compress::None),
            ("csv.gz", Compress::Gzip),
        ] {
            assert_eq!(of(path), SinkSettings::Jsonl(lines(path, compress)));
        }
        assert_eq!(of("b/a.csv"), SinkSettings::Csv(lines("b/a.csv", Compress::None)));
        assert_eq!(of("a.csv.zst"), SinkSettings::Csv(lines("a.csv.zst", Compress::Zstd)));
        assert!(
            matches!(of("a.parquet"), SinkSettings::Parquet(folder) if folder.path.ends_with("a.parquet"))
        );
        assert!(matches!(of("a.warc.gz"), SinkSettings::Warc(folder) if folder.path.ends_with("a.warc.gz")));
    }
}
