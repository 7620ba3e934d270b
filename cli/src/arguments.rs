//! Arguments of a spider's file, as given at a shell.

use trawl_common::spider::arguments::{Argument, Arguments};

use crate::Fail;

/// The flag `-a`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct ArgumentFlags {
    /// Give an argument of the spider's file this value; may be repeated
    #[arg(short = 'a', long = "argument", value_name = "NAME=VALUE")]
    arguments: Vec<Argument>,
}

impl ArgumentFlags {
    /// Returns the arguments.
    ///
    /// # Errors
    /// If an argument is given twice.
    pub fn arguments(&self) -> Result<Arguments, Fail> {
        Arguments::new(self.arguments.iter().cloned()).map_err(Fail::usage)
    }
}
