//! The image of a project: that of the Dockerfile, of this program instead of one that is compiled for it.

use std::fs;

use trawl_cli::Fail;

use super::{File, templates};

const COMPILED: &str = "COPY --from=build /out/ /usr/local/bin/\n";
/// It is tried at once: it may need a newer C library than the image has.
const COPIED: &str = "COPY trawl /usr/local/bin/\n\
                      RUN cd /usr/local/bin && ln -s trawl producer && ln -s trawl worker && trawl -V\n";

pub(super) fn files() -> Result<[File; 4], Fail> {
    let program = std::env::current_exe().and_then(fs::read);
    let program = program.map_err(|error| Fail::run(format!("cannot read this program: {error}")))?;
    Ok([
        File::new("Dockerfile", dockerfile()),
        File::new(".dockerignore", "*\n!trawl\n!sdk\n"),
        File::new("sdk/python/trawl_handler.py", templates::HANDLER),
        File::program("trawl", program),
    ])
}

/// Returns the last stage of the Dockerfile.
fn dockerfile() -> String {
    let (_, last) = templates::DOCKERFILE.rsplit_once("\nFROM ").unwrap_or_default();
    format!("# The program `trawl` beside this file, as an image.\nFROM {}", last.replace(COMPILED, COPIED))
}
