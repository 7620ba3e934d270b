//! A task that somebody submits.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::read::InvalidTask;
use super::recipe::Recipe;
use super::unique::Unique;
use crate::jobs::Priority;
use crate::names::{ProjectName, SpiderName};

/// A task that somebody submits: a line of `tasks.jsonl`, an element of the body of `POST /api/v1/tasks`, or what a handler asks for.
///
/// It is written as a JSON string, which is the recipe, or as an object:
///
/// | key | what | without it |
/// |---|---|---|
/// | `recipe` | text, 1 MB at most | an error |
/// | `unique` | text; a spider takes in one task with it | the recipe is what is unique |
/// | `priority` | any number, the highest first within a spider | 0 |
/// | `retries` | how often it is tried again | as its spider says |
/// | `project` | whose spider does it | the project of who submits it |
/// | `spider` | the spider that does it | the spider of who submits it |
///
/// A key with the value `null` counts as left out. Keys of task_tracker are taken as well: `max_retries` for `retries`, `unique_str` or
/// `hash64` for `unique`, a number as `project`; `max_assign_time` and `verification` say nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct NewTask {
    /// What it says.
    pub recipe: Recipe,
    /// What makes it one with others; `None` for its recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// How urgent it is within its spider, the highest first.
    pub priority: Priority,
    /// How often it is tried again after it failed; `None` for as often as its spider says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// Whose spider does it; `None` for the project of who submits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectName>,
    /// The spider that does it; `None` for the one of who submits it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spider: Option<SpiderName>,
}

impl NewTask {
    /// A task of which nothing but the recipe is said.
    pub fn of(recipe: Recipe) -> Self {
        Self {
            recipe,
            unique: None,
            priority: Priority::default(),
            retries: None,
            project: None,
            spider: None,
        }
    }

    /// A line of `tasks.jsonl`.
    ///
    /// Fails if the line is no JSON, or no task.
    pub fn from_line(line: &str) -> Result<Self, InvalidTask> {
        let value: Value = serde_json::from_str(line).map_err(InvalidTask::no_json)?;
        value.try_into()
    }
}
