//! `transform`: steps that change the values of a field before they become what its `type` says.

use jiff::tz::TimeZone;

use super::Kind;
use crate::mistake::Sited;

/// One step. Texts change one by one unless a step says otherwise; a value that a step refuses is left out.
#[derive(Clone, Debug, PartialEq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Transform {
    /// `strip`: leaves out white space, or these characters, at both ends.
    Strip(Option<String>),
    /// `lower`: in lower case.
    Lower,
    /// `upper`: in upper case.
    Upper,
    /// `replace`: replaces every match of a regular expression. `$1` and `${name}` are its groups.
    Replace(Sited<String>, String),
    /// `regex`: keeps the first group of the first match, or the whole match. A text that does not match is refused.
    Regex(Sited<String>),
    /// `matches`: each match is a value, as in `regex`. A text without one is refused.
    Matches(Sited<String>),
    /// `split`: the parts between these separators are values, without white space at their ends; empty ones are left
    /// out.
    Split(String),
    /// `join`: all values become one text, with this between them.
    Join(String),
    /// `slice`: the values from the first of these numbers up to the second, which count from the end if negative.
    Slice(i64, Option<i64>),
    /// `chars`: the characters of each text, likewise.
    Chars(i64, Option<i64>),
    /// `template`: a text in which `{value}` stands for the value.
    Template(String),
    /// `default`: this text is the value where there is none.
    Default(String),
    /// `path`: the values that a path finds in JSON, which a text is read as.
    Path(Sited<String>),
    /// `jmespath`: the values that a JMESPath expression finds in JSON, likewise.
    JmesPath(Sited<String>),
    /// `url`, `number`, `integer`, `boolean`, `date`: the value as of this type.
    Read(Conversion),
}

/// How a text is read as a value of a type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// The type.
    pub kind: Kind,
    /// The format of a date, as for strptime.
    pub format: Option<Sited<String>>,
    /// The time zone of dates with a time but without an offset; UTC if `None`.
    pub timezone: Option<TimeZone>,
    /// The decimal mark of a number, `.` or `,`, if known.
    pub decimal: Option<char>,
    /// Texts that mean true, in place of the default ones. Unless `falsehood` has texts, any other means false.
    pub truth: Vec<String>,
    /// Texts that mean false, in place of the default ones.
    pub falsehood: Vec<String>,
}

impl Transform {
    /// The name in spider files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read(conversion) => conversion.kind.as_str(),
            step => step.into(),
        }
    }
}
