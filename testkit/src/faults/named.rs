//! What has a name on the command line and in the table.

use std::fmt::Display;

use strum::VariantArray;

/// The one of this name; else the names that there are.
pub fn named<T: VariantArray + Copy + Display>(name: &str) -> Result<T, String> {
    let names: Vec<String> = T::VARIANTS.iter().map(T::to_string).collect();
    match names.iter().position(|known| known == name) {
        Some(at) => Ok(T::VARIANTS[at]),
        None => Err(format!("there are {}", names.join(", "))),
    }
}
