//! Sources of `trawl crawl`.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use super::{LIMIT, crawl, crawl_stats, stderr};
use crate::support::items_in;

#[tokio::test]
async fn a_state_file_of_other_sources_is_not_mixed_with_these() {
    let site = Site::serve(50).await;
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    site.hold_after(10);
    let mut killed = crawl(folder.path(), &source).spawn().unwrap();
    timeout(LIMIT, site.asked_for(18)).await.unwrap();
    killed.kill().await.unwrap();
    site.answer_all();
    fs::write(folder.path().join("list.txt"), site.page(60)).unwrap();
    let other = crawl(folder.path(), "list.txt").output().await.unwrap();
    let printed = stderr(&other);
    assert_eq!(other.status.code(), Some(2), "{printed}");
    for part in [&source, "--state", "trawl cancel "] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let output = crawl(folder.path(), &source).output().await.unwrap();
    assert_eq!(
        (output.status.code(), &crawl_stats(&output)["done"]),
        (Some(0), &50.into()),
        "{}",
        stderr(&output)
    );
    // Once that crawl is finished, the file takes another one.
    let other = crawl(folder.path(), "list.txt").output().await.unwrap();
    assert_eq!(
        (other.status.code(), &crawl_stats(&other)["admitted"]),
        (Some(3), &1.into()),
        "{}",
        stderr(&other)
    );
}

#[tokio::test]
async fn a_pipe_is_crawled_line_by_line_and_ctrl_c_ends_it_although_it_stays_open() {
    let site = Site::serve(10).await;
    let folder = tempfile::tempdir().unwrap();
    let mut piped = crawl(folder.path(), "-");
    let piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut piped = piped.spawn().unwrap();
    let mut lines = piped.stdin.take().unwrap();
    for number in 0..3 {
        lines.write_all(format!("{}\n", site.page(number)).as_bytes()).await.unwrap();
        // The page is requested before the next line is written.
        timeout(LIMIT, site.asked_for(number + 1)).await.unwrap();
    }
    let pid = piped.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let output = timeout(LIMIT, piped.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(items_in(folder.path()).len(), 3);
    drop(lines);
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_named_and_the_others_go_on() {
    let site = Site::serve(3).await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
    let entries = (0..3).map(|number| format!("{}\n", site.page(number))).collect::<String>();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(entries.repeat(1000).as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    write("cut.gz", &gzip[..gzip.len() / 2]);
    write("picture.xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>");
    write("empty.xml", b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>");
    let loop_index =
        format!("<sitemapindex><sitemap><loc>{}/missing.xml</loc></sitemap></sitemapindex>", site.origin);
    write("index.xml", loop_index.as_bytes());
    let long = "x".repeat(10_000_000);
    write(
        "list.txt",
        &[entries.as_bytes(), long.as_bytes(), b"\n/relative\njavascript:alert(1)\n\xff\xfe\n"].concat(),
    );

    write("words.txt", b"%PDF-1.7\nendobj\n");

    let sources = ["list.txt", "gone.xml", "cut.gz", "picture.xml", "empty.xml", "index.xml", "words.txt"];
    let mut command = crawl(folder.path(), sources[0]);
    let output = command.args(&sources[1..]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(crawl_stats(&output)["done"], 3);
    let printed = stderr(&output);
    for expected in [
        "problem: gone.xml: cannot be opened",
        "problem: cut.gz: gzip stream ends early",
        "problem: picture.xml: ",
        "/missing.xml: cannot be fetched: http: 404",
        "warning: empty.xml: no URL in it",
        "warning: words.txt: no URL in it",
        "6 invalid",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[tokio::test]
async fn an_index_that_names_itself_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::serve(2).await;
    // The site's sitemap, and an index on disk that lists it twice.
    let entry = format!("<sitemap><loc>{}/sitemap.xml</loc></sitemap>", site.origin);
    fs::write(folder.path().join("index.xml"), format!("<sitemapindex>{entry}{entry}</sitemapindex>"))
        .unwrap();
    let output = crawl(folder.path(), "index.xml").output().await.unwrap();
    assert_eq!((output.status.code(), &crawl_stats(&output)["done"]), (Some(0), &2.into()));
    assert_eq!(site.log()["/sitemap.xml"], 1);
}
