//! The folders of downloaded files.

mod destination;
mod folder;
mod partial;
mod staging;

pub(super) use self::folder::FileFolder;
