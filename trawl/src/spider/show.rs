//! Shows the result of one page, for people and as JSON.

use std::time::Duration;

use anstream::println;
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use trawl_cli::count;
use trawl_common::spider::{LinkVerdict, Required};
use trawl_common::text::printable;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extracted, Tried, Unfit};

/// Maximum length of a displayed value.
const SHOWN: usize = 400;

/// The header fields that are shown to people.
const HEADERS: [&str; 6] =
    ["content-type", "last-modified", "etag", "cache-control", "x-robots-tag", "server"];

pub(super) fn print(url: &CanonicalUrl, tried: &Tried, took: Duration, links: bool) {
    head(url, &tried.response, took);
    for item in &tried.extraction.items {
        print_item(item);
    }
    let red = AnsiColor::Red.on_default();
    for missing in &tried.extraction.missing {
        let what = match missing.required {
            Required::Fail => ": the page fails",
            Required::Retry => ": the page is tried again",
            Required::Warn | Required::No => "",
        };
        println!("{red}missing{red:#} {}{what}", printable(&missing.field, SHOWN));
    }
    let yellow = AnsiColor::Yellow.on_default();
    for Unfit { field, value, reason, is_cut } in &tried.extraction.unfit {
        let (word, field) = (if *is_cut { "cut" } else { "refused" }, printable(field, SHOWN));
        println!("{yellow}{word}{yellow:#} {field}: `{value}`: {reason}");
    }
    let followed = tried.links.iter().filter(|(_, verdict)| *verdict == LinkVerdict::Follow).count();
    println!("{} links, {} of them followed", count(tried.links.len() as u64), count(followed as u64));
    if links {
        let (green, dim) = (AnsiColor::Green.on_default(), Style::new().dimmed());
        for (link, verdict) in &tried.links {
            match verdict {
                LinkVerdict::Follow => println!("  {green}follow{green:#} {link}"),
                _ => println!("  {dim}leave  {link}{dim:#}"),
            }
        }
    }
}

fn head(url: &CanonicalUrl, response: &Response, took: Duration) {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    println!("{bold}{} {}{bold:#}", response.status, url);
    if let Some(landed) = &response.redirected_to {
        println!("  {dim}{:<14}{dim:#} {landed}", "redirected to");
    }
    for name in HEADERS {
        if let Some(value) = response.headers.get(name) {
            println!("  {dim}{name:<14}{dim:#} {}", printable(value, SHOWN));
        }
    }
    let bytes = count(response.body.len() as u64);
    println!("  {dim}{:<14}{dim:#} {bytes} bytes in {:.2} s", "body", took.as_secs_f64());
}

fn print_item(Extracted { rule, number, fields }: &Extracted) {
    let (bold, cyan) = (Style::new().bold(), AnsiColor::Cyan.on_default());
    println!("{bold}{} {}{bold:#}", rule.as_deref().unwrap_or("item"), number + 1);
    for (name, value) in fields {
        let name = printable(name, 64);
        match value {
            Value::Array(values) => {
                println!("  {cyan}{name:<14}{cyan:#} {} values", values.len());
                values.iter().for_each(|value| println!("  {:<14} - {}", "", shown(value)));
            }
            value => println!("  {cyan}{name:<14}{cyan:#} {}", shown(value)),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text, SHOWN),
        Value::Null => "-".to_owned(),
        value => printable(&value.to_string(), SHOWN),
    }
}

pub(super) fn print_json(url: &CanonicalUrl, tried: &Tried) {
    let Tried { response, extraction, links } = tried;
    let item = |Extracted { rule, number, fields }: &Extracted| json!({ "item": rule, "number": number, "fields": fields });
    let link = |(url, verdict): &(CanonicalUrl, LinkVerdict)| json!({ "url": url.as_str(), "followed": *verdict == LinkVerdict::Follow });
    let unfit = |wanted: bool| {
        let unfit = extraction.unfit.iter().filter(|unfit| unfit.is_cut == wanted);
        unfit.map(|Unfit { field, value, reason, .. }| json!({ "field": field, "value": value, "reason": reason })).collect::<Vec<_>>()
    };
    let shown = json!({
        "url": url.as_str(),
        "redirected_to": response.redirected_to.as_ref().map(|url| url.as_str()),
        "status": response.status,
        "headers": response.headers.iter().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
        "bytes": response.body.len(),
        "items": extraction.items.iter().map(item).collect::<Vec<_>>(),
        "missing": extraction.missing.iter().map(|missing| &missing.field).collect::<Vec<_>>(),
        "refused": unfit(false),
        "cut": unfit(true),
        "links": links.iter().map(link).collect::<Vec<_>>(),
    });
    trawl_cli::print_json(&shown);
}
