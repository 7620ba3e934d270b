//! The contents of the sinks at the end of a crawl.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use super::database::Database;
use super::fleet::Programs;
use super::ledger::ItemLine;
use super::private::until_ok;
use super::scenario::Sink;

/// The contents of all sinks except the stream.
pub(super) struct Stored {
    /// All items, each with its sink.
    pub(super) items: Vec<ItemLine>,
    /// The URLs in the indexes of the web archive.
    pub(super) archived: Vec<String>,
}

impl Stored {
    /// Reads the files in the fleet's folder, and the tables of spiders.
    pub(super) async fn read(
        folder: &Path,
        database: Option<&Database>,
        sinks: &[(Sink, &str)],
    ) -> io::Result<Self> {
        let mut all = Vec::new();
        for file in files(&folder.join("items"), "jsonl")? {
            all.extend(items(&file, Sink::Files)?);
        }
        for file in files(&folder.join("csv"), "csv")? {
            all.extend(csv(&file)?);
        }
        all.extend(columns(&folder.join("parquet"))?);
        for (_, table) in sinks.iter().filter(|(sink, _)| *sink == Sink::Table) {
            if let Some(database) = database {
                // A database that was killed takes a while to recover.
                let rows = until_ok(|| async { rows(database, table).await.map_err(io::Error::other) });
                all.extend(rows.await?);
            }
        }
        Ok(Self { items: all, archived: archived(folder)? })
    }
}

/// Returns the items in a file of JSON Lines. A last line that a kill cut short is left out: its page is fetched again.
///
/// # Errors
/// If the file cannot be read, or a whole line in it is not an item.
pub fn items(file: &Path, sink: Sink) -> io::Result<Vec<ItemLine>> {
    let text = whole_lines(file)?;
    let read = |line: &str| {
        let item: Value = serde_json::from_str(line)
            .map_err(|error| io::Error::other(format!("{}: {error}: {line}", file.display())))?;
        Ok(ItemLine::new(&item, sink))
    };
    text.lines().map(read).collect()
}

/// Returns the items in the stream, from its beginning, or `None` while it cannot be read.
pub(super) async fn stream(programs: &Programs) -> Option<Vec<ItemLine>> {
    let read = programs.command(["items", "-q"]).output().await.ok().filter(|read| read.status.success())?;
    let text = String::from_utf8_lossy(&read.stdout).into_owned();
    let line = |line: &str| Some(ItemLine::new(&serde_json::from_str(line).ok()?, Sink::Stream));
    text.lines().map(line).collect()
}

/// Returns the items in a CSV file. A last line that a kill cut short is left out.
fn csv(file: &Path) -> io::Result<Vec<ItemLine>> {
    let text = whole_lines(file)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let head = reader.headers().map_err(io::Error::other)?.clone();
    let cell = |(column, text): (&str, &str)| {
        let number = if column == "id" { None } else { text.parse::<i64>().ok() };
        (column.to_owned(), number.map_or_else(|| text.into(), Value::from))
    };
    let item = |row: csv::Result<csv::StringRecord>| {
        let row = row.map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
        let filled = head.iter().zip(&row).filter(|(_, text)| !text.is_empty());
        Ok(ItemLine::of_row(filled.map(cell).collect(), Sink::Csv))
    };
    reader.records().map(item).collect()
}

/// Returns the items in a folder of Parquet files: those of finished files, and those of spools that will become files.
fn columns(folder: &Path) -> io::Result<Vec<ItemLine>> {
    let mut all = Vec::new();
    // These first: a spool that becomes a file meanwhile is read twice, rather than not at all.
    for spool in files(folder, "spool")? {
        match items(&spool, Sink::Parquet) {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound => {}
            read => all.extend(read?),
        }
    }
    for file in files(folder, "parquet")? {
        // Files whose names begin with `_` are not finished.
        if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('_')) {
            continue;
        }
        let reader = SerializedFileReader::new(File::open(&file)?).map_err(io::Error::other)?;
        for row in reader.get_row_iter(None).map_err(io::Error::other)? {
            let row = row.map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
            let cells = row.get_column_iter().map(|(column, cell)| (column.clone(), value(cell)));
            all.push(ItemLine::of_row(cells.collect(), Sink::Parquet));
        }
    }
    Ok(all)
}

/// Converts a cell of the types that the items here have.
fn value(cell: &Field) -> Value {
    match cell {
        Field::Str(text) => text.as_str().into(),
        Field::Long(number) => (*number).into(),
        _ => Value::Null,
    }
}

/// Returns the items of a table; none if there is no table.
async fn rows(database: &Database, table: &str) -> Result<Vec<ItemLine>, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(database.url().reveal(), NoTls).await?;
    let connection = tokio::spawn(connection);
    let exists = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await?;
    let mut items = Vec::new();
    if exists.get(0) {
        let query = format!("SELECT to_jsonb(t)::text FROM \"{table}\" t");
        for message in client.simple_query(&query).await? {
            let SimpleQueryMessage::Row(row) = message else { continue };
            let row: Option<Map<String, Value>> = row.get(0).and_then(|text| serde_json::from_str(text).ok());
            items.extend(row.map(|row| ItemLine::of_row(row, Sink::Table)));
        }
    }
    connection.abort();
    Ok(items)
}

/// Returns the URLs in the indexes of the web archive. An entry that a kill cut short is left out.
fn archived(folder: &Path) -> io::Result<Vec<String>> {
    let mut urls = Vec::new();
    for index in files(&folder.join("archive"), "cdxj")? {
        let text = fs::read_to_string(index)?;
        let url = |line: &str| {
            let entry: Value = serde_json::from_str(line.splitn(3, ' ').nth(2)?).ok()?;
            entry["url"].as_str().map(str::to_owned)
        };
        urls.extend(text.lines().filter_map(url));
    }
    Ok(urls)
}

/// Returns the files in a folder with this ending; none if there is no such folder.
pub(super) fn files(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.extension().is_some_and(|found| found == ending) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the text of a file up to the end of its last whole line.
fn whole_lines(file: &Path) -> io::Result<String> {
    let text = fs::read(file)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_of_csv_is_an_item_and_what_a_kill_cut_short_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        let head = "id,url,crawl,spider,fetched_at,status,depth,item,change,final_url,title,links";
        fs::write(
            &file,
            format!("{head}\n12,http://site/3,c,links,t,200,1,,,,Page 3,3\n13,http://site/4,c,li"),
        )
        .unwrap();
        let items = csv(&file).unwrap();
        assert_eq!(items.len(), 1);
        let item = &items[0];
        assert_eq!((&*item.id, &*item.url, item.landed.as_deref()), ("12", "http://site/3", None));
        assert_eq!((&item.fields["title"], &item.fields["links"]), (&json!("Page 3"), &json!(3)));
    }
}
