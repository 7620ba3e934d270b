//! Screening one frame: parts that the client library cannot read are overwritten in place.

/// Maximum nesting of tables and arrays. The broker's own `x-death` has four levels.
pub const MAX_DEPTH: usize = 32;
/// The header that replaces unreadable ones; its value is the rest of their bytes.
pub(crate) const UNREADABLE: &str = "unreadable";

/// The kinds of frames with data from a publisher, apart from a message's body.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Method,
    /// A message's properties.
    Properties,
}

/// The class of connection methods, and the first method of that class.
const CONNECTION: u16 = 10;
const START: u16 = 10;
/// The class of methods that carry messages, and those that the broker sends: returned, delivered, got.
const BASIC: u16 = 60;
const RETURN: u16 = 50;
const DELIVER: u16 = 60;
const GET_OK: u16 = 71;

impl Kind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Method),
            2 => Some(Self::Properties),
            _ => None,
        }
    }

    /// Makes the payload readable. Returns the broker's version if the payload has it.
    pub(super) fn screen(self, payload: &mut [u8]) -> Option<String> {
        // A frame that ends too early is left for the library to refuse: no publisher can cause it.
        let _ = match self {
            Self::Method => method(payload),
            Self::Properties => properties(payload),
        };
        matches!(self, Self::Method).then(|| version(payload)).flatten()
    }
}

fn method(payload: &mut [u8]) -> Option<()> {
    let mut reader = Reader { bytes: payload, at: 0 };
    if reader.u16()? != BASIC {
        return Some(());
    }
    match reader.u16()? {
        RETURN => reader.skip(2)?,
        DELIVER => {
            reader.short_string()?;
            reader.skip(9)?;
            return reader.short_strings(2);
        }
        GET_OK => {
            reader.skip(9)?;
            return reader.short_strings(2);
        }
        _ => return Some(()),
    }
    reader.short_strings(3)
}

/// Returns the broker's version, if this is the payload of the method that starts a connection.
pub(super) fn version(payload: &mut [u8]) -> Option<String> {
    let mut reader = Reader { bytes: payload, at: 0 };
    ((reader.u16()?, reader.u16()?) == (CONNECTION, START)).then_some(())?;
    // The protocol's version.
    reader.skip(2)?;
    let end = reader.block()?;
    while reader.at < end {
        let name = reader.at + 1;
        reader.short_string()?;
        let is_version = &reader.bytes[name..reader.at] == b"version";
        let kind = reader.byte()?;
        let value = reader.at;
        reader.skip_value(kind)?;
        if is_version && kind == b'S' {
            let text = reader.bytes.get(value + 4..reader.at)?;
            return Some(String::from_utf8_lossy(text).into_owned());
        }
    }
    None
}

/// The type of a property on the wire.
enum Property {
    Short,
    Table,
    Bytes(usize),
}

fn properties(payload: &mut [u8]) -> Option<()> {
    use Property::{Bytes, Short, Table};
    // From the content type to the id of the cluster, each with a bit of the flags, the highest first.
    const ALL: [Property; 14] = [
        Short,
        Short,
        Table,
        Bytes(1),
        Bytes(1),
        Short,
        Short,
        Short,
        Short,
        Bytes(8),
        Short,
        Short,
        Short,
        Short,
    ];
    let mut reader = Reader { bytes: payload, at: 0 };
    // Class, weight, the length of the body.
    reader.skip(12)?;
    let flags = reader.u16()?;
    for (index, property) in ALL.iter().enumerate() {
        if flags & (1 << (15 - index)) == 0 {
            continue;
        }
        match property {
            Short => reader.short_string()?,
            Bytes(count) => reader.skip(*count)?,
            Table => {
                let end = reader.block()?;
                let start = reader.at;
                let entries = reader.bytes.get_mut(start..end)?;
                if table(entries).is_none() {
                    empty(entries);
                }
                reader.at = end;
            }
        }
    }
    Some(())
}

/// Walks a table's entries without recursion, and repairs their names. Returns `None` for entries that the library
/// would refuse, or that would overflow its stack.
fn table(entries: &mut [u8]) -> Option<()> {
    // The ends of the open tables and arrays, the innermost last, and whether their entries have names.
    let mut open = vec![(entries.len(), true)];
    let mut reader = Reader { bytes: entries, at: 0 };
    while let Some(&(end, has_names)) = open.last() {
        if reader.at == end {
            open.pop();
            continue;
        }
        if has_names {
            reader.short_string()?;
        }
        match reader.byte()? {
            kind @ (b'F' | b'A') if open.len() < MAX_DEPTH => {
                let inner = reader.block()?;
                // Before the check below: an empty one begins where it ends.
                (inner <= end).then_some(())?;
                open.push((inner, kind == b'F'));
            }
            b'F' | b'A' => return None,
            kind => reader.skip_value(kind)?,
        }
        (reader.at <= end).then_some(())?;
    }
    Some(())
}

/// Overwrites all these entries with one that the library can read and that has no meaning.
fn empty(entries: &mut [u8]) {
    let name = UNREADABLE.as_bytes();
    // Name, type and length.
    let head = 1 + name.len() + 1 + 4;
    match entries.len().checked_sub(head) {
        Some(rest) => {
            let length = (rest as u32).to_be_bytes();
            let entry = [&[name.len() as u8], name, b"x", &length].concat();
            entries[..head].copy_from_slice(&entry);
        }
        // Too short for that: entries without name and value, two bytes each, and for an odd length one of three.
        None => {
            let is_odd = entries.len() % 2 == 1;
            entries.chunks_exact_mut(2).for_each(|entry| entry.copy_from_slice(&[0, b'V']));
            if let Some(odd) = entries.last_chunk_mut().filter(|_| is_odd) {
                *odd = [0, b't', 0];
            }
        }
    }
}

struct Reader<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Reader<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    /// Skips the value of a header; a table or an array as a whole.
    fn skip_value(&mut self, kind: u8) -> Option<()> {
        match kind {
            b't' | b'b' | b'B' => self.skip(1),
            b's' | b'U' | b'u' => self.skip(2),
            b'I' | b'i' | b'f' => self.skip(4),
            b'D' => self.skip(5),
            b'L' | b'l' | b'd' | b'T' => self.skip(8),
            b'V' => Some(()),
            b'S' | b'x' | b'F' | b'A' => {
                self.at = self.block()?;
                Some(())
            }
            _ => None,
        }
    }

    /// Reads the length of a block that begins after it, and returns its end.
    fn block(&mut self) -> Option<usize> {
        let length: [u8; 4] = self.bytes.get(self.at..)?.first_chunk().copied()?;
        self.skip(4)?;
        self.at.checked_add(u32::from_be_bytes(length) as usize).filter(|end| *end <= self.bytes.len())
    }

    /// Skips a short string, and makes it valid UTF-8, which the library requires.
    fn short_string(&mut self) -> Option<()> {
        let length = usize::from(self.byte()?);
        let start = self.at;
        self.skip(length)?;
        let text = &mut self.bytes[start..self.at];
        if std::str::from_utf8(text).is_err() {
            text.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
        }
        Some(())
    }

    fn short_strings(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.short_string())
    }
}
