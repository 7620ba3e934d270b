//! Tasks: work for a spider's program ([`handler`](crate::handler)), like a URL for the worker itself.
//!
//! A task is a recipe: any text that its program understands. It is submitted as a [`NewTask`], stored by the frontier
//! like a URL, and passed to the program as a [`TaskView`].

mod new_task;
mod read;
mod recipe;
mod unique;
mod view;

pub use new_task::NewTask;
pub(crate) use read::KEYS;
pub use read::{InvalidTask, MAX_LINE_BYTES};
pub use recipe::{InvalidRecipe, MAX_RECIPE_BYTES, Recipe};
pub use unique::{InvalidUnique, Unique};
pub use view::TaskView;
