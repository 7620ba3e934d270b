//! WARC files and their indexes. `scripts/warc-check` reads them with other programs.

use std::collections::HashMap;

use bytesize::ByteSize;
use flate2::bufread::GzDecoder;
use tempfile::TempDir;
use trawl_common::ports::{Exchange, Page};
use trawl_common::settings::FileSink;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_testkit::faults::disk::Disk;

use super::*;

const WARC: &str = ".warc.gz";

fn settings(folder: &Path) -> SinkSettings {
    SinkSettings::Warc(FileSink::new(folder.to_owned()))
}

/// A page whose body contains its number.
fn captured(number: usize) -> Page {
    let page = super::page(number, Value::Null);
    let request = Headers::from_iter([("host", "site.example"), ("user-agent", "trawl")]);
    let response = Response {
        status: 200,
        headers: Headers::from_iter([
            ("content-type", "Text/HTML; charset=utf-8"),
            ("content-encoding", "gzip"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("x-hostile", "a\r\nb"),
        ]),
        redirected_to: None,
        fetched_at: UnixMs(1_700_000_000_000 + number as u64),
        address: Some([192, 0, 2, 1].into()),
        body: format!("<title>{number}</title>").into(),
    };
    Page { exchange: Some(Exchange { request, response, depth: 2, data: None }), ..page }
}

/// A record: its fields and its block.
struct Record {
    fields: HashMap<String, String>,
    block: String,
    offset: usize,
    length: usize,
}

impl Record {
    fn is(&self, kind: &str) -> bool {
        self.fields["WARC-Type"] == kind
    }
}

/// Returns the records of a complete file.
fn records(file: &Path) -> Vec<Record> {
    let bytes = fs::read(file).unwrap();
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let offset = bytes.len() - rest.len();
        let mut text = String::new();
        GzDecoder::new(&mut rest).read_to_string(&mut text).unwrap();
        let (head, block) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        assert_eq!(lines.next(), Some("WARC/1.1"));
        let fields: HashMap<String, String> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect();
        let block = block.strip_suffix("\r\n\r\n").unwrap().to_owned();
        assert_eq!(fields["Content-Length"], block.len().to_string());
        records.push(Record { fields, block, offset, length: bytes.len() - rest.len() - offset });
    }
    assert!(records.first().is_none_or(|first| first.is("warcinfo")));
    records
}

/// Returns the bodies in the finished files of a folder. Each must also be found through the index.
fn bodies(folder: &Path) -> Vec<String> {
    let mut bodies = Vec::new();
    for file in finished(folder) {
        let responses: Vec<Record> =
            records(&file).into_iter().filter(|record| record.is("response")).collect();
        let index = fs::read_to_string(file.to_string_lossy().replace(WARC, ".cdxj")).unwrap();
        let lines: Vec<&str> = index.lines().collect();
        assert!(lines.is_sorted());
        assert_eq!(lines.len(), responses.len());
        for response in &responses {
            let (offset, length) = (response.offset.to_string(), response.length.to_string());
            let line = lines.iter().map(|line| entry(line)).find(|entry| entry["offset"] == *offset).unwrap();
            assert_eq!(
                (&line["length"], &line["url"]),
                (&length.into(), &response.fields["WARC-Target-URI"].clone().into())
            );
            bodies.push(response.block.split_once("\r\n\r\n").unwrap().1.to_owned());
        }
    }
    bodies
}

fn entry(line: &str) -> Value {
    serde_json::from_str(line.splitn(3, ' ').nth(2).unwrap()).unwrap()
}

fn expected(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("<title>{number}</title>")).collect()
}

fn growing(folder: &Path, ending: &str) -> PathBuf {
    let mut found = files(folder, ending);
    found.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with('_'));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn finished(folder: &Path) -> Vec<PathBuf> {
    let mut found = files(folder, WARC);
    found.retain(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('_'));
    found
}

#[tokio::test]
async fn a_page_is_a_request_a_response_and_what_is_known_of_it_linked_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path()));
    assert!(sink.keeps_responses());
    let mut page = captured(7);
    page.referrer = Some("http://site.example/".parse().unwrap());
    let moved = "http://www.site.example/moved?b&a".parse().unwrap();
    page.exchange.as_mut().unwrap().response.redirected_to = Some(moved);
    sink.put(&[page.clone()]).await.unwrap();
    sink.close().await.unwrap();
    let file = &finished(folder.path())[0];
    let [info, metadata, request, response] = &records(file)[..] else { panic!("four records") };
    assert_eq!(info.fields["WARC-Filename"], file.file_name().unwrap().to_str().unwrap());
    for record in [metadata, request] {
        assert_eq!(record.fields["WARC-Concurrent-To"], response.fields["WARC-Record-ID"]);
    }
    for record in [metadata, request, response] {
        assert_eq!(record.fields["WARC-Warcinfo-ID"], info.fields["WARC-Record-ID"]);
        assert_eq!(record.fields["WARC-Target-URI"], "http://www.site.example/moved?b&a");
        assert_eq!(record.fields["WARC-Date"], "2023-11-14T22:13:20.007Z");
    }
    assert_eq!(response.fields["WARC-IP-Address"], "192.0.2.1");
    assert_eq!(response.fields["WARC-Payload-Digest"], "sha1:PGF7EDBBOZ6ODRFGFBD6SCASVDGKHVPN");
    assert_eq!(
        response.block,
        "HTTP/1.1 200 \r\ncontent-type: Text/HTML; charset=utf-8\r\nX-Archive-Orig-content-encoding: gzip\r\n\
         X-Archive-Orig-transfer-encoding: chunked\r\nx-hostile: a  b\r\nX-Archive-Orig-content-length: 7\r\n\
         content-length: 16\r\n\r\n<title>7</title>"
    );
    assert_eq!(request.block, "GET /moved?b&a HTTP/1.1\r\nhost: site.example\r\nuser-agent: trawl\r\n\r\n");
    let item = &page.items[0].id;
    assert_eq!(
        metadata.block,
        format!(
            "url: http://site.example/7\r\ncrawl: c1\r\nspider: suite\r\nfetched: 2023-11-14T22:13:20.007Z\r\n\
             via: http://site.example/\r\nitem: {item}\r\ndepth: 2\r\n"
        )
    );
    let index = fs::read_to_string(file.to_string_lossy().replace(WARC, ".cdxj")).unwrap();
    assert!(index.starts_with("example,site)/moved?a&b 20231114221320 {\"url\":"), "{index}");
    assert_eq!(entry(&index)["mime"], "text/html");
}

#[tokio::test]
async fn the_same_capture_has_the_same_ids_and_another_has_others() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path()));
    for number in [1, 1, 2] {
        sink.put(&[captured(number)]).await.unwrap();
    }
    sink.close().await.unwrap();
    let records = records(&finished(folder.path())[0]);
    let ids: Vec<&String> = records[1..].iter().map(|record| &record.fields["WARC-Record-ID"]).collect();
    assert_eq!(ids[..3], ids[3..6]);
    let all: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(all.len(), 6);
}

#[tokio::test]
async fn pages_without_their_response_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path()));
    sink.put(&[super::page(0, Value::Null)]).await.unwrap();
    sink.close().await.unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_that_is_large_enough_is_finished_and_a_close_finishes_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let small = FileSink { rotate: Some(ByteSize(1)), ..FileSink::new(folder.path().to_owned()) };
    let sink = open(&SinkSettings::Warc(small));
    for number in 0..3 {
        sink.put(&[captured(number)]).await.unwrap();
    }
    assert_eq!(finished(folder.path()).len(), 2);
    sink.close().await.unwrap();
    assert_eq!(finished(folder.path()).len(), 3);
    assert_eq!(bodies(folder.path()), expected(0..3));
    sink.put(&[captured(3)]).await.unwrap();
    sink.close().await.unwrap();
    assert_eq!(bodies(folder.path()), expected(0..4));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 8);
}

/// Returns the files left behind by a process that died after `puts` puts of one page each.
async fn left_behind(puts: usize) -> (TempDir, Vec<(Vec<u8>, Vec<u8>)>) {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path()));
    let mut states = Vec::new();
    for number in 0..puts {
        sink.put(&[captured(number)]).await.unwrap();
        let read = |ending| fs::read(growing(folder.path(), ending)).unwrap();
        states.push((read(WARC), read(".cdxj")));
    }
    (folder, states)
}

#[tokio::test]
async fn wherever_a_crash_cuts_a_put_short_the_next_process_finishes_what_was_put_before() {
    let (_guard, states) = left_behind(2).await;
    let [(warc, index), (whole_warc, whole_index)] = &states[..] else { panic!("two states") };
    let warc_cuts = (warc.len()..=whole_warc.len()).map(|cut| (&whole_warc[..cut], &index[..]));
    let index_cuts = (index.len()..whole_index.len()).map(|cut| (&whole_warc[..], &whole_index[..cut]));
    // In memory, because each file is synced to disk.
    let disk = Disk::mount(8192).unwrap();
    for (warc, index) in warc_cuts.chain(index_cuts) {
        let folder = tempfile::tempdir_in(disk.path()).unwrap();
        fs::write(folder.path().join("_a.warc.gz"), warc).unwrap();
        fs::write(folder.path().join("_a.cdxj"), index).unwrap();
        open(&settings(folder.path()));
        assert_eq!(bodies(folder.path()), expected(0..1), "cut at {} and {}", warc.len(), index.len());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[tokio::test]
async fn wherever_a_crash_interrupts_the_end_of_a_file_the_next_process_finishes_it() {
    let (_guard, states) = left_behind(2).await;
    let (warc, index) = &states[1];
    let steps: [&[(&str, &[u8])]; 4] = [
        &[("_a.warc.gz", warc), ("_a.cdxj", index), ("_a.sorted", b"half")],
        &[("_a.warc.gz", warc), ("_a.cdxj", index), ("a.cdxj", b"as it was sorted")],
        &[("a.warc.gz", warc), ("_a.cdxj", index), ("a.cdxj", index)],
        &[("a.warc.gz", warc), ("a.cdxj", index), ("_b.cdxj", b"")],
    ];
    for files in steps {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        open(&settings(folder.path()));
        assert_eq!(bodies(folder.path()), expected(0..2));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

#[tokio::test]
async fn what_a_living_process_writes_and_what_is_not_understood_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let living = open(&settings(folder.path()));
    living.put(&[captured(0)]).await.unwrap();
    fs::write(folder.path().join("_odd.cdxj"), "no index\n").unwrap();
    fs::write(folder.path().join("_odd.warc.gz"), "no archive").unwrap();
    drop(open(&settings(folder.path())));
    assert_eq!(finished(folder.path()).len(), 0);
    assert_eq!(fs::read_to_string(folder.path().join("_odd.warc.gz")).unwrap(), "no archive");
    living.put(&[captured(1)]).await.unwrap();
    living.close().await.unwrap();
    assert_eq!(bodies(folder.path()), expected(0..2));
}

#[tokio::test]
async fn a_full_disk_is_an_error_that_names_the_folder_and_nothing_is_half_there() {
    let disk = Disk::mount(256).unwrap();
    let folder = disk.path().join("archive");
    let sink = open(&settings(&folder));
    let mut large = captured(0);
    // A body that compresses badly.
    let noise = (0..2000).map(|n| trawl_common::web::url::Fingerprint::from_text(&n.to_string()).to_string());
    large.exchange.as_mut().unwrap().response.body = noise.collect::<String>().into();
    let mut stored = 0;
    let error = loop {
        match sink.put(&[large.clone(), large.clone()]).await {
            Ok(()) => stored += 2,
            Err(error) => break error,
        }
    };
    assert!(error.is_temporary() && error.to_string().contains(folder.to_str().unwrap()), "{error}");
    disk.resize(1024).unwrap();
    sink.put(&[captured(1)]).await.unwrap();
    sink.close().await.unwrap();
    let bodies = bodies(&folder);
    assert_eq!((bodies.len(), &*bodies[stored]), (stored + 1, "<title>1</title>"));
}

#[tokio::test]
async fn a_file_that_another_machine_took_over_is_left_to_it_and_what_was_just_written_goes_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let sink = open(&settings(folder.path()));
    sink.put(&[captured(0)]).await.unwrap();
    let index = growing(folder.path(), ".cdxj");
    fs::rename(&index, index.with_file_name("_taken~0badcafe00000001.cdxj")).unwrap();
    let error = sink.put(&[captured(1)]).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("taken it over"), "{error}");
    sink.put(&[captured(1)]).await.unwrap();
    sink.close().await.unwrap();
    drop(open(&settings(folder.path())));
    assert_eq!(finished(folder.path()).len(), 1);
    assert_eq!(files(folder.path(), "0badcafe00000001.cdxj").len(), 1, "that machine may be at work on it");
}
