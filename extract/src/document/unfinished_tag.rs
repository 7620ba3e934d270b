//! Counts the attributes of a tag before it ends.
//!
//! The tokenizer compares each attribute of a tag with all attributes before it, and emits nothing until the tag ends.
//! A text may begin inside a script, a comment or a quoted value, so the tag could have begun at any `<x` in it. All
//! candidates are followed at once. Two candidates that reach the same state continue alike, so only the larger count
//! is kept.

/// Position of a reader in a tag (HTML standard, 13.2.5.8 and 13.2.5.32 to 39).
#[derive(Clone, Copy)]
enum State {
    TagName,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    DoubleQuoted,
    SingleQuoted,
    Unquoted,
}

const STATES: [State; 8] = [
    State::TagName,
    State::BeforeName,
    State::Name,
    State::AfterName,
    State::BeforeValue,
    State::DoubleQuoted,
    State::SingleQuoted,
    State::Unquoted,
];

impl State {
    /// Returns the state after `byte`, or `None` if the tag ends.
    fn after(self, byte: u8) -> Option<Self> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c');
        let next = match (self, byte) {
            (Self::DoubleQuoted, b'"') | (Self::SingleQuoted, b'\'') => Self::BeforeName,
            (Self::DoubleQuoted | Self::SingleQuoted, _) => self,
            (_, b'>') => return None,
            (Self::Unquoted, _) => {
                if is_space {
                    Self::BeforeName
                } else {
                    self
                }
            }
            (Self::BeforeValue, b'"') => Self::DoubleQuoted,
            (Self::BeforeValue, b'\'') => Self::SingleQuoted,
            (Self::BeforeValue, _) => {
                if is_space {
                    self
                } else {
                    Self::Unquoted
                }
            }
            (Self::Name | Self::AfterName, b'=') => Self::BeforeValue,
            (_, b'/') => Self::BeforeName,
            (Self::TagName | Self::BeforeName, _) if is_space => Self::BeforeName,
            (Self::TagName, _) => self,
            (Self::Name | Self::AfterName, _) if is_space => Self::AfterName,
            (Self::BeforeName | Self::Name | Self::AfterName, _) => Self::Name,
        };
        Some(next)
    }
}

/// The count of attributes, continued across pieces of a text.
#[derive(Default)]
pub(crate) struct UnfinishedTag {
    /// The largest number of attributes of a tag that can be in each state now, or `None` if no tag can.
    counts: [Option<usize>; STATES.len()],
    before: [u8; 2],
}

impl UnfinishedTag {
    /// Continues with the next piece of the text.
    pub(crate) fn read(&mut self, text: &[u8]) {
        for &byte in text {
            let mut next = [None; STATES.len()];
            for (state, count) in STATES.into_iter().zip(self.counts) {
                let Some((count, after)) = count.zip(state.after(byte)) else { continue };
                let begins = matches!((state, after), (State::BeforeName | State::AfterName, State::Name));
                let slot: &mut Option<usize> = &mut next[after as usize];
                *slot = (*slot).max(Some(count + usize::from(begins)));
            }
            if byte.is_ascii_alphabetic() && (self.before[1] == b'<' || self.before == *b"</") {
                let slot = &mut next[State::TagName as usize];
                *slot = (*slot).max(Some(0));
            }
            self.counts = next;
            self.before = [self.before[1], byte];
        }
    }

    /// Returns an upper bound for the number of attributes of the tag that has not ended; 0 if there is none.
    pub(crate) fn attributes(&self) -> usize {
        self.counts.into_iter().flatten().max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_of_a_tag_are_counted_before_it_ends() {
        for (text, attributes) in [
            ("", 0),
            ("a b c", 0),
            ("<a", 0),
            ("<a b", 1),
            ("<a b c=d e='f g' h=\"i > j\"k l/m n = o =p", 9),
            ("</a b c", 2),
            ("<a b c>", 0),
            ("<a b c><i d", 1),
            ("< a b c", 0),
            ("<!-- a b c", 0),
            ("<a alt='b c d e f g", 1),
            // Either two tags or the rest of a quoted value.
            ("'<a b='<c d e f", 3),
            ("\"<i>'<a b c d e='>", 4),
        ] {
            for middle in 0..=text.len() {
                let (start, end) = text.as_bytes().split_at(middle);
                let mut tag = UnfinishedTag::default();
                tag.read(start);
                tag.read(end);
                assert_eq!(tag.attributes(), attributes, "{text}");
            }
        }
    }
}
