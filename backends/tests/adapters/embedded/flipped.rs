//! One bit of a state file is another than it was written: its crawl ends all the same, or the row is named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use rusqlite::types::Value;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;

use super::support::*;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{StartReply, Task, Work};
use trawl_common::health::Health;
use trawl_common::politeness::gcra::Pace;
use trawl_common::ports::{
    Claim, Claimed, Completion, Disposition, Error, Finish, Frontier, NewWork, Settlement,
};
use trawl_common::request::NewRequest;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;

/// The tables of which a crawl goes on.
const TABLES: [&str; 11] = [
    "crawls",
    "records",
    "fresh",
    "seen",
    "gone",
    "failed",
    "hosts",
    "tasks",
    "requests",
    "crawl_reasons",
    "crawl_hosts",
];

/// URLs of both lanes, requests and tasks.
fn work() -> Vec<NewWork> {
    let request = |number: usize| {
        let new = NewRequest { data: Some(number.into()), ..NewRequest::get("") };
        let url = page(number).work.page().unwrap().clone();
        NewWork::new(Work::of_request(url, new).unwrap(), Lane::Bulk)
    };
    let task = |number: usize| {
        let new = NewTask::from_line(&json!({ "recipe": format!("task {number}") }).to_string()).unwrap();
        NewWork::new(Task::new(&crawl().spider, new).into(), Lane::Task)
    };
    let urgent = |number: usize| NewWork { lane: Lane::Priority, ..page(number) };
    (0..8)
        .map(page)
        .chain((8..12).map(urgent))
        .chain((12..15).map(request))
        .chain((15..18).map(task))
        .collect()
}

/// A crawl that was broken off: some of it is done, has begun, failed, or waits.
async fn half_done() -> (TempDir, PathBuf) {
    let (directory, engine) = state_file();
    let session = open_crawl(&engine, crawl()).await;
    session.admit(&work()).await.unwrap();
    let worker = join(&engine);
    let claimed = worker.claim(9).await.unwrap();
    worker.settle(vec![done(&claimed[0]), failed(&claimed[1])]).await.unwrap();
    worker.start(&[Claim::new(&claimed[2].message), Claim::new(&claimed[3].message)]).await.unwrap();
    let until = UnixMs::now();
    let waiting = [(4, Disposition::Retry { until }, false), (5, Disposition::Snooze { until }, true)];
    for (at, disposition, has_slot) in waiting {
        let mut message = claimed[at].message.clone();
        message.slot = has_slot.then(UnixMs::now);
        worker.settle(vec![Settlement { message, disposition }]).await.unwrap();
    }
    let mut ask = ask("site.example");
    ask.request.pace = Pace { interval: LONG, ..Pace::UNLIMITED };
    engine.hosts().reserve(&[ask]).await.unwrap();
    drop((session, worker, engine));
    let path = directory.path().join("crawl.db");
    // Some have been moved into the index.
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(
        "INSERT INTO seen (url, record) SELECT url, record FROM fresh WHERE record % 2; DELETE FROM fresh WHERE record % 2;",
    )
    .unwrap();
    (directory, path)
}

fn failed(claimed: &Claimed) -> Settlement {
    let message = claimed.message.clone();
    let ending = Completion::new(Finish::new(Claim::new(&message), Terminal::Failed));
    Settlement { message, disposition: Disposition::Finish(Box::new(ending)) }
}

/// Which bit is flipped: by the numbers of a table, a column and a row, as far as there are so many.
#[derive(Clone, Copy, Debug)]
struct Flip {
    table: usize,
    column: usize,
    row: usize,
    bit: usize,
}

impl Flip {
    /// Flips the bit, if the file takes it there. Returns its table and its column.
    fn apply(self, path: &Path) -> Option<String> {
        let file = rusqlite::Connection::open(path).unwrap();
        let table = TABLES[self.table];
        let mut names = file.prepare(&format!("SELECT name FROM pragma_table_info('{table}')")).unwrap();
        let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let column = &names[self.column % names.len()];
        let mut rows = file.prepare(&format!("SELECT {column} FROM {table} ORDER BY 1")).unwrap();
        let values: Vec<Value> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let value = values.get(self.row % values.len().max(1))?;
        let flipped = match value {
            Value::Null => return None,
            Value::Integer(number) => Value::Integer(number ^ (1 << (self.bit % 64))),
            Value::Real(number) => Value::Real(f64::from_bits(number.to_bits() ^ (1 << (self.bit % 64)))),
            Value::Text(text) => Value::Text(String::from_utf8(self.flip(text.as_bytes())?).ok()?),
            Value::Blob(bytes) => Value::Blob(self.flip(bytes)?),
        };
        let sql = format!("UPDATE OR IGNORE {table} SET {column} = ?1 WHERE {column} = ?2");
        (file.execute(&sql, (flipped, value)).ok()? > 0).then(|| format!("{table}.{column}"))
    }

    fn flip(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = bytes.to_owned();
        let at = (self.bit / 8) % bytes.len().max(1);
        *bytes.get_mut(at)? ^= 1 << (self.bit % 8);
        Some(bytes)
    }
}

/// Crawls on from a state file, as `trawl crawl` does.
async fn crawl_on(path: &Path) -> Result<(), Error> {
    let engine = Embedded::open(path)?;
    let health = Arc::new(Health::default());
    let session = engine
        .engine()
        .open(
            trawl_common::ports::Opening {
                judging: None,
                crawl: crawl(),
                terms: trawl_common::ports::Terms::default(),
                text: None,
                is_new: false,
                lease: LONG,
                reads: None,
            },
            Arc::clone(&health),
        )
        .await?;
    session.admit(&work()).await?;
    session.close().await?;
    let worker = join_with(&engine, Arc::clone(&health), LONG).frontier;
    while !engine.stats().crawl_stats(&crawl().id).await?.is_some_and(|stats| stats.status.is_over()) {
        let claimed = tokio::select! {
            claimed = worker.claim(4) => claimed?,
            claimed = worker.claim_tasks(4) => claimed?,
            // It may have ended by what was taken out of the way.
            () = tokio::time::sleep(std::time::Duration::from_millis(20)) => continue,
        };
        finish(&*worker, claimed).await?;
    }
    Ok(())
}

async fn finish(worker: &dyn Frontier, claimed: Vec<Claimed>) -> Result<(), Error> {
    let claims: Vec<Claim> = claimed.iter().map(|claimed| Claim::new(&claimed.message)).collect();
    let starts = worker.start(&claims).await?;
    let settle = |(claimed, start): (&Claimed, StartReply)| match start {
        StartReply::Poison => failed(claimed),
        _ => done(claimed),
    };
    worker.settle(claimed.iter().zip(starts).map(settle).collect()).await?;
    Ok(())
}

#[test]
fn whichever_bit_of_a_row_is_flipped_its_crawl_ends_or_the_row_is_named() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (directory, path) = runtime.block_on(half_done());
    let flips = (0..TABLES.len(), any::<usize>(), any::<usize>(), 0..256_usize)
        .prop_map(|(table, column, row, bit)| Flip { table, column, row, bit });
    let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
    let copy = directory.path().join("flipped.db");
    let run = |flip: Flip| {
        std::fs::copy(&path, &copy).unwrap();
        let Some(what) = flip.apply(&copy) else { return Ok(()) };
        match runtime.block_on(async { timeout(std::time::Duration::from_secs(20), crawl_on(&copy)).await }) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if error.to_string().contains("the field") => Ok(()),
            Ok(Err(error)) => Err(TestCaseError::fail(format!("{what}: {error}"))),
            Err(_) => Err(TestCaseError::fail(format!("{what}: the crawl does not end"))),
        }
    };
    TestRunner::new(config).run(&flips, run).unwrap();
}
