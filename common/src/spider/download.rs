//! `[[download]]`: the files that a spider keeps.

use std::path::PathBuf;

use bytesize::ByteSize;

use super::{Field, FieldSource, FileTemplate, Kind, PageFollow};
use crate::mistake::Sited;

/// `[[download]]`: a rule for files that pages link to.
#[derive(Clone, Debug, PartialEq)]
pub struct Download {
    /// Its name, which its items have too.
    pub name: Sited<String>,
    /// The names of the kinds of pages on which it looks for links; every page if empty.
    pub page: Vec<Sited<String>>,
    /// The links of its files, and the values that go along with each.
    pub links: PageFollow,
    /// The folder of its files. It may have the placeholders `{spider}` and `{worker}`.
    pub to: PathBuf,
    /// The folder that `to` may not leave, neither by its name nor by a symbolic link; `None` for no restriction.
    pub below: Option<PathBuf>,
    /// The names of its files below `to`.
    pub path: FileTemplate,
    /// Maximum size of a file.
    pub max_size: ByteSize,
    /// Media types, as `image/png` or `image/*`, one of which a file must have; any type if there are none.
    pub types: Vec<String>,
    /// Whether a file is synced to the disk before its URL is finished: then it also survives a power cut.
    pub sync: bool,
}

impl Download {
    /// The name of a rule without one.
    pub(crate) const DEFAULT_NAME: &str = "file";

    /// Default maximum size of a file.
    pub const DEFAULT_MAX_SIZE: ByteSize = ByteSize::mb(50);

    /// The fields of its items with the types of their values.
    pub const FIELDS: [(&str, Kind); 6] = [
        ("file", Kind::Text),
        ("sha256", Kind::Text),
        ("size", Kind::Integer),
        ("type", Kind::Text),
        ("width", Kind::Integer),
        ("height", Kind::Integer),
    ];

    /// Returns the fields of its items, those that are carried included.
    pub fn fields(&self) -> Vec<(String, Field)> {
        let own = Self::FIELDS.map(|(name, kind)| {
            let field = Field::new(FieldSource::Carried(name.to_owned()));
            (name.to_owned(), Field { kind, ..field })
        });
        let carried = self.links.carry.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        let carried: Vec<_> = carried.cloned().collect();
        own.into_iter().chain(carried).collect()
    }
}
