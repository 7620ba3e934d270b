//! The versions of the programs of spiders, as their files are on this machine.

use std::collections::HashMap;
use std::path::PathBuf;

use parking_lot::Mutex;
use trawl_common::names::SpiderName;
use trawl_common::spider::folder::Folder;
use trawl_common::spider::{FileHash, Handler};
use trawl_handlers::ProgramFiles;

/// The versions of the programs in use. A changed version counts once two looks in a row find the same files, so that
/// no program is started while its files are being copied.
#[derive(Default)]
pub(super) struct ProgramVersions(Mutex<HashMap<SpiderName, Known>>);

struct Known {
    handler: Handler,
    files: ProgramFiles,
    version: FileHash,
    /// Whether the files were found changed and not hashed since.
    is_changing: bool,
}

/// The place of a program's files.
struct Place {
    folder: PathBuf,
    /// Whether the folder is the spider's own.
    is_own: bool,
    /// The file of the spider, which its text stands for.
    file: PathBuf,
}

impl Place {
    fn new(folder: &Folder, name: &SpiderName) -> Self {
        let (file, is_own) = (folder.file(name), folder.has_own_folder(name));
        Self { folder: folder.program_folder(name), is_own, file }
    }

    fn find(&self, handler: &Handler) -> ProgramFiles {
        ProgramFiles::find(handler, &self.folder, self.is_own, &self.file)
    }
}

impl ProgramVersions {
    /// Returns the version of a spider's program that counts now.
    pub(super) fn of(&self, folder: &Folder, name: &SpiderName, handler: &Handler) -> FileHash {
        if let Some(known) = self.0.lock().get(name).filter(|known| known.handler == *handler) {
            return known.version;
        }
        let place = Place::new(folder, name);
        let files = place.find(handler);
        let version = files.hash(&place.folder);
        let known = Known { handler: handler.clone(), files, version, is_changing: false };
        self.0.lock().insert(name.clone(), known);
        version
    }

    /// Looks at the files of all programs that were asked for. Reads files, so it blocks.
    pub(super) fn look(&self, folder: &Folder) {
        let programs: Vec<(SpiderName, Handler)> =
            self.0.lock().iter().map(|(name, known)| (name.clone(), known.handler.clone())).collect();
        for (name, handler) in programs {
            let place = Place::new(folder, &name);
            let files = place.find(&handler);
            if self.has_changed_and_settled(&name, &handler, &files) {
                let version = files.hash(&place.folder);
                if let Some(known) = self.0.lock().get_mut(&name).filter(|known| known.handler == handler) {
                    known.version = version;
                }
            }
        }
    }

    /// Notes the files of a program. Returns whether they differ from those of its version, and are as they were at the
    /// last look.
    fn has_changed_and_settled(&self, name: &SpiderName, handler: &Handler, files: &ProgramFiles) -> bool {
        let mut all = self.0.lock();
        let Some(known) = all.get_mut(name).filter(|known| known.handler == *handler) else { return false };
        let is_same = known.files == *files;
        if !is_same {
            known.files = files.clone();
        }
        std::mem::replace(&mut known.is_changing, !is_same) && is_same
    }
}
