//! Secrets among the settings: they are read, and never shown.

/// Makes a secret show as `***`, in logs and in printed settings.
macro_rules! masked {
    ($type:ty) => {
        crate::as_text::hidden!($type);

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str("***")
            }
        }
    };
}

pub(super) use masked;
