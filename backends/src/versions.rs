//! Versions of servers, as they say them.

/// Whether a version, such as `3.10.8`, is older than another of two numbers. One that cannot be read is not.
pub(crate) fn is_older(version: &str, than: [u32; 2]) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let Some(major) = numbers.next() else { return false };
    [major, numbers.next().unwrap_or_default()] < than
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number_and_unreadable_ones_are_not_older() {
        let older = ["3.9.27", "2"];
        assert!(older.iter().all(|version| is_older(version, [3, 10])));
        let others = ["3.10.8", "4.0.5", "4", "", "next"];
        assert!(!others.iter().any(|version| is_older(version, [3, 10])));
    }
}
