//! Sizes in bytes as a settings file keeps them.

use bytesize::ByteSize;

/// Writes the exact number: `ByteSize` shows itself rounded.
pub(super) fn exact_bytes<S: serde::Serializer>(size: &ByteSize, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(size.as_u64())
}
