//! Suggestions for an unknown name.

use strsim::damerau_levenshtein;

/// Returns the end of a sentence that says that there is no `name`: the nearest known name, or all known ones.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match meant(name, known.clone()) {
        Some(near) => format!(": did you mean `{near}`?"),
        None if known.clone().next().is_none() => String::new(),
        None => format!("; there are {}", listed(known)),
    }
}

/// Returns the known name that `name` may be a misspelling of.
pub fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Only the start of a long name is compared: the cost is the product of the lengths.
    let name: String = name.chars().take(64).collect();
    let distance = |known: &&str| damerau_levenshtein(&name, known);
    known.min_by_key(distance).filter(|near| distance(near) <= (near.len() / 3).max(1))
}

/// Returns the names as `a, b and c`.
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        last => last.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_put_right_and_all_else_is_shown_what_there_is() {
        let known = ["include", "exclude", "area"];
        assert_eq!(nearest("inlcude", known.into_iter()), ": did you mean `include`?");
        assert_eq!(nearest("ara", known.into_iter()), ": did you mean `area`?");
        assert_eq!(nearest("depth", known.into_iter()), "; there are `include`, `exclude` and `area`");
    }
}
