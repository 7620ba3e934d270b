//! What has a name on the command line and in the table.

/// Shows and reads a type by its names: it has `ALL` and `as_str`.
macro_rules! named {
    ($type:ty, $what:literal) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|named| named.as_str() == text).ok_or_else(|| {
                    let names = Self::ALL.map(Self::as_str).join(", ");
                    format!(concat!("no ", $what, " of that name; there are {}"), names)
                })
            }
        }
    };
}

pub(super) use named;
