//! Types that are written as text in settings and records, with parsing and display.

/// Implements the conversions that `#[serde(try_from = "String", into = "String")]` needs, for a type with
/// `FromStr` and `Display`.
macro_rules! as_text {
    ($($type:ty),+) => {$(
        impl TryFrom<String> for $type {
            type Error = <$type as std::str::FromStr>::Err;
            fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    )+};
}

/// Implements `as_str` and `Display` for types that wrap a text.
macro_rules! text {
    ($($type:ident),+) => {$(
        impl $type {
            /// Returns it as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }
    )+};
}

/// Implements `Debug` for types that nobody may read in logs.
macro_rules! hidden {
    ($type:ty) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("***")
            }
        }
    };
}

pub(crate) use {as_text, hidden, text};
