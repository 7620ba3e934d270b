//! Checks the contents of each item, and that every sink has all of them.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::{Account, Facts, ItemLine, Judgement, Page};
use crate::faults::fate::Fate;
use crate::faults::kind::Kind;
use crate::faults::scenario::Sink;
use crate::faults::units::Units;

impl ItemLine {
    /// Parses an item from a sink.
    pub fn new(item: &Value, sink: Sink) -> Self {
        let text = |name: &str| item[name].as_str().map(str::to_owned);
        Self {
            url: text("url").unwrap_or_default(),
            id: text("id").unwrap_or_default(),
            crawl: text("crawl").unwrap_or_default(),
            change: text("change"),
            landed: text("final_url"),
            fields: item["fields"].clone(),
            sink,
        }
    }

    /// Parses an item from a row of a table, whose columns are its fields and those that every item has.
    pub fn of_row(row: Map<String, Value>, sink: Sink) -> Self {
        // The items of a program are in one column, as JSON.
        let fields = match row.get("fields") {
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(fields) => fields.clone(),
            None => Value::Object(row.clone()),
        };
        let mut item = Value::Object(row);
        item["fields"] = fields;
        Self::new(&item, sink)
    }
}

impl Facts {
    /// Collects the items of each page, and the sinks that have what it shows. An item that belongs to no page, or
    /// shows another page, is a problem.
    pub(super) fn collect_items(
        &self,
        numbers: &HashMap<&str, usize>,
        accounts: &mut [Account],
        verdict: &mut Judgement,
    ) {
        let mut ids: HashMap<&str, &str> = HashMap::new();
        for item in &self.items {
            let Some((number, shown)) = self.of_item(item, numbers) else {
                verdict.problems.push(format!("{}: an item of a page that is not on the site", item.url));
                continue;
            };
            accounts[number].items.insert(item.id.clone());
            // The answer to a request belongs to the request, whatever page it shows.
            let whose = if self.units == Units::Pages { shown } else { number };
            accounts[whose].stored.insert(item.sink);
            if ids.insert(&item.id, &item.url).is_some_and(|other| other != item.url) {
                verdict.problems.push(format!("{}: its item shares its id with another page's", item.url));
            }
            if let Some(field) = self.field
                && (item.fields["title"] != format!("Page {shown}") || item.fields[field] != shown)
            {
                let text = format!("an item of page {shown} without its title or `{field}`");
                verdict.problems.push(format!("{}: {text}: {}", item.url, item.fields));
            }
        }
        self.judge_changes(verdict);
        for url in &self.archived {
            match numbers.get(url.as_str()) {
                Some(&number) => drop(accounts[number].stored.insert(Sink::Archive)),
                None => verdict.problems.push(format!("{url}: archived, and not on the site")),
            }
        }
    }

    /// Returns the number of an item's page, and of the page that it shows. Items of programs contain both.
    fn of_item(&self, item: &ItemLine, numbers: &HashMap<&str, usize>) -> Option<(usize, usize)> {
        if self.units == Units::Pages {
            let shown = item.landed.as_ref().unwrap_or(&item.url).as_str();
            return Some((*numbers.get(item.url.as_str())?, *numbers.get(shown)?));
        }
        let number = item.fields["asked"].as_u64()? as usize;
        let page = self.pages.get(number).filter(|page| page.url == item.url)?;
        let leads = if let Fate::Redirect(to) = page.fate { to } else { number };
        (item.landed.is_some() == (leads != number)).then_some((number, leads))
    }

    /// Checks that items of pages that were crawled before say that they are unchanged, unless Redis may have forgotten
    /// them.
    fn judge_changes(&self, verdict: &mut Judgement) {
        let may_be_forgotten = self.faults.iter().any(|fault| fault.kind.forgets());
        let is_right = |item: &&ItemLine| match item.change.as_deref() {
            None => !self.is_again,
            Some("unchanged") => self.is_again,
            Some("new") => self.is_again && may_be_forgotten,
            Some(_) => false,
        };
        for item in self.items.iter().filter(|item| !is_right(item)) {
            verdict.problems.push(format!("{}: its item says that it is {:?}", item.url, item.change));
        }
    }

    /// Checks that all sinks have the same items; but those in the stream may have been lost with the broker's disk.
    pub(super) fn judge_sinks(&self, page: &Page, account: &Account, verdict: &mut Judgement) {
        let all: BTreeSet<Sink> = self.sinks.iter().copied().collect();
        for sink in all.difference(&account.stored) {
            let was_lost = *sink == Sink::Stream
                && self.faults.iter().any(|fault| {
                    fault.kind == Kind::BrokerGone
                        && account.asks.last().is_some_and(|ask| ask.asked <= fault.to)
                });
            if !account.stored.is_empty() && !was_lost {
                let stored = &account.stored;
                verdict.problems.push(format!("{}: stored in {stored:?}, and not in {sink:?}", page.url));
            }
        }
    }
}
