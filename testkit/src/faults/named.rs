//! Parsing of names on the command line and in the table.

use std::fmt::Display;

use strum::VariantArray;

/// Returns the variant of this name. The error lists the names.
pub fn named<T: VariantArray + Copy + Display>(name: &str) -> Result<T, String> {
    let names: Vec<String> = T::VARIANTS.iter().map(T::to_string).collect();
    match names.iter().position(|known| known == name) {
        Some(at) => Ok(T::VARIANTS[at]),
        None => Err(format!("there are {}", names.join(", "))),
    }
}
