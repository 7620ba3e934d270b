//! `[[sinks]]`

use std::path::{Path, PathBuf};

use bytesize::ByteSize;
use toml::de::DeValue;

use super::given::Given;
use super::secret::{self, secret};
use super::section::Section;
use super::webhooks;
use crate::nearest::listed;
use crate::settings::sinks::check_path;
use crate::settings::{FileSink, ServerUrl, SinkSettings, is_system_column, path_below};
use crate::spider::{Secret, Spider};
use crate::text::printable;

/// Reads the keys of a sink's kind.
type ReadSink = fn(&mut Section<'_>) -> Option<SinkSettings>;

/// The kinds of sinks, and what reads the rest of each.
const KINDS: [(&str, ReadSink); 7] = [
    ("jsonl", |section| lines(section).map(SinkSettings::Jsonl)),
    ("csv", csv),
    ("stream", |_| Some(SinkSettings::Stream)),
    ("postgres", postgres),
    ("webhook", webhook),
    ("parquet", |section| files(section, true).map(SinkSettings::Parquet)),
    ("warc", |section| files(section, true).map(SinkSettings::Warc)),
];

pub(super) fn sink(mut section: Section<'_>) -> Option<SinkSettings> {
    let read = section.need("kind", |given| given.one_of(&KINDS))?;
    let sink = read(&mut section);
    section.end();
    sink
}

fn csv(section: &mut Section<'_>) -> Option<SinkSettings> {
    let bom = section.read("bom", Given::flag).unwrap_or_default();
    lines(section).map(|sink| SinkSettings::Csv(FileSink { bom, ..sink }))
}

fn lines(section: &mut Section<'_>) -> Option<FileSink> {
    let compress = section.read("compress", Given::variant).unwrap_or_default();
    files(section, false).map(|sink| FileSink { compress, ..sink })
}

fn files(section: &mut Section<'_>, is_folder: bool) -> Option<FileSink> {
    let path = section.need("path", |given| path(given, is_folder));
    let rotate = section.read("rotate", size);
    let sync = section.read("sync", Given::flag).unwrap_or_default();
    let (path, below) = path?;
    Some(FileSink { below, rotate, sync, ..FileSink::new(path) })
}

fn postgres(section: &mut Section<'_>) -> Option<SinkSettings> {
    let url = section.need("url", server);
    let table = section.read("table", Given::words).map(|table| table.value);
    Some(SinkSettings::Postgres { url: url?, table })
}

fn webhook(section: &mut Section<'_>) -> Option<SinkSettings> {
    let url = section.need("url", |given| {
        let url = webhooks::address(given)?;
        Some(secret::server(given, &Secret::new(url.reveal())))
    });
    let secret = section.need("secret", webhooks::secret);
    let changed = section.read("changed", Given::flag).unwrap_or_default();
    Some(SinkSettings::Webhook { url: url?, secret: secret?, changed })
}

fn server(given: &Given<'_>) -> Option<ServerUrl> {
    let secret = secret(given)?;
    if secret.reveal().starts_with("postgres://") || secret.reveal().starts_with("postgresql://") {
        Some(secret::server(given, &secret))
    } else {
        given.wrong("write postgres://user:password@host:port/database, or { env = \"NAME\" }")
    }
}

/// Reads the path of a sink or of a folder of files, and the folder that it must stay in: `None` for no restriction, if
/// the text is from this machine.
pub(super) fn path(given: &Given<'_>, is_folder: bool) -> Option<(PathBuf, Option<PathBuf>)> {
    let path = PathBuf::from(given.words_of(within_a_folder)?.value);
    if let Err(what) = check_path(&path.to_string_lossy()) {
        return given.wrong(what);
    }
    let Some(limits) = given.notes.limits() else { return Some((path, None)) };
    let root = &limits.sinks_dir;
    match path_below(&path, root) {
        Some(rest) if is_folder || rest != Path::new("") => Some((path, Some(root.clone()))),
        _ => given.wrong(format_args!(
            "a spider that is deployed, or comes with a crawl, writes nowhere but below the folder `spiders.sinks_dir` of the \
             settings, without `..`: write `{}`",
            printable(&root.join(if is_folder { "shop" } else { "shop.jsonl" }).to_string_lossy(), 100)
        )),
    }
}

/// Checks the value of an argument, which must not select the folder.
fn within_a_folder(value: &str) -> Result<(), &'static str> {
    match value.contains(['/', '\\']) || value.starts_with('.') {
        true => Err("leads out of its folder: in a path it may have no slash, and no dot at its beginning"),
        false => Ok(()),
    }
}

/// Reads a size: `1 GB`, or a number of bytes.
pub(super) fn size(given: &Given<'_>) -> Option<ByteSize> {
    let size = match given.value.get_ref() {
        DeValue::Integer(_) => ByteSize::b(given.whole(1)?),
        _ => given.parsed()?,
    };
    if size.as_u64() > 0 { Some(size) } else { given.wrong("must be more than nothing") }
}

/// Reports fields that cannot be columns of a table, if there is a sink with tables.
pub(super) fn note_system_columns(given: &Given<'_>, spider: &Spider) {
    let has_tables = |sink: &SinkSettings| matches!(sink, SinkSettings::Postgres { .. });
    if !spider.sinks.iter().flatten().any(has_tables) {
        return;
    }
    let of_items = spider.item_fields().flat_map(|(_, fields)| fields).map(|(name, _)| name);
    let names = of_items.chain(spider.carried().map(|(name, _)| name.clone()));
    let names: Vec<String> = names.filter(|name| is_system_column(name)).collect();
    if !names.is_empty() {
        let names = listed(names.iter().map(String::as_str));
        given.wrong::<()>(format_args!(
            "PostgreSQL has columns of these names of its own, so a field needs another: {names}"
        ));
    }
}
