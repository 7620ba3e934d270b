//! Findings of checks: of this machine, a server, or the settings.

use std::fmt;

use serde::Serialize;

/// One finding of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject of the check, in a word: `redis`.
    pub subject: &'static str,
    /// Whether all is well.
    pub verdict: Verdict,
    /// The finding, in a sentence.
    pub text: String,
    /// The way out, unless the text names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// The verdict of a check, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All is well.
    Ok,
    /// It works, with a risk that somebody may accept.
    Warning,
    /// It does not work, or will not for long.
    Error,
}

impl Verdict {
    /// Returns the word for people and scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    /// Creates the finding that all is well.
    pub fn ok(subject: &'static str, text: impl fmt::Display) -> Self {
        Self { subject, verdict: Verdict::Ok, text: text.to_string(), advice: None }
    }

    /// Creates the finding of a risk.
    pub fn warning(subject: &'static str, text: impl fmt::Display) -> Self {
        Self { verdict: Verdict::Warning, ..Self::ok(subject, text) }
    }

    /// Creates the finding of a fault.
    pub fn error(subject: &'static str, text: impl fmt::Display) -> Self {
        Self { verdict: Verdict::Error, ..Self::ok(subject, text) }
    }

    /// Adds the way out.
    #[must_use]
    pub fn advise(self, advice: impl fmt::Display) -> Self {
        Self { advice: Some(advice.to_string()), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.advice {
            Some(advice) => write!(f, ": {advice}"),
            None => Ok(()),
        }
    }
}
