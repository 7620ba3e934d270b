//! The contents of a site's tasks and requests, their keys, and a check that they arrive unchanged.

use axum::http::{HeaderMap, Method};
use serde_json::{Value, json};
use trawl_common::frontier::{TaskKey, Work};
use trawl_common::names::SpiderName;
use trawl_common::request::NewRequest;
use trawl_common::task::NewTask;

use super::fate::Fate;
use super::layout::Leaf;
use super::ledger::Page;
use super::units::Units;

/// The header field with the number of the page that a request is for.
const NUMBER: &str = "x-page";

/// A request that has arrived at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// The number of the page.
    pub(super) page: usize,
    /// The number of the page whose request was redirected here.
    pub(super) via: Option<usize>,
}

impl Arrived {
    pub(super) fn at(page: usize) -> Self {
        Self { page, via: None }
    }
}

/// A site of these leaves, as a spider with a program knows it.
pub(super) struct Recipes<'a> {
    pub(super) origin: &'a str,
    pub(super) spider: &'a str,
    pub(super) leaves: &'a [Leaf],
}

/// Returns the URL of a page. Every fifth page is news: the default rules route it to the priority lane.
pub(super) fn address(origin: &str, number: usize) -> String {
    let folder = if number.is_multiple_of(5) { "news" } else { "page" };
    format!("{origin}/{folder}/{number}")
}

/// Returns the path that the requests for two pages share: only the body tells them apart.
fn form(number: usize) -> String {
    let form = number / 2;
    let folder = if form.is_multiple_of(5) { "news" } else { "form" };
    format!("/{folder}/form-{form}")
}

/// Returns a text that is different for each number, and mostly of different length.
fn filling(number: usize) -> String {
    format!("{number} \"ä\\\n").repeat(number % 97)
}

fn recipe(number: usize) -> String {
    json!({ "n": number, "say": filling(number) }).to_string()
}

/// Few are more urgent than others: less urgent ones would wait until the last of a crawl.
fn priority(number: usize) -> f64 {
    f64::from(u8::from(number.is_multiple_of(5)))
}

fn body(number: usize) -> String {
    format!("n={number}&say={}", filling(number))
}

/// Whether the redirect of a page keeps method and body (307), or turns a POST into a GET (302).
pub(super) fn is_kept(number: usize) -> bool {
    !number.is_multiple_of(2)
}

impl Recipes<'_> {
    /// Returns the URL and key of each page in a crawl of these units.
    pub(super) fn pages(&self, units: Units) -> Vec<Page> {
        let page = |(number, leaf): (usize, &Leaf)| {
            let (url, key) = match units {
                Units::Pages => (self.address(number), self.address(number)),
                Units::Tasks => (self.task_key(number), self.task_key(number)),
                Units::Requests if number == 0 => (self.address(0), self.address(0)),
                Units::Requests => (format!("{}{}", self.origin, form(number)), self.request_key(number)),
            };
            Page { url, key, fate: leaf.fate }
        };
        self.leaves.iter().enumerate().map(page).collect()
    }

    fn address(&self, number: usize) -> String {
        address(self.origin, number)
    }

    /// Returns the task for a page, as it is submitted. Every other one has a `unique`; the rest are told apart by
    /// their recipe.
    pub(super) fn task(&self, number: usize) -> Value {
        let mut task = json!({ "recipe": recipe(number), "priority": priority(number) });
        if number.is_multiple_of(2) {
            task["unique"] = format!("number {number}").into();
        }
        if Units::Tasks.is_last_try(self.leaves[number].fate) {
            task["retries"] = 0.into();
        }
        task
    }

    fn task_key(&self, number: usize) -> String {
        let spider: SpiderName = self.spider.parse().expect("a spider of the suite has a name");
        let task = NewTask::try_from(self.task(number)).expect("a task of the suite is one");
        TaskKey::new(&spider, &task).to_string()
    }

    /// Returns the request for a page, as a program asks for it. The first page is an ordinary URL.
    pub(super) fn request(&self, number: usize) -> Value {
        if number == 0 {
            return self.address(0).into();
        }
        json!({
            "url": form(number), "method": self.method(number).as_str(), "body": body(number),
            "headers": { NUMBER: number.to_string() }, "data": { "n": number },
        })
    }

    fn request_key(&self, number: usize) -> String {
        let request = NewRequest::try_from(self.request(number)).expect("a request of the suite is one");
        let url = format!("{}{}", self.origin, form(number)).parse().expect("a page of the suite has a URL");
        Work::of_request(url, request).expect("a request of the suite has a key").as_str().to_owned()
    }

    /// Returns the method of a page's request: PUT for some of the pages that do not redirect, else POST.
    fn method(&self, number: usize) -> Method {
        let is_put = number % 7 == 3 && !matches!(self.leaves[number].fate, Fate::Redirect(_));
        if is_put { Method::PUT } else { Method::POST }
    }

    /// Returns the page that a task is for, as its program was given it. The error says what is wrong with the task.
    pub(super) fn arrived_task(&self, given: &[u8]) -> Result<Arrived, String> {
        let complaint =
            |what: &str| format!("a task arrived with {what}: {}", String::from_utf8_lossy(given));
        let task: Value = serde_json::from_slice(given).map_err(|_| complaint("no JSON"))?;
        let said: Value =
            task["recipe"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let number = said["n"].as_u64().map(|number| number as usize);
        let number =
            number.filter(|number| *number < self.leaves.len()).ok_or_else(|| complaint("no number"))?;
        let id = task["id"].as_str().unwrap_or_default();
        if task["recipe"] != recipe(number) {
            return Err(complaint("another recipe"));
        }
        if task["priority"] != priority(number) || format!("task:{id}") != self.task_key(number) {
            return Err(complaint("another priority or id"));
        }
        Ok(Arrived::at(number))
    }

    /// Returns the page that a request is for; after a redirect, that is the page of the path. The error says what is
    /// wrong with the request.
    pub(super) fn arrived_request(
        &self,
        (method, path): (&Method, &str),
        headers: &HeaderMap,
        given: &[u8],
    ) -> Result<Arrived, String> {
        let complaint = || {
            let given = String::from_utf8_lossy(given);
            format!("{method} {path} arrived for page {:?} with this body: {given}", headers.get(NUMBER))
        };
        let named = headers.get(NUMBER).and_then(|number| number.to_str().ok()?.parse::<usize>().ok());
        let Some(number) = named.filter(|number| *number < self.leaves.len()) else {
            let is_first = format!("{}{path}", self.origin) == self.address(0);
            let is_plain = is_first && *method == Method::GET && given.is_empty();
            return if is_plain { Ok(Arrived::at(0)) } else { Err(complaint()) };
        };
        let (sent, arrived) = if path == form(number) {
            ((self.method(number), body(number)), Arrived::at(number))
        } else {
            let page = self.led_to(number, path).ok_or_else(complaint)?;
            let led = Arrived { page, via: Some(number) };
            let kept = (self.method(number), body(number));
            (if is_kept(number) { kept } else { (Method::GET, String::new()) }, led)
        };
        let is_whole = sent.0 == *method && sent.1.as_bytes() == given;
        if is_whole { Ok(arrived) } else { Err(complaint()) }
    }

    /// Returns the page of this path, if the redirect of page `number` leads there.
    fn led_to(&self, number: usize, path: &str) -> Option<usize> {
        match self.leaves[number].fate {
            Fate::Redirect(to) if format!("{}{path}", self.origin) == self.address(to) => Some(to),
            _ => None,
        }
    }

    /// Returns a program's answer for a page: an item, and all links of the page.
    pub(super) fn said(&self, number: usize, units: Units) -> Value {
        let item = json!({ "title": format!("Page {number}"), self.spider: number, "asked": number });
        let links = self.leaves[number].links.iter();
        match units {
            Units::Tasks => {
                let tasks: Vec<Value> = links.map(|to| self.task(*to)).collect();
                json!({ "result": 0, "items": [item], "tasks": tasks })
            }
            _ => {
                let urls: Vec<Value> = links.map(|to| self.request(*to)).collect();
                json!({ "items": [item], "urls": urls })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves() -> Vec<Leaf> {
        let fates = [Fate::Good, Fate::Good, Fate::Redirect(0), Fate::Redirect(1), Fate::Missing];
        fates.into_iter().map(|fate| Leaf { fate, links: Vec::new() }).collect()
    }

    #[test]
    fn a_task_that_arrives_with_anything_of_another_is_a_complaint() {
        let leaves = leaves();
        let recipes = Recipes { origin: "http://site", spider: "once", leaves: &leaves };
        let pages = recipes.pages(Units::Tasks);
        let given = |number: usize, key: usize, urgent: usize| {
            let id = pages[key].key.trim_start_matches("task:");
            json!({ "recipe": recipe(number), "id": id, "priority": priority(urgent) }).to_string()
        };
        assert_eq!(recipes.arrived_task(given(4, 4, 4).as_bytes()), Ok(Arrived::at(4)));
        for wrong in [given(4, 3, 4), given(4, 4, 5), given(4, 4, 4).replace("ä", ""), "x".to_owned()] {
            assert!(recipes.arrived_task(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert_eq!((recipes.task(4)["retries"].clone(), recipes.task(1).get("retries")), (0.into(), None));
    }

    #[test]
    fn a_request_that_arrives_with_anything_of_another_is_a_complaint() {
        let leaves = leaves();
        let recipes = Recipes { origin: "http://site", spider: "forms", leaves: &leaves };
        let arrived = |method: Method, path: &str, number: &str, body: &str| {
            let headers = HeaderMap::from_iter([(NUMBER.parse().unwrap(), number.parse().unwrap())]);
            recipes.arrived_request((&method, path), &headers, body.as_bytes())
        };
        assert_eq!(arrived(Method::POST, &form(1), "1", &body(1)), Ok(Arrived::at(1)));
        assert_eq!(arrived(Method::GET, "/news/0", "", ""), Ok(Arrived::at(0)), "the first");
        let led = |page, via| Ok(Arrived { page, via: Some(via) });
        assert_eq!(arrived(Method::GET, "/news/0", "2", ""), led(0, 2), "by 302");
        assert!(arrived(Method::PUT, &form(3), "3", &body(3)).is_err(), "a redirect is a POST");
        assert_eq!(arrived(Method::POST, "/page/1", "3", &body(3)), led(1, 3), "by 307");
        assert!(arrived(Method::POST, &form(1), "1", &body(4)).is_err());
        assert!(arrived(Method::POST, &form(4), "1", &body(1)).is_err());
        assert!(arrived(Method::GET, "/page/1", "3", "").is_err());
        assert!(arrived(Method::GET, "/page/1", "", "").is_err());
        assert!(arrived(Method::PUT, &form(1), "1", &body(1)).is_err());
    }

    #[test]
    fn every_page_has_a_name_of_its_own_and_two_requests_share_a_url() {
        let leaves = leaves();
        let recipes = Recipes { origin: "http://site", spider: "forms", leaves: &leaves };
        for units in [Units::Pages, Units::Tasks, Units::Requests] {
            let mut keys: Vec<String> = recipes.pages(units).into_iter().map(|page| page.key).collect();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), leaves.len());
        }
        let pages = recipes.pages(Units::Requests);
        assert_eq!(pages[2].url, pages[3].url);
        assert!(pages[2].key.starts_with(&format!("{}#request:", pages[2].url)));
    }
}
