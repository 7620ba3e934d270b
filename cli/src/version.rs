//! The words that `--version` prints.

use std::sync::LazyLock;

/// The commit that releases are built from. Builds without the variable do not name one, so that a commit alone
/// compiles nothing anew.
const COMMIT: Option<&str> = option_env!("TRAWL_COMMIT");

/// Optional parts of the programs, and whether this one has them.
const FEATURES: [(&str, bool); 2] =
    [("jemalloc", cfg!(feature = "jemalloc")), ("otlp", cfg!(feature = "otlp"))];

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features: Vec<_> = FEATURES.into_iter().filter(|(_, is_in)| *is_in).map(|(name, _)| name).collect();
    describe(env!("CARGO_PKG_VERSION"), COMMIT.unwrap_or_default(), &features)
});

/// Returns the version, the commit if it is known, and the features of this program.
pub fn version() -> &'static str {
    &VERSION
}

fn describe(version: &str, commit: &str, features: &[&str]) -> String {
    let commit = if commit.is_empty() { String::new() } else { format!("commit {commit}, ") };
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    format!("{version} ({commit}features: {features})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_its_commit_if_it_knows_it_and_its_features() {
        let known = describe("1.2.3", "0123456789ab", &["jemalloc", "otlp"]);
        assert_eq!(known, "1.2.3 (commit 0123456789ab, features: jemalloc otlp)");
        assert_eq!(describe("1.2.3", "", &[]), "1.2.3 (features: none)");
    }
}
