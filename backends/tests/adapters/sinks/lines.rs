//! JSON Lines and comma-separated values.

use async_trait::async_trait;
use bytesize::ByteSize;
use serde_json::{Map, Value};
use tempfile::TempDir;
use trawl_common::ports::{ErrorKind, Page};
use trawl_common::settings::{self, FileSink};
use trawl_common::spider::Kind;
use trawl_common::spider::item::Item;
use trawl_testkit::conformance::sink::Shelf;
use trawl_testkit::faults::disk::Disk;

use super::*;

/// A kind of file.
type As = fn(FileSink) -> SinkSettings;

struct LinesShelf(SinkSettings);

#[async_trait]
impl Shelf for LinesShelf {
    async fn open(&self) -> Arc<dyn Sink> {
        open(&self.0)
    }

    async fn items(&self) -> Vec<Item> {
        match &self.0 {
            SinkSettings::Csv(lines) => from_csv(&unpacked(&lines.path, lines.compress)),
            SinkSettings::Jsonl(lines) => from_json(&unpacked(&lines.path, lines.compress)),
            other => panic!("no file of lines: {other:?}"),
        }
    }

    fn read_back(&self, value: Value) -> Value {
        // A cell is as empty of nothing as of an empty text.
        if matches!(self.0, SinkSettings::Csv(_)) && value == "" { Value::Null } else { value }
    }
}

fn from_json(text: &str) -> Vec<Item> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn from_csv(text: &str) -> Vec<Item> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let item = |record: csv::StringRecord| {
        let (mut own, mut fields) = (Map::new(), Map::new());
        for (name, cell) in names.iter().zip(&record) {
            match spider().items[0]
                .fields
                .iter()
                .find(|(field, _)| field == name.trim_start_matches("field_"))
            {
                Some((field, how)) if name != "url" => {
                    let text =
                        !how.list && matches!(how.kind, Kind::Text | Kind::Date | Kind::Url | Kind::Html);
                    fields.insert(field.clone(), value(cell, text && field != "nested"));
                }
                _ => drop(own.insert(name.clone(), value(cell, !matches!(&**name, "status" | "depth")))),
            }
        }
        own.insert("fields".to_owned(), fields.into());
        serde_json::from_value(own.into()).unwrap()
    };
    reader.records().map(|record| item(record.unwrap())).collect()
}

fn value(cell: &str, is_text: bool) -> Value {
    match cell.strip_prefix('\'') {
        _ if cell.is_empty() => Value::Null,
        Some(formula) if formula.starts_with(['=', '+', '-', '@']) => formula.into(),
        _ if is_text => cell.into(),
        _ => serde_json::from_str(cell).unwrap(),
    }
}

fn lines(path: PathBuf, compress: Compress) -> FileSink {
    FileSink { compress, ..FileSink::new(path) }
}

fn shelf(name: &str, kind: As, compress: Compress) -> (TempDir, Arc<dyn Shelf>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join(name);
    (folder, Arc::new(LinesShelf(kind(lines(path, compress)))))
}

mod jsonl {
    async fn plain() -> (super::TempDir, super::Arc<dyn super::Shelf>) {
        super::shelf("items.jsonl", super::SinkSettings::Jsonl, super::Compress::None)
    }
    trawl_testkit::sink_conformance!(plain);
}

mod jsonl_gzip {
    async fn gzip() -> (super::TempDir, super::Arc<dyn super::Shelf>) {
        super::shelf("items.jsonl.gz", super::SinkSettings::Jsonl, super::Compress::Gzip)
    }
    trawl_testkit::sink_conformance!(gzip);
}

mod jsonl_zstd {
    async fn zstd() -> (super::TempDir, super::Arc<dyn super::Shelf>) {
        super::shelf("items.jsonl.zst", super::SinkSettings::Jsonl, super::Compress::Zstd)
    }
    trawl_testkit::sink_conformance!(zstd);
}

mod csv_plain {
    async fn plain() -> (super::TempDir, super::Arc<dyn super::Shelf>) {
        super::shelf("items.csv", super::SinkSettings::Csv, super::Compress::None)
    }
    trawl_testkit::sink_conformance!(plain);
}

mod csv_zstd {
    async fn zstd() -> (super::TempDir, super::Arc<dyn super::Shelf>) {
        super::shelf("items.csv.zst", super::SinkSettings::Csv, super::Compress::Zstd)
    }
    trawl_testkit::sink_conformance!(zstd);
}

/// Pages with one item each.
fn pages(numbers: std::ops::Range<usize>) -> Vec<Page> {
    numbers
        .map(|number| {
            super::page(number, serde_json::json!({ "text": format!("text {number},\r\n\"é\"\r") }))
        })
        .collect()
}

fn every_form() -> Vec<(As, Compress)> {
    let compressions = [Compress::None, Compress::Gzip, Compress::Zstd];
    compressions
        .into_iter()
        .flat_map(|compress| [(SinkSettings::Jsonl as _, compress), (SinkSettings::Csv as _, compress)])
        .collect()
}

#[tokio::test]
async fn wherever_a_crash_cuts_the_last_put_short_all_before_it_is_whole_and_the_next_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (kind, compress)) in every_form().into_iter().enumerate() {
        let path = folder.path().join(format!("{number}"));
        let settings = kind(lines(path.clone(), compress));
        let shelf = LinesShelf(settings.clone());
        let (first, last) = (pages(0..2), pages(2..3));
        open(&settings).put(&first).await.unwrap();
        let before = fs::metadata(&path).unwrap().len() as usize;
        let whole_before = shelf.items().await;
        open(&settings).put(&last).await.unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in before..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            drop(open(&settings));
            // Nothing is missing of the last one but what ends its line.
            let is_there = compress == Compress::None && cut + 1 == whole.len();
            match is_there {
                true => assert_eq!(fs::read(&path).unwrap(), whole, "{settings:?} cut at {cut}"),
                false => assert_eq!(shelf.items().await, whole_before, "{settings:?} cut at {cut}"),
            }
            open(&settings).put(&last).await.unwrap();
            let items = 3 + usize::from(is_there);
            assert_eq!(shelf.items().await.len(), items, "{settings:?} cut at {cut}");
        }
    }
}

/// A disk may have made a file longer, and not have written what it was made longer for.
#[tokio::test]
async fn zeros_that_a_power_cut_left_at_the_end_are_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let many = vec![0u8; 33 << 20];
    for (name, kind, begun) in [
        ("a", SinkSettings::Jsonl as As, &b"{\"id\":\"\0\0\0"[..]),
        ("b", SinkSettings::Csv, &b"0123456789abcdef0123456789abcdef,http\0\0\0"[..]),
    ] {
        let settings = kind(lines(folder.path().join(name), Compress::None));
        open(&settings).put(&pages(0..1)).await.unwrap();
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for torn in [&[0u8; 5000][..], &many[..], begun] {
            fs::write(&path, [&whole, torn].concat()).unwrap();
            drop(open(&settings));
            assert_eq!(fs::read(&path).unwrap(), whole, "{name}");
        }
        fs::write(&path, [0u8; 5000]).unwrap();
        drop(open(&settings));
        assert!(!fs::read(&path).unwrap().contains(&0), "{name}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_trawls_is_refused_and_left_alone() {
    let item = serde_json::to_string(&pages(0..1)[0].items[0]).unwrap();
    let picture = [&b"\x89PNG\r\n\x1a\n"[..], &[0xff; 5000]].concat();
    let gzip = |text: &str| {
        let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut member, text.as_bytes()).unwrap();
        member.finish().unwrap()
    };
    let theirs: Vec<Vec<u8>> = vec![
        b"{\"mine\": 1}".into(),
        b"{\"mine\": 1}\n".into(),
        b"{\n  \"id\": \"x\"\n}".into(),
        b"{\"id\":\"x\",\"price\":1}".into(),
        b"[]".into(),
        b"https://a.example/1\nhttps://a.example/2".into(),
        b"https://a.example/1\n".into(),
        b"name,price\na,1\nb,2".into(),
        b"id\nx\n".into(),
        b"\n".into(),
        format!("{item}\nhttps://a.example/2").into_bytes(),
        format!("{item}\n{{\"mine\": 1}}").into_bytes(),
        picture,
        gzip("https://a.example/1\n"),
        gzip("https://a.example/1\n")[..20].into(),
        b"mine".into(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs");
    for (kind, compress) in every_form() {
        for theirs in &theirs {
            for rotate in [None, Some(ByteSize(1))] {
                fs::write(&path, theirs).unwrap();
                let settings = kind(FileSink { rotate, ..lines(path.clone(), compress) });
                let shown = String::from_utf8_lossy(theirs);
                let error = open_for(&spider(), &settings).err();
                let error = error.unwrap_or_else(|| panic!("{settings:?} takes {shown:?}"));
                assert_eq!(error.kind, ErrorKind::Refused, "{settings:?} {shown:?}: {error}");
                assert!(error.to_string().contains("move "), "{error}");
                assert_eq!(fs::read(&path).unwrap(), *theirs, "{settings:?} {shown:?}");
                assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "{settings:?} {shown:?}");
            }
        }
    }
}

/// A batch is one member or frame, of more than any single item has.
#[tokio::test]
async fn a_large_write_to_a_compressed_file_that_was_torn_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    for (compress, magic) in
        [(Compress::Gzip, &[0x1f, 0x8b, 8, 0][..]), (Compress::Zstd, &[0x28, 0xb5, 0x2f, 0xfd][..])]
    {
        let path = folder.path().join(format!("{compress:?}"));
        let settings = SinkSettings::Jsonl(lines(path.clone(), compress));
        open(&settings).put(&pages(0..1)).await.unwrap();
        let whole = fs::read(&path).unwrap();
        // As much as a write of 33 MB leaves that lacks its last byte.
        let torn = one_member(compress, 33 << 20);
        assert!(torn.starts_with(magic));
        fs::write(&path, [&whole, &torn[..torn.len() - 1]].concat()).unwrap();
        drop(open(&settings));
        assert_eq!(fs::read(&path).unwrap(), whole, "{compress:?}");
    }
}

/// One member or frame of at least so many bytes.
fn one_member(compress: Compress, bytes: usize) -> Vec<u8> {
    // It cannot be compressed.
    let mut state = 1u64;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let text: Vec<u8> = noise.take(bytes / 8 + 1).flatten().collect();
    match compress {
        Compress::Gzip => {
            let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            std::io::Write::write_all(&mut member, &text).unwrap();
            member.finish().unwrap()
        }
        _ => zstd::encode_all(&text[..], 0).unwrap(),
    }
}

/// A quotation mark that somebody puts in makes one row of all that follow, which no write left behind.
#[tokio::test]
async fn rows_behind_an_odd_quotation_mark_are_refused_and_not_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.csv");
    let settings = SinkSettings::Csv(lines(path.clone(), Compress::None));
    let page = |number| super::page(number, serde_json::json!({ "text": "plain" }));
    open(&settings).put(&[page(0), page(1), page(2)]).await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let (before, behind) = text.split_once("plain").unwrap();
    let last = text.rfind("plain").unwrap();
    for odd in [
        format!("{before}\"plain{behind}"),
        format!("{before}pl\"ain{behind}"),
        format!("{}pl\"ain{}", &text[..last], &text[last + 5..]),
        text.replacen("id,", "id\",", 1),
        format!("{text}mine"),
    ] {
        fs::write(&path, &odd).unwrap();
        let error = open_for(&spider(), &settings).err().unwrap_or_else(|| panic!("taken: {odd}"));
        assert_eq!(error.kind, ErrorKind::Refused, "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), odd);
    }
}

#[tokio::test]
async fn a_file_begins_with_the_mark_of_utf_8_if_that_is_asked_for_and_goes_on_either_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.csv");
    let settings = |bom| SinkSettings::Csv(FileSink { bom, ..lines(path.clone(), Compress::None) });
    for (number, bom) in [true, true, false].into_iter().enumerate() {
        open(&settings(bom)).put(&pages(number..number + 1)).await.unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("\u{feff}id,url,") && text.matches('\u{feff}').count() == 1);
    assert_eq!(from_csv(&text).len(), 3);
    for torn in 1..20 {
        fs::write(&path, &text.as_bytes()[..torn]).unwrap();
        drop(open(&settings(true)));
        assert!(text.starts_with(&fs::read_to_string(&path).unwrap()));
    }
}

#[tokio::test]
async fn a_file_that_is_large_enough_is_set_aside_and_nothing_is_ever_overwritten() {
    for (kind, compress) in every_form() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.items.jsonl.gz");
        fs::write(folder.path().join("a.items-2.jsonl.gz"), "mine").unwrap();
        let settings = kind(FileSink { rotate: Some(ByteSize(1)), ..lines(path.clone(), compress) });
        // Opened once for two puts, then anew.
        let sink = open(&settings);
        for page in pages(0..3).chunks(2) {
            sink.put(page).await.unwrap();
        }
        drop(sink);
        open(&settings).put(&pages(3..4)).await.unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("a.items-2.jsonl.gz")).unwrap(), "mine");
        fs::remove_file(folder.path().join("a.items-2.jsonl.gz")).unwrap();
        let mut all = Vec::new();
        let mut files = files(folder.path(), ".gz");
        files.sort_by_key(|file| *file == path);
        for file in &files {
            all.extend(LinesShelf(kind(lines(file.clone(), compress))).items().await);
        }
        let items: Vec<Item> = pages(0..4).into_iter().flat_map(|page| page.items).collect();
        let ids = |items: &[Item]| items.iter().map(|item| item.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&all), ids(&items), "{files:?}");
    }
}

#[tokio::test]
async fn no_file_grows_beyond_its_size_unless_one_item_alone_does() {
    for (kind, compress) in every_form() {
        let folder = tempfile::tempdir().unwrap();
        let most = 6000;
        let path = folder.path().join("items");
        let settings = kind(FileSink { rotate: Some(ByteSize(most)), ..lines(path, compress) });
        let sink = open(&settings);
        let batch: Vec<Page> = (0..20).flat_map(noise).chain(pages(20..60)).collect();
        sink.put(&batch).await.unwrap();
        let mut ids = Vec::new();
        for file in files(folder.path(), "") {
            let shelf = LinesShelf(kind(lines(file.clone(), compress)));
            let items = shelf.items().await;
            let size = fs::metadata(&file).unwrap().len();
            assert!(size <= most || items.len() == 1, "{settings:?}: {size} bytes of {}", items.len());
            ids.extend(items.into_iter().map(|item| item.id));
        }
        let expected: Vec<_> = batch.iter().flat_map(|page| &page.items).map(|item| &item.id).collect();
        let same = expected.iter().all(|id| ids.contains(id)) && ids.len() == expected.len();
        assert!(same, "{settings:?}: {} items of {}", ids.len(), expected.len());
    }
}

#[tokio::test]
async fn a_full_disk_is_an_error_that_names_the_file_leaves_nothing_half_and_ends_when_there_is_room() {
    for (kind, compress) in every_form() {
        let disk = Disk::mount(64).unwrap();
        let path = disk.path().join("items");
        let settings = kind(lines(path.clone(), compress));
        let shelf = LinesShelf(settings.clone());
        let sink = open(&settings);
        let mut stored = 0;
        let error = loop {
            match sink.put(&noise(stored)).await {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
        };
        assert!(error.is_temporary() && error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert_eq!(shelf.items().await.len(), stored);
        assert!(sink.put(&noise(stored)).await.is_err());
        disk.resize(1024).unwrap();
        sink.put(&noise(stored)).await.unwrap();
        assert_eq!(shelf.items().await.len(), stored + 1);
    }
}

/// A page whose item does not compress well.
fn noise(number: usize) -> Vec<Page> {
    let text: String = (0..200u64)
        .map(|n| trawl_common::web::url::Fingerprint::from_text(&format!("{number}/{n}")).to_string())
        .collect();
    vec![super::page(number, serde_json::json!({ "text": text }))]
}

#[tokio::test]
async fn two_processes_never_write_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SinkSettings::Jsonl(lines(folder.path().join("items.jsonl"), Compress::None));
    let first = open(&settings);
    let error = open_for(&spider(), &settings).err().unwrap();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(
        error.to_string().contains("items.jsonl: someone else is writing to it: put {worker}"),
        "{error}"
    );
    drop(first);
    open(&settings);
}

#[tokio::test]
async fn spiders_of_one_process_share_a_file_and_placeholders_give_each_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |name: &str| SinkSettings::Jsonl(lines(folder.path().join(name), Compress::None));
    let sinks = Sinks::new(worker(), vec![settings("all.jsonl"), settings("{worker}/{spider}.jsonl")]);
    let other = Spider::without_file("other".parse().unwrap(), &settings::Items::default());
    for spider in [spider(), other] {
        for sink in sinks.open(&spider).unwrap() {
            sink.put(&pages(0..1)).await.unwrap();
        }
    }
    let count = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap().lines().count();
    assert_eq!((count("all.jsonl"), count("w1/suite.jsonl"), count("w1/other.jsonl")), (2, 1, 1));
}

#[tokio::test]
async fn columns_are_what_every_item_has_then_the_fields_and_the_head_is_written_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.csv");
    let settings = SinkSettings::Csv(lines(path.clone(), Compress::None));
    drop(open(&settings));
    open(&settings)
        .put(&[super::page(0, serde_json::json!({ "texts": ["a", "b"], "url": "http://x/" }))])
        .await
        .unwrap();
    let id = super::page(0, Value::Null).items[0].id.clone();
    let expected = format!(
        "id,url,crawl,spider,fetched_at,status,depth,item,change,final_url,number,text,integer,boolean,date,field_url,\
         html,json,texts,numbers,nested\r\n\
         {id},http://site.example/0,c1,suite,2023-11-14T22:13:20.000Z,200,0,,,,,,,,,http://x/,,,\
         \"[\"\"a\"\",\"\"b\"\"]\",,\r\n"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
}

#[tokio::test]
async fn the_name_of_a_column_is_no_formula_and_a_file_that_has_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.csv");
    let settings = SinkSettings::Csv(lines(path.clone(), Compress::None));
    let mut spider = spider();
    spider.items[0].fields[0].0 = "=1+1".to_owned();
    drop(open_for(&spider, &settings).unwrap());
    let head = fs::read_to_string(&path).unwrap();
    assert!(head.contains(",final_url,'=1+1,text,"), "{head}");
    drop(open_for(&spider, &settings).unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), head);
}

#[tokio::test]
async fn a_file_with_other_columns_is_left_alone_or_set_aside_as_asked() {
    for compress in [Compress::None, Compress::Gzip, Compress::Zstd] {
        let folder = tempfile::tempdir().unwrap();
        let settings = lines(folder.path().join("items.csv"), compress);
        let other = Spider::without_file("other".parse().unwrap(), &settings::Items::default());
        drop(open_for(&other, &SinkSettings::Csv(settings.clone())).unwrap());
        let theirs = fs::read(&settings.path).unwrap();
        let error = open_for(&spider(), &SinkSettings::Csv(settings.clone())).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Refused);
        for part in ["items.csv: it has the columns id,", "language,link_count, and", "have id,", "`rotate`"]
        {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(fs::read(&settings.path).unwrap(), theirs);
        let rotated = FileSink { rotate: Some(ByteSize::gb(1)), ..settings.clone() };
        open(&SinkSettings::Csv(rotated)).put(&pages(0..1)).await.unwrap();
        assert_eq!(fs::read(folder.path().join("items-1.csv")).unwrap(), theirs);
        assert_eq!(LinesShelf(SinkSettings::Csv(settings)).items().await.len(), 1);
    }
}

#[tokio::test]
async fn a_file_that_is_not_compressed_as_said_is_refused_and_left_alone() {
    for compress in [Compress::Gzip, Compress::Zstd] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("items.jsonl");
        fs::write(&path, "{\"not\":\"compressed\"}\n").unwrap();
        let error = open_for(&spider(), &SinkSettings::Jsonl(lines(path.clone(), compress))).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Refused);
        assert!(error.to_string().contains("what follows byte 0"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"not\":\"compressed\"}\n");
    }
}

#[tokio::test]
async fn a_device_is_written_to_as_it_is_and_its_error_names_it() {
    let settings = SinkSettings::Jsonl(lines("/dev/full".into(), Compress::None));
    let error = open(&settings).put(&pages(0..1)).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("/dev/full"), "{error}");
}
