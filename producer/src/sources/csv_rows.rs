//! Requests of which there is one for each row of a CSV file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use serde_json::{Map, Value};
use trawl_common::csv::likely_delimiter;
use trawl_common::list::ListEntry;
use trawl_common::nearest::{listed, meant};
use trawl_common::request::NewRequest;
use trawl_common::spider::CsvRequests;
use trawl_common::text::printable;

/// Maximum number of rows.
const MAX_ROWS: usize = 100_000;

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum size of the requests as JSON, in bytes.
const MAX_REQUESTS: usize = 256 << 20;

/// Maximum size of the line with the names of columns in which the mark between them is looked for, in bytes.
const MAX_FIRST_LINE_BYTES: u64 = 64 << 10;

/// Maximum number of columns that an error names.
const MAX_NAMED: usize = 20;

/// Maximum length of each of these names, in bytes.
const MAX_NAME_BYTES: usize = 60;

/// The reason why a CSV file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {why}")]
pub struct InvalidCsv {
    file: String,
    why: String,
}

/// Returns the requests of a file, whose first row has the names of its columns, separated by the mark that is most
/// frequent in it. Each carries its row.
pub(super) fn requests(csv: &CsvRequests) -> Result<Vec<ListEntry>, InvalidCsv> {
    let invalid = |why: String| InvalidCsv { file: csv.file.clone(), why };
    let file = File::open(&csv.file).map_err(|error| invalid(error.to_string()))?;
    let bytes = file.metadata().map_err(|error| invalid(error.to_string()))?.len();
    if bytes > MAX_BYTES {
        return Err(invalid(format!("has {bytes} bytes: it may have {MAX_BYTES}")));
    }
    read(csv, file.take(MAX_BYTES)).map_err(invalid)
}

fn read(csv: &CsvRequests, file: impl Read) -> Result<Vec<ListEntry>, String> {
    let (mut file, mut first_line) = (BufReader::new(file), Vec::new());
    file.by_ref()
        .take(MAX_FIRST_LINE_BYTES)
        .read_until(b'\n', &mut first_line)
        .map_err(|error| error.to_string())?;
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.trim(csv::Trim::Headers).delimiter(likely_delimiter(&first_line));
    let mut reader = reader.from_reader(first_line.chain(file));
    let names = reader.headers().map_err(|error| error.to_string())?.clone();
    let name = |name: &str| name.trim_start_matches('\u{feff}').to_owned();
    let names: Vec<String> = names.iter().map(name).collect();
    if let Some(name) = names.iter().find(|name| name.is_empty() || name.starts_with('$')) {
        return Err(format!(
            "a column cannot have the name `{name}`: the first row has the names of the columns"
        ));
    }
    let wanted = csv.request.names().map_err(|error| error.to_string())?;
    if let Some(missing) = wanted.iter().find(|wanted| !names.contains(wanted)) {
        return Err(no_column(missing, &names));
    }
    let (mut requests, mut bytes) = (Vec::new(), 0);
    for (number, row) in reader.records().enumerate() {
        let row = row.map_err(|error| error.to_string())?;
        if number >= MAX_ROWS {
            return Err(format!("has more than {MAX_ROWS} rows: make a list of requests of it"));
        }
        let values: Map<String, Value> = names.iter().cloned().zip(row.iter().map(Value::from)).collect();
        let line = row.position().map_or(0, csv::Position::line);
        let new = csv.request.fill(&values).map_err(|error| format!("line {line}: {error}"))?;
        let new = NewRequest { data: Some(Value::Object(values)), ..new };
        bytes += new.to_json().len();
        if bytes > MAX_REQUESTS {
            return Err(format!(
                "makes requests of more than {MAX_REQUESTS} bytes: make a list of requests of it"
            ));
        }
        requests.push(ListEntry::Request(new));
    }
    Ok(requests)
}

fn no_column(missing: &str, names: &[String]) -> String {
    let shown: Vec<String> =
        names.iter().take(MAX_NAMED).map(|name| printable(name, MAX_NAME_BYTES)).collect();
    let shown = || shown.iter().map(String::as_str);
    let missing = printable(missing, MAX_NAME_BYTES);
    let found = match meant(&missing, shown()) {
        Some(near) => format!(": did you mean `{near}`? The first row names {}", listed(shown())),
        None if names.is_empty() => String::new(),
        None => format!("; there are {}", listed(shown())),
    };
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("there is no column `{missing}`{found}{more}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trawl_common::request::RequestTemplate;

    use super::*;

    fn of(text: &str) -> Result<Vec<String>, String> {
        let request = json!({"url": "http://a.example/{carried.lang}", "form": {"q": "{carried.term}"}});
        let csv = CsvRequests { file: "x.csv".to_owned(), request: RequestTemplate::new(request).unwrap() };
        let json = |entry| if let ListEntry::Request(new) = entry { new.to_json() } else { String::new() };
        Ok(read(&csv, text.as_bytes())?.into_iter().map(json).collect())
    }

    #[test]
    fn each_row_makes_a_request_that_carries_it() {
        let requests = of("\u{feff}term, lang\n\"a, b\",de\nc,\"f\nr\"\n").unwrap();
        assert_eq!(requests.len(), 2);
        assert!(requests[0].contains(r#""url":"http://a.example/de""#), "{requests:?}");
        assert!(
            requests[0].contains("q=a%2C+b") && requests[0].contains(r#""data":{"lang":"de","term":"a, b"}"#)
        );
    }

    #[test]
    fn columns_may_be_separated_by_other_marks_than_commas() {
        for text in ["term;lang\na, b;de\n", "term\tlang\na, b\tde\n", "term|lang\r\na, b|de"] {
            let requests = of(text).unwrap();
            assert!(requests[0].contains(r#""data":{"lang":"de","term":"a, b"}"#), "{requests:?}");
        }
    }

    #[test]
    fn a_row_that_makes_no_request_is_named_with_its_line() {
        for (text, why) in [
            ("term\na\n", "there is no column `lang`; there are `term`"),
            (
                "term,lnag\n",
                "there is no column `lang`: did you mean `lnag`? The first row names `term` and `lnag`",
            ),
            ("term,lang\na,b\nc\n", "line: 3"),
            ("term,$x\na,b\n", "`$x`"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
