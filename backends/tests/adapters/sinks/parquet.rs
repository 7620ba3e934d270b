//! Parquet files and their spools.

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use async_trait::async_trait;
use bytesize::ByteSize;
use serde_json::json;
use tempfile::TempDir;
use trawl_common::ports::Page;
use trawl_common::settings::{self, FileSink};
use trawl_testkit::conformance::sink::Shelf;
use trawl_testkit::faults::disk::Disk;

use super::*;

fn settings(folder: &Path, rotate: ByteSize) -> SinkSettings {
    SinkSettings::Parquet(FileSink { rotate: Some(rotate), ..FileSink::new(folder.to_owned()) })
}

struct ParquetShelf {
    folder: PathBuf,
    rotate: ByteSize,
}

#[async_trait]
impl Shelf for ParquetShelf {
    async fn open(&self) -> Arc<dyn Sink> {
        let sink = open(&settings(&self.folder, self.rotate));
        // What others left is turned by then.
        sink.close().await.unwrap();
        sink
    }

    async fn items(&self) -> Vec<Item> {
        let spools = files(&self.folder, ".spool");
        let spooled = spools.iter().flat_map(|spool| {
            let text = fs::read_to_string(spool).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Item>>()
        });
        finished(&self.folder).iter().flat_map(|file| from_parquet(file)).chain(spooled).collect()
    }
}

fn finished(folder: &Path) -> Vec<PathBuf> {
    files(folder, ".parquet")
}

fn from_parquet(file: &Path) -> Vec<Item> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let item = |row: ::parquet::record::Row| {
        let (mut own, mut fields) = (Map::new(), Map::new());
        for (name, cell) in row.get_column_iter() {
            let field = if name == "field_url" { "url" } else { name };
            match value(cell) {
                other if name == "other" => assert_eq!(other, Value::Null),
                Value::String(text) if matches!(&**name, "json" | "nested") => {
                    drop(fields.insert(field.to_owned(), serde_json::from_str(&text).unwrap()));
                }
                value
                    if name != "url" && spider().items[0].fields.iter().any(|(known, _)| known == field) =>
                {
                    drop(fields.insert(field.to_owned(), value));
                }
                value => drop(own.insert(name.clone(), value)),
            }
        }
        own.insert("fields".to_owned(), fields.into());
        serde_json::from_value(own.into()).unwrap()
    };
    reader.get_row_iter(None).unwrap().map(|row| item(row.unwrap())).collect()
}

fn value(cell: &Field) -> Value {
    match cell {
        Field::Null => Value::Null,
        Field::Bool(value) => json!(value),
        Field::Long(value) => json!(value),
        Field::Double(value) => json!(value),
        Field::Str(value) => json!(value),
        Field::TimestampMillis(value) => json!(UnixMs(*value as u64).to_string()),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        other => panic!("no such column: {other:?}"),
    }
}

fn shelf(rotate: ByteSize) -> (TempDir, Arc<dyn Shelf>) {
    let guard = tempfile::tempdir().unwrap();
    let folder = guard.path().join("deep/items.parquet");
    (guard, Arc::new(ParquetShelf { folder, rotate }))
}

mod conformance {
    async fn large() -> (super::TempDir, super::Arc<dyn super::Shelf>) {
        super::shelf(super::ByteSize::gb(1))
    }
    trawl_testkit::sink_conformance!(large);
}

fn pages(numbers: std::ops::Range<usize>) -> Vec<Page> {
    numbers.map(|number| page(number, json!({ "text": format!("text {number}") }))).collect()
}

fn items(pages: &[Page]) -> Vec<Item> {
    pages.iter().flat_map(|page| page.items.clone()).collect()
}

#[tokio::test]
async fn a_spool_that_is_large_enough_becomes_a_file_while_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = ParquetShelf { folder: folder.path().to_owned(), rotate: ByteSize(1) };
    let sink = shelf.open().await;
    let all = pages(0..40);
    sink.put(&all[..10]).await.unwrap();
    while finished(folder.path()).is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    for part in all[10..].chunks(10) {
        sink.put(part).await.unwrap();
    }
    sink.close().await.unwrap();
    assert_eq!(files(folder.path(), ".spool").len(), 0);
    assert!(finished(folder.path()).len() > 1);
    let mut found = shelf.items().await;
    found.sort_by(|a, b| a.fetched_at.cmp(&b.fetched_at));
    assert_eq!(found, items(&all));
}

#[tokio::test]
async fn wherever_a_crash_cuts_a_put_short_the_next_process_turns_what_was_put_before() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path(), ByteSize::gb(1)));
    let mut states = Vec::new();
    for page in pages(0..2) {
        sink.put(&[page]).await.unwrap();
        states.push(fs::read(&files(folder.path(), ".spool")[0]).unwrap());
    }
    // In memory, as each file is synced to its disk.
    let disk = Disk::mount(8192).unwrap();
    for cut in states[0].len()..states[1].len() {
        let folder = tempfile::tempdir_in(disk.path()).unwrap();
        fs::write(folder.path().join("_a.spool"), &states[1][..cut]).unwrap();
        fs::write(folder.path().join("_a.parquet"), "half").unwrap();
        open(&settings(folder.path(), ByteSize::gb(1))).close().await.unwrap();
        // Nothing is missing of the last one but what ends its line.
        let whole = if cut + 1 == states[1].len() { 2 } else { 1 };
        assert_eq!(from_parquet(&folder.path().join("a.parquet")), items(&pages(0..whole)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn a_spool_that_was_turned_but_not_removed_is_turned_into_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path(), ByteSize::gb(1)));
    sink.put(&pages(0..3)).await.unwrap();
    let spool = files(folder.path(), ".spool").remove(0);
    let content = fs::read(&spool).unwrap();
    sink.close().await.unwrap();
    fs::write(spool, content).unwrap();
    open(&settings(folder.path(), ByteSize::gb(1))).close().await.unwrap();
    assert_eq!(finished(folder.path()).len(), 1);
    assert_eq!(from_parquet(&finished(folder.path())[0]), items(&pages(0..3)));
}

#[tokio::test]
async fn spools_of_the_living_of_other_spiders_and_of_nobody_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), ByteSize::gb(1));
    let living = open(&settings);
    living.put(&pages(0..1)).await.unwrap();
    fs::write(folder.path().join("_odd.spool"), "{}\n").unwrap();
    let other = Spider::without_file("other".parse().unwrap(), &settings::Items::default());
    for spider in [spider(), other] {
        open_for(&spider, &settings).unwrap().close().await.unwrap();
    }
    assert_eq!(finished(folder.path()).len(), 0);
    assert_eq!(files(folder.path(), ".spool").len(), 2);
    living.put(&pages(1..2)).await.unwrap();
    living.close().await.unwrap();
    assert_eq!(from_parquet(&finished(folder.path())[0]), items(&pages(0..2)));
}

#[tokio::test]
async fn what_fits_no_column_is_kept_as_json_in_a_column_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path(), ByteSize::gb(1)));
    let odd = json!({ "integer": "many", "numbers": [1, "two"], "texts": "one", "more": 1, "text": "fits" });
    sink.put(&[page(0, odd)]).await.unwrap();
    sink.close().await.unwrap();
    let file = File::open(&finished(folder.path())[0]).unwrap();
    let row = SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap().next().unwrap().unwrap();
    let cells: std::collections::HashMap<_, _> =
        row.get_column_iter().map(|(name, cell)| (&**name, value(cell))).collect();
    assert_eq!(
        (&cells["integer"], &cells["numbers"], &cells["texts"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(cells["text"], "fits");
    let other: Value = serde_json::from_str(cells["other"].as_str().unwrap()).unwrap();
    assert_eq!(other, json!({ "integer": "many", "numbers": [1, "two"], "texts": "one", "more": 1 }));
}

#[tokio::test]
async fn a_disk_that_is_too_full_for_the_file_keeps_the_spool_and_says_so() {
    let disk = Disk::mount(192).unwrap();
    let sink = open(&settings(disk.path(), ByteSize::gb(1)));
    let noise = (0..4000).map(|n| trawl_common::web::url::Fingerprint::from_text(&n.to_string()).to_string());
    let large = page(0, json!({ "text": noise.collect::<String>() }));
    sink.put(std::slice::from_ref(&large)).await.unwrap();
    let error = sink.close().await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains(disk.path().to_str().unwrap()), "{error}");
    assert_eq!((files(disk.path(), ".spool").len(), finished(disk.path()).len()), (1, 0));
    disk.resize(1024).unwrap();
    sink.close().await.unwrap();
    assert!(from_parquet(&finished(disk.path())[0]) == large.items);
}

/// The types that a reader finds, for what a spider's fields are.
#[tokio::test]
async fn columns_have_the_types_of_their_fields() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path(), ByteSize::gb(1)));
    sink.put(&pages(0..1)).await.unwrap();
    sink.close().await.unwrap();
    let reader = SerializedFileReader::new(File::open(&finished(folder.path())[0]).unwrap()).unwrap();
    let mut text = Vec::new();
    ::parquet::schema::printer::print_schema(&mut text, reader.metadata().file_metadata().schema());
    let text = String::from_utf8(text).unwrap();
    for line in [
        "OPTIONAL INT64 fetched_at (TIMESTAMP(MILLIS,true));",
        "OPTIONAL INT64 status;",
        "OPTIONAL DOUBLE number;",
        "OPTIONAL INT64 integer;",
        "OPTIONAL BOOLEAN boolean;",
        "OPTIONAL BYTE_ARRAY date (STRING);",
        "OPTIONAL BYTE_ARRAY field_url (STRING);",
        "OPTIONAL group texts (LIST) {",
        "OPTIONAL DOUBLE element;",
        "OPTIONAL BYTE_ARRAY nested (STRING);",
        "OPTIONAL BYTE_ARRAY other (STRING);",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test]
async fn a_spool_of_another_machine_is_left_to_it_and_one_that_was_taken_over_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path(), ByteSize::gb(1)));
    sink.put(&pages(0..1)).await.unwrap();
    let spool = files(folder.path(), ".spool").remove(0);
    // As another machine does that took this one for dead.
    let taken = folder.path().join("_taken~0badcafe00000001.spool");
    fs::rename(&spool, &taken).unwrap();
    let error = sink.put(&pages(1..2)).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("taken it over"), "{error}");
    sink.put(&pages(1..2)).await.unwrap();
    sink.close().await.unwrap();
    assert_eq!(from_parquet(&finished(folder.path())[0]), items(&pages(1..2)));
    assert!(taken.exists(), "that machine may be at work on it");
}
