//! Tasks in the body of a request: one or many, as JSON or one per line.

use std::borrow::Cow;
use std::fmt::Display;

use axum::extract::{FromRequest, Request};
use serde_json::Value;
use trawl_common::names::SpiderName;
use trawl_common::task::{InvalidTask, MAX_RECIPE_BYTES, NewTask};
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::extract::{body, media_type};
use crate::problem::{Kind, Problem};

/// Maximum number of tasks in one request.
const MAX_TASKS: usize = 10_000;

/// The tasks of a body, each with its position.
pub(crate) struct NewTasks {
    /// The unit of the positions.
    unit: &'static str,
    tasks: Vec<(usize, NewTask)>,
}

impl<S: Send + Sync> FromRequest<S> for NewTasks {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let read = match media_type(request.headers()).to_ascii_lowercase().as_str() {
            "application/json" => of_json,
            "application/x-ndjson" | "application/jsonl" => of_lines,
            _ => {
                let detail =
                    "send `Content-Type: application/json`, or `application/x-ndjson` for a task a line";
                return Err(Problem::new(Kind::UnsupportedMediaType, detail));
            }
        };
        let tasks = read(&body(request).await?)?;
        match tasks.tasks.len() {
            1..=MAX_TASKS => Ok(tasks),
            count => {
                Err(Problem::malformed(format_args!("body: 1 to {MAX_TASKS} tasks at a time, not {count}")))
            }
        }
    }
}

impl NewTasks {
    /// Returns the tasks and their common spider, which is `named` or the spider of the first task.
    pub(crate) fn of_one_spider(
        self,
        named: Option<SpiderName>,
    ) -> Result<(SpiderName, Vec<NewTask>), Problem> {
        let Self { unit, tasks } = self;
        let first = tasks.first().and_then(|(_, task)| task.spider.clone());
        let Some(spider) = named.or(first) else {
            return Err(Problem::malformed(
                "spider: say in the query or in the first task which spider does them",
            ));
        };
        let for_it = |(number, task): (usize, NewTask)| {
            task.only_for(&spider).map_err(|error| no_task(unit, number, error))
        };
        let tasks = tasks.into_iter().map(for_it).collect::<Result<_, _>>()?;
        Ok((spider, tasks))
    }
}

/// Reads an array of tasks, or one task.
fn of_json(body: &[u8]) -> Result<NewTasks, Problem> {
    let value = serde_json::from_slice(body);
    let value = value.map_err(|error| Problem::malformed(format_args!("body: {error}")))?;
    let values = if let Value::Array(values) = value { values } else { vec![value] };
    let tasks = values.into_iter().zip(1..).map(|(value, number)| match NewTask::try_from(value) {
        Ok(task) => Ok((number, task)),
        Err(error) => Err(no_task("task", number, error)),
    });
    Ok(NewTasks { unit: "task", tasks: tasks.collect::<Result<_, _>>()? })
}

/// Reads one task per line. Empty lines are skipped, but count in line numbers.
fn of_lines(body: &[u8]) -> Result<NewTasks, Problem> {
    let lines = body.split(|&byte| byte == b'\n').zip(1..);
    let tasks = lines.filter(|(line, _)| !line.trim_ascii().is_empty()).map(|(line, number)| {
        let line = str::from_utf8(line).map_err(|_| no_task("line", number, "not UTF-8"))?;
        let task = NewTask::from_line(line.trim());
        Ok((number, task.map_err(|error: InvalidTask| no_task("line", number, error))?))
    });
    Ok(NewTasks { unit: "line", tasks: tasks.collect::<Result<_, Problem>>()? })
}

/// Returns the problem that the text at a position is not a task.
fn no_task(unit: &str, number: usize, reason: impl Display) -> Problem {
    Problem::malformed(format_args!("{unit} {number}: {reason}; none of the tasks was taken"))
}

/// A task: a text is its recipe
pub(crate) enum Task {}

impl PartialSchema for Task {
    fn schema() -> RefOr<Schema> {
        let recipe = || text("What it says to its program", MAX_RECIPE_BYTES);
        let object = ObjectBuilder::new()
            .property("recipe", recipe())
            .property("unique", text("A spider takes in one task with it; the recipe without it", 8 * 1024))
            .property("priority", number("The highest comes first; 0 without it"))
            .property("retries", retries())
            .property("project", text("Whose spider does it", 64))
            .property("spider", text("The spider that does it; that of the query without it", 64))
            .required("recipe")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)));
        OneOfBuilder::new()
            .item(recipe())
            .item(object)
            .description(Some("A task: a text is its recipe"))
            .into()
    }
}

impl ToSchema for Task {
    fn name() -> Cow<'static, str> {
        "Task".into()
    }
}

impl PartialSchema for NewTasks {
    fn schema() -> RefOr<Schema> {
        let task = || Ref::from_schema_name("Task");
        let many = ArrayBuilder::new().items(task()).min_items(Some(1)).max_items(Some(MAX_TASKS));
        OneOfBuilder::new().item(task()).item(many).description(Some("One task, or up to 10,000")).into()
    }
}

impl ToSchema for NewTasks {
    fn name() -> Cow<'static, str> {
        "NewTasks".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Task::name().into(), Task::schema()));
    }
}

pub(crate) fn number(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).description(Some(description))
}

pub(crate) fn text(description: &str, longest: usize) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    text.min_length(Some(1)).max_length(Some(longest))
}

pub(crate) fn retries() -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(1_000_000));
    number.description(Some("How often it is tried again after it failed; as its spider says without it"))
}
