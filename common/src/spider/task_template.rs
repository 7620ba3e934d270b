//! Tasks with values of pages in them.

use serde_json::{Map, Value};

use crate::json_object::known;
use crate::request::{InvalidTemplate, in_texts, placeholder_names};
use crate::task::{InvalidTask, NewTask};

/// The keys of a template.
const KEYS: [&str; 5] = ["recipe", "unique", "priority", "retries", "project"];

/// A task as spider files write it: with the keys of a [`NewTask`] except `spider`, and placeholders for carried values
/// in its texts. A recipe that is no text is written as JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTemplate(Map<String, Value>);

/// The reason why a template yields no task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTaskTemplate {
    /// A placeholder has no value, or no end.
    #[error(transparent)]
    Placeholder(#[from] InvalidTemplate),
    /// The task is invalid.
    #[error(transparent)]
    Task(#[from] InvalidTask),
}

impl TaskTemplate {
    /// Creates a template of a table, or of a text, the recipe.
    ///
    /// # Errors
    /// Fails if a key is unknown, the recipe is missing, or a placeholder has no end.
    pub fn new(value: Value) -> Result<Self, InvalidTaskTemplate> {
        let object = match value {
            Value::Object(object) => known(object, KEYS).map_err(InvalidTask::from)?,
            recipe => Map::from_iter([("recipe".to_owned(), recipe)]),
        };
        if !object.contains_key("recipe") {
            return Err(InvalidTask::NoRecipe.into());
        }
        object.values().try_for_each(|value| placeholder_names(value).map(drop))?;
        Ok(Self(object))
    }

    /// Returns the task with these values.
    ///
    /// # Errors
    /// Fails if a value is missing, or the task is invalid with them.
    pub fn fill(&self, values: &Map<String, Value>) -> Result<NewTask, InvalidTaskTemplate> {
        let mut object = Map::new();
        for (key, value) in &self.0 {
            let value = match (key.as_str(), in_texts(value, values)?) {
                ("recipe" | "unique", value @ (Value::String(_) | Value::Null)) => value,
                // A carried number is written as people write it.
                ("recipe" | "unique", value) => value.to_string().into(),
                (_, value) => value,
            };
            object.insert(key.clone(), value);
        }
        Ok(NewTask::try_from(Value::Object(object))?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(template: Value, values: Value) -> Result<Value, String> {
        let template = TaskTemplate::new(template).map_err(|error| error.to_string())?;
        let task = template.fill(values.as_object().unwrap()).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(task).unwrap())
    }

    #[test]
    fn values_go_into_the_texts_of_a_task_and_a_table_as_its_recipe_becomes_json() {
        let values = json!({"id": 7, "name": "A \"b\""});
        for (template, task) in [
            (json!("{carried.id}"), json!({"recipe": "7", "priority": 0.0})),
            (json!("doc {carried.id}"), json!({"recipe": "doc 7", "priority": 0.0})),
            (
                json!({"recipe": {"id": "{carried.id}", "name": "{carried.name}"}, "unique": "{carried.id}", "priority": 2}),
                json!({"recipe": r#"{"id":7,"name":"A \"b\""}"#, "unique": "7", "priority": 2.0}),
            ),
            (
                json!({"recipe": ["{carried.id}"], "retries": 0}),
                json!({"recipe": "[7]", "priority": 0.0, "retries": 0}),
            ),
        ] {
            assert_eq!(fill(template, values.clone()), Ok(task));
        }
    }

    #[test]
    fn a_template_that_makes_no_task_says_why() {
        for (template, error) in [
            (json!({"unique": "x"}), "`recipe` is missing"),
            (json!({"recipe": "x", "spider": "y"}), "a task has no `spider`"),
            (json!("{carried.x"), "`{carried.x` has no `}`"),
            (json!("{carried.x}"), "there is no carried value `x`"),
            (json!(""), "the recipe is empty"),
            (json!({"recipe": "x", "priority": "high"}), "`priority` is a number"),
        ] {
            let said = fill(template, json!({"n": 1})).unwrap_err();
            assert!(said.contains(error), "{said}");
        }
    }
}
