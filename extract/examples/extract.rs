//! Prints what fields by CSS selector find in HTML files, a line of JSON for each file. Arguments are `name=selector`,
//! `name[]=selector` for all values, and `name:kind=selector` for numbers and dates, with `name:number,=selector` for
//! numbers with a decimal comma. `name:json_ld=type`, `name:microdata=type`, `name:meta=property` and
//! `name[]:xpath=expression` read what their names say. The files' names come on standard input, one a line.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::atomic::AtomicBool;

use serde_json::json;
use trawl_common::mistake::Sited;
use trawl_common::names::SpiderName;
use trawl_common::settings;
use trawl_common::spider::{Field, FieldSource, ItemRule, Kind, Spider};
use trawl_common::time::UnixMs;
use trawl_common::web::headers::Headers;
use trawl_common::web::response::Response;
use trawl_extract::Extractor;

fn main() -> Result<(), Box<dyn Error>> {
    let fields = std::env::args().skip(1).map(|argument| field(&argument)).collect::<Result<_, _>>()?;
    let nothing = Spider::without_file(SpiderName::default(), &settings::Items::default());
    let spider = Spider { items: vec![ItemRule { name: None, each: None, fields, page: None }], ..nothing };
    let extractor = Extractor::new(&spider).map_err(|mistakes| format!("{mistakes:?}"))?;
    let url = "https://example.com/".parse()?;
    let mut out = stdout().lock();
    for file in stdin().lock().lines() {
        let file = file?;
        let response = Response {
            status: 200,
            headers: Headers::from_iter([("content-type", "text/html")]),
            redirected_to: None,
            fetched_at: UnixMs(0),
            address: None,
            body: std::fs::read(&file)?.into(),
        };
        let found = extractor.extract(&url, &response, &AtomicBool::new(false));
        let fields = found.map_err(|failure| failure.to_string()).map(|found| found.items[0].fields.clone());
        writeln!(
            out,
            "{}",
            json!({"file": file, "fields": fields.as_ref().ok(), "error": fields.as_ref().err()})
        )?;
    }
    Ok(())
}

fn field(argument: &str) -> Result<(String, Field), String> {
    let (name, selector) = argument.split_once('=').ok_or(format!("`{argument}` is not name=selector"))?;
    let (name, kind) = name.split_once(':').unwrap_or((name, "text"));
    let place = Sited::nowhere(selector);
    let (source, kind) = match kind {
        "json_ld" => (FieldSource::JsonLd(place, None), "json"),
        "microdata" => (FieldSource::Microdata(place, None), "json"),
        "meta" => (FieldSource::Meta(place), "text"),
        "xpath" => (FieldSource::XPath(place), "text"),
        kind => (FieldSource::Css(place), kind),
    };
    let field = Field::new(source);
    let (kind, decimal) = match kind.strip_suffix([',', '.']) {
        Some(shorter) => (shorter, kind.chars().last()),
        None => (kind, None),
    };
    let kind = match kind {
        "text" => Kind::Text,
        "json" => Kind::Json,
        "number" => Kind::Number,
        "date" => Kind::Date,
        other => return Err(format!("`{other}` is no kind that is read here")),
    };
    let field = Field { kind, decimal, ..field };
    Ok(match name.strip_suffix("[]") {
        Some(name) => (name.to_owned(), Field { list: true, ..field }),
        None => (name.to_owned(), field),
    })
}
