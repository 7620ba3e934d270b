//! The values that a page receives from the pages that led to it.

use serde_json::{Map, Value, json};

/// Maximum size of the carried values of one page as JSON, in bytes.
pub const MAX_CARRIED_BYTES: usize = 16 * 1024;

/// Maximum number of kinds in a path: the last ones.
const MAX_PATH: usize = 32;

/// The key of the `data` of a request for everything that is not a value.
const OWN: &str = "$trawl";

/// The values that are passed on with a link, and the way to it. They travel as the `data` of a
/// [request](crate::request::NewRequest): an object with the values, and the way under `$trawl`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried {
    /// The values by name.
    pub values: Map<String, Value>,
    /// The kinds of the pages that led here, the last one at the end.
    pub path: Vec<String>,
    /// The name of the rule that found the link.
    pub rule: Option<String>,
    /// The place in a list; `None` at its start, and outside lists.
    pub list: Option<ListPlace>,
    /// The name of the `[[download]]` that keeps what the link leads to; `None` for a page.
    pub download: Option<String>,
}

/// The place of a page in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPlace {
    /// Number of pages of the list up to this one.
    pub pages: u64,
    /// A hash of the content of the page before it.
    pub content: Option<String>,
}

impl Carried {
    /// Reads the data of a request. What another program wrote there in another form counts as absent.
    pub fn from_data(data: &Value) -> Self {
        let Value::Object(all) = data else { return Self::default() };
        let mut values = all.clone();
        let own = values.remove(OWN).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let path: Vec<String> =
            own["path"].as_array().into_iter().flatten().filter_map(text).take(MAX_PATH).collect();
        let pages = own["list"]["pages"].as_u64();
        let list = pages.map(|pages| ListPlace { pages, content: text(&own["list"]["content"]) });
        Self { values, path, rule: text(&own["rule"]), list, download: text(&own["download"]) }
    }

    /// Returns the data of a request.
    pub fn to_data(&self) -> Value {
        let mut own = Map::new();
        if !self.path.is_empty() {
            own.insert("path".to_owned(), json!(self.path));
        }
        if let Some(rule) = &self.rule {
            own.insert("rule".to_owned(), json!(rule));
        }
        if let Some(ListPlace { pages, content }) = &self.list {
            own.insert("list".to_owned(), json!({"pages": pages, "content": content}));
        }
        if let Some(download) = &self.download {
            own.insert("download".to_owned(), json!(download));
        }
        let mut data = self.values.clone();
        if !own.is_empty() {
            data.insert(OWN.to_owned(), Value::Object(own));
        }
        Value::Object(data)
    }

    /// Returns the kinds from the start to a page of `kind`.
    pub fn path_to(&self, kind: &str) -> Vec<String> {
        let path = self.path.iter().map(String::as_str).chain([kind]);
        path.skip((self.path.len() + 1).saturating_sub(MAX_PATH)).map(str::to_owned).collect()
    }

    /// Whether a kind or a rule of this name led here.
    pub fn is_from(&self, name: &str) -> bool {
        self.path.last().is_some_and(|last| last == name) || self.rule.as_deref() == Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_is_read_as_it_was_written() {
        let carried = Carried {
            values: json!({"category": "Books", "n": [1, null]}).as_object().unwrap().clone(),
            path: vec!["list".to_owned(), "detail".to_owned()],
            rule: Some("rows".to_owned()),
            list: Some(ListPlace { pages: 3, content: Some("ab".to_owned()) }),
            download: Some("pictures".to_owned()),
        };
        assert_eq!(Carried::from_data(&carried.to_data()), carried);
        assert!(carried.is_from("detail") && carried.is_from("rows") && !carried.is_from("list"));
        assert_eq!(Carried::default().to_data(), json!({}));
    }

    #[test]
    fn data_of_others_is_values_and_an_odd_path_is_none() {
        for (data, values, path) in [
            (json!(7), json!({}), vec![]),
            (json!({"a": 1}), json!({"a": 1}), vec![]),
            (json!({"a": 1, "$trawl": 7}), json!({"a": 1}), vec![]),
            (json!({"$trawl": {"path": ["x", 1], "rule": {}}}), json!({}), vec!["x"]),
        ] {
            let read = Carried::from_data(&data);
            assert_eq!(
                (Value::Object(read.values), read.path, read.rule),
                (values, path.into_iter().map(str::to_owned).collect(), None)
            );
        }
    }

    #[test]
    fn kinds_that_lead_to_each_other_make_no_endless_path() {
        let mut carried = Carried::default();
        for _ in 0..100 {
            carried.path = carried.path_to("a");
        }
        carried.path = carried.path_to("b");
        assert_eq!((carried.path.len(), carried.path.last().unwrap().as_str()), (MAX_PATH, "b"));
    }
}
