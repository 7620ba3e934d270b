//! The version of a program: which code its files hold.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use trawl_common::spider::{FileHash, Handler};
use trawl_common::web::url::Fingerprint;

/// Endings of files that hold code or its settings. Others may be data, which the program itself may write.
const CODE: [&str; 16] = [
    "py", "js", "mjs", "cjs", "ts", "rb", "php", "pl", "sh", "lua", "r", "jar", "toml", "cfg", "yaml", "yml",
];

/// Folders of code that others have written.
const INSTALLED: [&str; 2] = ["node_modules", "__pycache__"];

/// The file that marks a virtual environment of Python.
const VENV: &str = "pyvenv.cfg";

/// Maximum number of files that count.
const MAX_FILES: usize = 2_000;

/// Maximum depth of folders.
const MAX_DEPTH: usize = 8;

/// Maximum size of a file whose bytes count; of a larger one only the size does.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The files of a program, with what changes when somebody writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFiles(Vec<Stamp>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stamp {
    /// The path below the folder.
    path: PathBuf,
    size: u64,
    inode: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
}

impl ProgramFiles {
    /// Finds the files of a program that runs in `folder`: those that its command names, all code in folders that it
    /// names, and if the folder is the spider's own, all code in it, except `but`, code that was installed, and hidden
    /// files. Links to folders are not followed.
    pub fn find(handler: &Handler, folder: &Path, is_own: bool, but: &Path) -> Self {
        let mut stamps = Vec::new();
        if is_own {
            walk(folder, Path::new(""), MAX_DEPTH, but, &mut stamps);
        }
        for word in &handler.run {
            // A path outside the folder belongs to the machine.
            let path = Path::new(word).strip_prefix(folder).unwrap_or(Path::new(word));
            match fs::metadata(folder.join(path)) {
                Ok(metadata) if metadata.is_file() && path.is_relative() => {
                    stamps.push(Stamp::new(path.strip_prefix(".").unwrap_or(path).to_owned(), &metadata));
                }
                // The code that a runner is pointed to, such as a Scrapy project.
                Ok(metadata) if metadata.is_dir() && path != Path::new("/") => {
                    walk(folder, path, MAX_DEPTH, but, &mut stamps);
                }
                _ => {}
            }
        }
        stamps.sort_unstable();
        stamps.dedup();
        Self(stamps)
    }

    /// Returns the hash of their names and contents, which is the same on every machine that has the same files.
    pub fn hash(&self, folder: &Path) -> FileHash {
        let lines = self.0.iter().map(|Stamp { path, size, .. }| {
            let bytes = if *size > MAX_FILE_BYTES { None } else { fs::read(folder.join(path)).ok() };
            let content = bytes.map(|bytes| Fingerprint::of_bytes(&bytes).to_string());
            format!("{} {}\n", path.display(), content.unwrap_or_else(|| size.to_string()))
        });
        FileHash::from_text(&lines.collect::<String>())
    }
}

impl Stamp {
    fn new(path: PathBuf, metadata: &Metadata) -> Self {
        let modified = (metadata.mtime(), metadata.mtime_nsec());
        Self { path, size: metadata.len(), inode: metadata.ino(), modified }
    }
}

/// Adds the files below `folder/within` that hold code.
fn walk(folder: &Path, within: &Path, depth: usize, but: &Path, stamps: &mut Vec<Stamp>) {
    // What cannot be read, the program's runs report.
    let Ok(entries) = fs::read_dir(folder.join(within)) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), within.join(entry.file_name()));
        let Ok(kind) = entry.file_type() else { continue };
        if name.as_encoded_bytes().starts_with(b".") || folder.join(&path) == but {
            continue;
        }
        if kind.is_dir() {
            let is_own = INSTALLED.iter().all(|installed| name != *installed);
            if is_own && depth > 0 && !entry.path().join(VENV).exists() {
                walk(folder, &path, depth - 1, but, stamps);
            }
        } else if stamps.len() < MAX_FILES
            && let Ok(metadata) = fs::metadata(entry.path())
            && metadata.is_file()
            && is_code(&path, &metadata)
        {
            stamps.push(Stamp::new(path, &metadata));
        }
    }
}

fn is_code(path: &Path, metadata: &Metadata) -> bool {
    let is_executable = metadata.permissions().mode() & 0o111 != 0;
    is_executable || path.extension().is_some_and(|ending| CODE.iter().any(|code| ending == *code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler(run: &[&str]) -> Handler {
        let text = format!("[handler]\nrun = {run:?}\n");
        let folder = tempfile::tempdir().unwrap();
        let settings =
            trawl_common::settings::Settings { spiders_dir: folder.path().to_owned(), ..Default::default() };
        let name = "shop".parse().unwrap();
        fs::write(folder.path().join("shop.toml"), &text).unwrap();
        let folder = trawl_common::spider::folder::Folder::new(&settings);
        folder.reading(&name, &text).spider.handler.unwrap()
    }

    fn version(handler: &Handler, folder: &Path, is_own: bool) -> FileHash {
        ProgramFiles::find(handler, folder, is_own, &folder.join("spider.toml")).hash(folder)
    }

    #[test]
    fn the_version_of_a_program_in_a_folder_of_its_own_is_that_of_all_its_code() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let handler = handler(&["python3", "run.py"]);
        let both = |path: &str, text: &str| {
            for folder in [&one, &two] {
                fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
                fs::write(folder.path().join(path), text).unwrap();
            }
        };
        both("run.py", "import shop");
        both("shop/parse.py", "x = 1");
        let of = |folder: &tempfile::TempDir| version(&handler, folder.path(), true);
        let before = of(&one);
        assert_eq!(before, of(&two), "on every machine");
        for data in ["out/items.json", "crawl.db", ".git/x.py", "node_modules/x.js", "shop/__pycache__/a.py"]
        {
            both(data, "1");
        }
        both("venv/pyvenv.cfg", "");
        both("venv/lib/x.py", "1");
        both("spider.toml", "[handler]");
        assert_eq!(before, of(&one), "data and installed code do not count");
        fs::write(one.path().join("shop/parse.py"), "x = 2").unwrap();
        assert_ne!(before, of(&one));
        fs::rename(two.path().join("shop/parse.py"), two.path().join("shop/read.py")).unwrap();
        assert_ne!(before, of(&two), "names count");
    }

    #[test]
    fn the_version_of_a_program_beside_other_spiders_is_that_of_the_files_that_its_command_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("run.py"), "1").unwrap();
        let inside = path("run.py").to_string_lossy().into_owned();
        let (named, absolute) = (handler(&["python3", "./run.py"]), handler(&["python3", &inside]));
        let before = version(&named, folder.path(), false);
        assert_eq!(before, version(&absolute, folder.path(), false));
        fs::write(path("other.py"), "1").unwrap();
        assert_eq!(before, version(&named, folder.path(), false));
        fs::write(path("run.py"), "2").unwrap();
        assert_ne!(before, version(&named, folder.path(), false));
    }

    #[test]
    fn code_in_a_folder_that_the_command_names_counts() {
        let (own, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(project.path().join("spider.py"), "1").unwrap();
        let handler = handler(&["trawl-scrapy", "serve", "--project", &project.path().to_string_lossy()]);
        for is_own in [true, false] {
            let before = version(&handler, own.path(), is_own);
            fs::write(project.path().join("spider.py"), format!("changed {is_own}")).unwrap();
            assert_ne!(before, version(&handler, own.path(), is_own));
        }
    }

    #[test]
    fn a_file_that_is_written_again_as_it_was_is_another_look_and_no_other_version() {
        let folder = tempfile::tempdir().unwrap();
        let handler = handler(&["./run"]);
        let write = || {
            fs::write(folder.path().join("new"), "1").unwrap();
            fs::rename(folder.path().join("new"), folder.path().join("run")).unwrap();
            ProgramFiles::find(&handler, folder.path(), false, Path::new(""))
        };
        let first = write();
        let hash = first.hash(folder.path());
        let keeps_inode = fs::File::open(folder.path().join("run")).unwrap();
        let second = write();
        assert_ne!(first, second);
        assert_eq!(hash, second.hash(folder.path()));
        drop(keeps_inode);
    }
}
