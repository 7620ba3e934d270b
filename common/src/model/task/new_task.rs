//! Submitted tasks.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::recipe::Recipe;
use super::unique::Unique;
use crate::names::{ProjectName, SpiderName};
use crate::priority::Priority;

/// A submitted task: a line of `tasks.jsonl`, an element of the body of `POST /api/v1/tasks`, or a task of a handler's
/// answer.
///
/// It is written as a JSON string, which is the recipe, or as an object:
///
/// | key | value | without it |
/// |---|---|---|
/// | `recipe` | text, 1 MB at most | an error |
/// | `unique` | text; a spider admits one task with it | the recipe is the unique text |
/// | `priority` | any number, the highest first within a spider | 0 |
/// | `retries` | how often it is retried | as its spider says |
/// | `project` | the project of the spider that does it | the submitter's project |
/// | `spider` | the spider that does it | the submitter's spider |
///
/// A key with the value `null` counts as absent. Keys of task_tracker are accepted as well: `max_retries` for
/// `retries`, `unique_str` or `hash64` for `unique`, a number as `project`; `max_assign_time` and `verification` are
/// ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct NewTask {
    /// The recipe.
    pub recipe: Recipe,
    /// The text by which duplicates are recognized; `None` for the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Unique>,
    /// The priority within its spider, highest first.
    pub priority: Priority,
    /// How often it is retried after a failure; `None` for as often as its spider says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// The project of the spider that does it; `None` for the submitter's project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectName>,
    /// The spider that does it; `None` for the submitter's spider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spider: Option<SpiderName>,
}

impl NewTask {
    /// Creates a task that has only a recipe.
    pub fn from_recipe(recipe: Recipe) -> Self {
        Self {
            recipe,
            unique: None,
            priority: Priority::default(),
            retries: None,
            project: None,
            spider: None,
        }
    }

    /// Returns the task with this priority and these retries where it sets none. A priority of 0 counts as unset.
    pub fn or(self, priority: Option<Priority>, retries: Option<u32>) -> Self {
        let priority = priority.filter(|_| self.priority == Priority::default()).unwrap_or(self.priority);
        Self { priority, retries: self.retries.or(retries), ..self }
    }
}
