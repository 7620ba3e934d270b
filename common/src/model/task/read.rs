//! Parses tasks, with errors that name the problem.

use std::fmt;

use serde_json::{Map, Value};

use super::new_task::NewTask;
use super::recipe::{InvalidRecipe, MAX_RECIPE_BYTES};
use super::unique::InvalidUnique;
use crate::json_object::{self, UnknownKey, WrongValue, kind, priority, quoted, retries, text};
use crate::names::{InvalidName, SpiderName};
use crate::text::printable;

/// Maximum length in bytes of a line with a task: the longest recipe with every character escaped, and the other
/// members.
pub const MAX_LINE_BYTES: usize = 6 * MAX_RECIPE_BYTES + 64 * 1024;

/// The keys of a task: trawl's own, and then those of task_tracker, whose programs write them.
pub(crate) const KEYS: [&str; 11] = [
    "recipe",
    "unique",
    "priority",
    "retries",
    "project",
    "spider",
    "max_retries",
    "unique_str",
    "hash64",
    "max_assign_time",
    "verification",
];

/// The reason why a value is not a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTask {
    /// It is not JSON.
    #[error("not JSON: {0}; a task is a JSON string, which is its recipe, or an object with `recipe`")]
    NotJson(String),
    /// It is neither a string nor an object.
    #[error("a task is a JSON string, which is its recipe, or an object with `recipe`, not {0}")]
    NotATask(&'static str),
    /// The object lacks the recipe.
    #[error("`recipe` is missing")]
    NoRecipe,
    /// The object has an unknown key.
    #[error("a task {0}")]
    UnknownKey(#[from] UnknownKey),
    /// The value of a key has the wrong type.
    #[error(transparent)]
    Value(#[from] WrongValue),
    /// The recipe is invalid.
    #[error(transparent)]
    Recipe(#[from] InvalidRecipe),
    /// The value of `unique` is invalid.
    #[error(transparent)]
    Unique(#[from] InvalidUnique),
    /// The name of the project or the spider is invalid.
    #[error("`{key}`: {error}")]
    Name {
        /// `project` or `spider`.
        key: &'static str,
        /// The reason why the name is invalid.
        error: InvalidName,
    },
    /// It is for another spider than the rest of the list.
    #[error("it is for the spider {named}, and this list is read for {read_for}")]
    OtherSpider {
        /// The spider of the task.
        named: SpiderName,
        /// The spider of the list.
        read_for: SpiderName,
    },
}

impl InvalidTask {
    /// Creates the error of a text that is not JSON.
    fn no_json(error: impl fmt::Display) -> Self {
        Self::NotJson(printable(&error.to_string(), 200))
    }
}

impl NewTask {
    /// Parses a line of `tasks.jsonl`.
    ///
    /// Fails if the line is not JSON, or not a task.
    pub fn from_line(line: &str) -> Result<Self, InvalidTask> {
        let value: Value = serde_json::from_str(line).map_err(InvalidTask::no_json)?;
        value.try_into()
    }

    /// Returns the task if it is for `spider`, or names no spider.
    pub fn only_for(self, spider: &SpiderName) -> Result<Self, InvalidTask> {
        match &self.spider {
            Some(other) if other != spider => {
                Err(InvalidTask::OtherSpider { named: other.clone(), read_for: spider.clone() })
            }
            _ => Ok(self),
        }
    }
}

impl TryFrom<Value> for NewTask {
    type Error = InvalidTask;
    fn try_from(value: Value) -> Result<Self, InvalidTask> {
        match value {
            Value::String(recipe) => Ok(Self::from_recipe(recipe.parse()?)),
            Value::Object(object) => of_object(object),
            other => Err(InvalidTask::NotATask(kind(&other))),
        }
    }
}

fn of_object(object: Map<String, Value>) -> Result<NewTask, InvalidTask> {
    let mut object = json_object::known(object, KEYS)?;
    let recipe = quoted(&mut object, "recipe")?.ok_or(InvalidTask::NoRecipe)?;
    let named = |key| move |error| InvalidTask::Name { key, error };
    Ok(NewTask {
        recipe: recipe.parse()?,
        unique: unique(&mut object)?.map(|unique| unique.parse()).transpose()?,
        priority: priority(&object)?,
        retries: retries(&object, "retries")?.or(retries(&object, "max_retries")?),
        project: number_or_text(&mut object, "project")?
            .map(|name| name.parse().map_err(named("project")))
            .transpose()?,
        spider: text(&mut object, "spider")?.map(|name| name.parse().map_err(named("spider"))).transpose()?,
    })
}

/// Returns the text that identifies a task's duplicates: `unique`, or task_tracker's text or hash, unless that is empty
/// or 0.
fn unique(object: &mut Map<String, Value>) -> Result<Option<String>, WrongValue> {
    let by_text = text(object, "unique_str")?.filter(|text| !text.is_empty());
    let by_hash = number_or_text(object, "hash64")?.filter(|hash| hash != "0");
    Ok(text(object, "unique")?.or(by_text).or(by_hash))
}

/// Takes text, or an integer as text, because task_tracker's projects have numbers.
fn number_or_text(object: &mut Map<String, Value>, key: &'static str) -> Result<Option<String>, WrongValue> {
    match object.get(key) {
        Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(Some(number.to_string())),
        _ => text(object, key),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::json_object::MAX_RETRIES;

    #[test]
    fn a_task_is_a_string_or_an_object() {
        let plain = NewTask::from_line(r#""http://a.example/ and more""#).unwrap();
        assert_eq!(plain, NewTask::from_recipe("http://a.example/ and more".parse().unwrap()));
        let line = r#"{"recipe": "[1, 2]", "unique": "doc 1", "priority": -2.5, "retries": 0, "project": "books",
            "spider": "payments"}"#;
        let full = NewTask::from_line(line).unwrap();
        assert_eq!(full.recipe.as_str(), "[1, 2]");
        assert_eq!(full.unique.as_ref().unwrap().as_str(), "doc 1");
        assert_eq!((full.priority.get(), full.retries), (-2.5, Some(0)));
        assert_eq!(full.project, Some("books".parse().unwrap()));
        assert_eq!(full.spider, Some("payments".parse().unwrap()));
        let sparse = NewTask::from_line(r#"{"recipe": "x", "unique": null, "retries": null}"#).unwrap();
        assert_eq!(sparse, NewTask::from_recipe("x".parse().unwrap()));
    }

    #[test]
    fn a_task_may_be_written_as_task_tracker_has_it() {
        let line = r#"{"project": 1, "recipe": "x", "priority": 2, "max_retries": 5, "max_assign_time": 3600, "hash64": 0,
            "unique_str": "doc 1", "verification": 0}"#;
        let task = NewTask::from_line(line).unwrap();
        assert_eq!((task.retries, task.project), (Some(5), Some("1".parse().unwrap())));
        assert_eq!(task.unique.unwrap().as_str(), "doc 1");
        let by_hash = NewTask::from_line(r#"{"recipe": "x", "unique_str": "", "hash64": -5}"#).unwrap();
        assert_eq!(by_hash.unique.unwrap().as_str(), "-5");
    }

    #[test]
    fn what_is_no_task_has_an_error_of_one_line_that_says_what_is_wrong() {
        for (line, expected) in [
            ("", "not JSON: "),
            ("plain text", "a task is a JSON string"),
            (r#""a" "b""#, "not JSON: trailing characters"),
            ("7", "with `recipe`, not a number"),
            (r#"["a"]"#, "not a list"),
            ("{}", "`recipe` is missing"),
            (r#"{"recipe": null}"#, "`recipe` is missing"),
            (r#""""#, "the recipe is empty"),
            (r#"{"recipe": [1]}"#, "`recipe` is text: write the JSON as a string, not a list"),
            (r#"{"recipe": 1}"#, "`recipe` is text, not a number"),
            (r#"{"recipe": "x", "recipes": 1}"#, "a task has no `recipes`: did you mean `recipe`?"),
            (r#"{"recipe": "x", "url": "y"}"#, "a task has no `url`; there are `recipe`"),
            (r#"{"recipe": "x", "unique": ""}"#, "`unique` has 1 to"),
            (r#"{"recipe": "x", "unique": 7}"#, "`unique` is text, not a number"),
            (r#"{"recipe": "x", "priority": "high"}"#, "`priority` is a number, not text"),
            (r#"{"recipe": "x", "priority": 1e999}"#, "not JSON: number out of range"),
            (r#"{"recipe": "x", "retries": -1}"#, "`retries` is a whole number from 0 to 1000000, not -1"),
            (r#"{"recipe": "x", "retries": 1.5}"#, "not 1.5"),
            (r#"{"recipe": "x", "retries": 99999999999}"#, "not 99999999999"),
            (r#"{"recipe": "x", "project": 1.5}"#, "`project` is text, not a number"),
            (r#"{"recipe": "x", "spider": "A b"}"#, "`spider`: `A b` is not a name"),
        ] {
            let error = NewTask::from_line(line).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn the_longest_line_that_is_a_task_is_no_longer_than_it_may_be() {
        let recipe = "\u{1}".repeat(MAX_RECIPE_BYTES);
        let unique = "\u{1}".repeat(8 * 1024);
        let line = json!({ "recipe": recipe, "unique": unique, "spider": "x".repeat(64) }).to_string();
        assert!(NewTask::from_line(&line).is_ok());
        assert!((6 * MAX_RECIPE_BYTES..MAX_LINE_BYTES).contains(&line.len()), "{}", line.len());
    }

    proptest! {
        #[test]
        fn a_task_that_is_written_is_read_as_it_was(
            recipe in ".{1,40}", unique in proptest::option::of(".{1,20}"), priority in -1_000_000..1_000_000i32, retries in 0..=MAX_RETRIES,
        ) {
            let task = NewTask {
                unique: unique.map(|unique| unique.parse().unwrap()),
                priority: f64::from(priority).try_into().unwrap(),
                retries: Some(retries),
                ..NewTask::from_recipe(recipe.parse().unwrap())
            };
            prop_assert_eq!(NewTask::from_line(&serde_json::to_string(&task).unwrap()).unwrap(), task);
        }

        #[test]
        fn any_text_is_a_task_or_an_error_of_one_line(line in ".{0,60}") {
            if let Err(error) = NewTask::from_line(&line) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
