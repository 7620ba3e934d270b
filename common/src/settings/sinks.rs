//! `[[sinks]]`: where items go.

use std::fmt;
use std::path::PathBuf;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::{ServerUrl, exact_bytes};

/// One `[[sinks]]`. In a path, `{worker}` stands for the worker's id and `{spider}` for the spider's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum SinkSettings {
    /// A file of JSON Lines.
    Jsonl(Lines),
    /// A file of comma-separated values (RFC 4180).
    Csv(Lines),
    /// The stream `items` of the fleet's broker.
    Stream,
    /// A table of a PostgreSQL database.
    Postgres {
        /// `postgres://user:password@host:port/database`
        url: ServerUrl,
        /// The table; by default named as the spider, or as the kind of item.
        table: Option<String>,
    },
    /// A folder of Parquet files.
    Parquet(Folder),
    /// A folder of WARC files (ISO 28500, version 1.1), with their index.
    Warc(Folder),
}

impl fmt::Display for SinkSettings {
    /// For people: what it is and where.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jsonl(Lines { path, .. }) | Self::Csv(Lines { path, .. }) => path.display().fmt(f),
            Self::Stream => f.write_str("stream items"),
            Self::Postgres { url, .. } => url.fmt(f),
            Self::Parquet(Folder { path, .. }) | Self::Warc(Folder { path, .. }) => path.display().fmt(f),
        }
    }
}

/// A file of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The file.
    pub path: PathBuf,
    /// How large it may grow before it is set aside and a new one begun; any size without it.
    #[serde(default)]
    pub rotate: Option<ByteSize>,
    /// How it is compressed.
    #[serde(default)]
    pub compress: Compress,
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// Not at all.
    #[default]
    None,
    /// As gzip (RFC 1952).
    Gzip,
    /// As zstd (RFC 8878).
    Zstd,
}

/// A folder of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// How large one file may grow.
    #[serde(default = "gigabyte", serialize_with = "exact_bytes")]
    pub rotate: ByteSize,
}

fn gigabyte() -> ByteSize {
    ByteSize::gb(1)
}
