//! Sizes in bytes, in the form that a settings file stores.

use bytesize::ByteSize;

/// Serializes the exact number: `ByteSize` displays itself rounded.
pub(super) fn exact_bytes<S: serde::Serializer>(size: &ByteSize, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(size.as_u64())
}
