//! A task as its program sees it.

use serde::{Serialize, Serializer};

use super::recipe::Recipe;
use crate::names::{CrawlId, ProjectName, SpiderName};
use crate::priority::Priority;
use crate::web::url::Fingerprint;

/// A task as its program sees it: the `<task-json>` that a handler is given, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskView {
    /// The task's id: 32 hexadecimal digits, the same at every attempt.
    #[serde(serialize_with = "as_digits")]
    pub id: Fingerprint,
    /// The project of the spider.
    pub project: ProjectName,
    /// The spider whose program it is given.
    pub spider: SpiderName,
    /// The crawl that it belongs to.
    pub crawl: CrawlId,
    /// The recipe.
    pub recipe: Recipe,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Maximum number of retries: attempt `max_retries + 1` is the last.
    pub max_retries: u32,
    /// The priority within its spider, the highest first.
    pub priority: Priority,
}

fn as_digits<S: Serializer>(id: &Fingerprint, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

impl TaskView {
    /// Returns it as JSON on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names, text and numbers are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_given_its_task_as_one_line_of_json_with_fixed_names() {
        let task = TaskView {
            id: Fingerprint::from_text("x"),
            project: ProjectName::default(),
            spider: "payments".parse().unwrap(),
            crawl: "20260101-000000-abcdef".parse().unwrap(),
            recipe: "[{\"name\": \"Ä\"}]\nnext line".parse().unwrap(),
            attempt: 1,
            max_retries: 3,
            priority: Priority::default(),
        };
        let id = Fingerprint::from_text("x").to_string();
        let expected = serde_json::json!({
            "id": id, "project": "default", "spider": "payments", "crawl": "20260101-000000-abcdef",
            "recipe": "[{\"name\": \"Ä\"}]\nnext line", "attempt": 1, "max_retries": 3, "priority": 0.0,
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&task.to_json()).unwrap(), expected);
        assert!(!task.to_json().contains('\n'));
    }
}
