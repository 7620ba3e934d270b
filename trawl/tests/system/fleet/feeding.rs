//! Several runs of the producer at the same time.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::fleet::write_spider;
use crate::support::{Fleet, LIMIT, ends_well};

#[tokio::test]
async fn a_run_that_meets_another_reading_sources_reports_it_and_exits_with_success() {
    let fleet = Fleet::new().await;
    // Standard input stays open: the first is still reading when the second starts.
    let spider = format!("--spider={}", fleet.name);
    let mut first = fleet.command(&["producer", "-", &spider, &format!("--crawl={}", fleet.name)]);
    let mut first = first.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // The crawl has stats once its lease is taken, because one script does both.
    let opened =
        async { while !fleet.command(&["status", &fleet.name]).output().await.unwrap().status.success() {} };
    timeout(LIMIT, opened).await.unwrap();
    let second = fleet.command(&["producer", "/dev/null", &spider]).output().await.unwrap();
    let printed = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(0), "{printed}");
    assert!(printed.contains(&format!("nothing to do: crawl {} of spider", fleet.name)), "{printed}");
    drop(first.stdin.take());
    assert_eq!(timeout(LIMIT, first.wait()).await.unwrap().unwrap().code(), Some(0));
}

#[tokio::test]
async fn runs_that_fetch_pages_again_do_not_pile_up_unless_they_are_asked_to() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    write_spider(&fleet, "recrawl = 'always'");
    let (sitemap, spider) = (format!("{}/sitemap.xml", site.origin), format!("--spider={}", fleet.name));
    let run = async |more: &[&str]| {
        let mut words = vec!["producer", &sitemap, &spider];
        words.extend(more);
        let output = timeout(LIMIT, fleet.command(&words).output()).await.unwrap().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{printed}");
        let crawls = fleet.command(&["status", "--json"]).output().await.unwrap();
        (printed, String::from_utf8(crawls.stdout).unwrap().lines().count())
    };
    let runs: [(&[&str], &str, usize); 4] = [
        (&[], "3 URLs new in crawl ", 1),
        (&[], "nothing to do: crawl ", 1),
        (&["--if-running", "join"], "0 URLs new in crawl ", 1),
        (&["--if-running", "start"], "3 URLs new in crawl ", 2),
    ];
    for (more, expected, crawls) in runs {
        let (printed, count) = run(more).await;
        assert!(printed.contains(expected) && count == crawls, "{more:?}: {count} crawls; {printed}");
    }
}

#[tokio::test]
async fn several_producers_feed_one_crawl_line_by_line_and_it_ends_after_the_last() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    write_spider(&fleet, "max_pages = 60");
    let worker = fleet.worker(&[]);
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let feed = || {
        let mut command = fleet.command(&["producer", "-", &spider, &crawl, "-q"]);
        command.stdin(Stdio::piped()).spawn().unwrap()
    };
    let mut producers = [feed(), feed()];
    for (number, at) in [(0, 0), (1, 1), (2, 1)] {
        if number == 2 {
            drop(producers[0].stdin.take());
            assert!(timeout(LIMIT, producers[0].wait()).await.unwrap().unwrap().success());
        }
        let line = format!("{}\n", site.page(number));
        producers[at].stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
        timeout(LIMIT, site.asked_for(number + 1)).await.unwrap();
    }
    drop(producers[1].stdin.take());
    assert!(timeout(LIMIT, producers[1].wait()).await.unwrap().unwrap().success());
    let ended =
        timeout(LIMIT, fleet.command(&["wait", &fleet.name, "--json"]).output()).await.unwrap().unwrap();
    let stats: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.status.code(), &stats["done"]), (Some(0), &3.into()));
    ends_well(worker).await;
}

#[tokio::test]
async fn a_run_prints_the_id_of_its_crawl_and_as_json_what_it_did() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    let (sitemap, spider) = (format!("{}/sitemap.xml", site.origin), format!("--spider={}", fleet.name));
    let run = async |more: &[&str]| {
        let words = [&["producer", &sitemap, &spider], more].concat();
        let output = timeout(LIMIT, fleet.command(&words).output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let object = |printed: &str| -> Value { serde_json::from_str(printed).unwrap() };
    let (id, _) = run(&[]).await;
    let newest = fleet.command(&["status", "latest", "--json"]).output().await.unwrap();
    assert_eq!(object(&String::from_utf8(newest.stdout).unwrap())["crawl"], id.trim());
    let (printed, _) = run(&["--crawl", "latest", "--json", "-q"]).await;
    let run_again = object(&printed);
    assert_eq!(
        (&run_again["new"], &run_again["seen"], &run_again["found"]),
        (&0.into(), &3.into(), &3.into())
    );
    let (printed, _) = run(&["--crawl", id.trim(), "--json", "-q"]).await;
    assert_eq!((&object(&printed)["crawl"], &object(&printed)["books"]), (&id.trim().into(), &Value::Null));

    let (printed, _) = run(&["--dry-run", "--json"]).await;
    let lines: Vec<Value> = printed.lines().map(object).collect();
    assert_eq!(
        (lines.len(), &lines[0]["lane"], &lines[3]["found"]),
        (4, &"bulk".into(), &3.into()),
        "{printed}"
    );
    let (printed, said) = run(&["-q"]).await;
    assert_ne!(printed.trim(), id.trim(), "the id of a new crawl, for scripts");
    assert_eq!(
        (printed.lines().count(), said),
        (1, String::new()),
        "with its output thrown away, cron mails nothing"
    );
    let worker = fleet.worker(&[]);
    let (printed, _) = run(&["--crawl", id.trim(), "--wait", "--json", "-q"]).await;
    assert_eq!(object(&printed)["books"]["done"], 3, "{printed}");
    let none = fleet.command(&["producer", &sitemap, "--crawl", "latest"]).output().await.unwrap();
    let printed = String::from_utf8(none.stderr).unwrap();
    assert!(none.status.code() == Some(2) && printed.contains("no crawl of spider default yet"), "{printed}");
    let items = fleet.command(&["items", "--crawl", &id.trim()[..20], "-q"]).output().await.unwrap();
    assert_eq!(String::from_utf8(items.stdout).unwrap().lines().count(), 3);
    ends_well(worker).await;
}
