//! The recipe of a task.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};

/// Maximum length of a recipe, in bytes of UTF-8.
pub const MAX_RECIPE_BYTES: usize = 1024 * 1024;

/// The instructions of a task for its program: any text except the empty one, at most [`MAX_RECIPE_BYTES`] long.
/// Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Recipe(Arc<str>);

/// The error for a text that is no recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecipe {
    /// It is empty.
    #[error("the recipe is empty")]
    Empty,
    /// It is too long.
    #[error(
        "the recipe has {0} bytes: it may have {MAX_RECIPE_BYTES}; put the data into a file or a store, and name that"
    )]
    TooLong(usize),
}

impl FromStr for Recipe {
    type Err = InvalidRecipe;
    fn from_str(text: &str) -> Result<Self, InvalidRecipe> {
        match text.len() {
            0 => Err(InvalidRecipe::Empty),
            1..=MAX_RECIPE_BYTES => Ok(Self(text.into())),
            bytes => Err(InvalidRecipe::TooLong(bytes)),
        }
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start: String = self.0.chars().take(80).collect();
        fmt::Debug::fmt(&start, f)
    }
}

text!(Recipe);
as_text!(Recipe);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_any_text_of_up_to_a_megabyte() {
        for good in ["x", " ", "[{\"name\": \"Ä\"}]\n\0", &"x".repeat(MAX_RECIPE_BYTES)] {
            assert_eq!(good.parse::<Recipe>().unwrap().as_str(), good);
        }
        assert_eq!("".parse::<Recipe>(), Err(InvalidRecipe::Empty));
        let long = "x".repeat(MAX_RECIPE_BYTES + 1);
        assert_eq!(long.parse::<Recipe>(), Err(InvalidRecipe::TooLong(MAX_RECIPE_BYTES + 1)));
    }
}
