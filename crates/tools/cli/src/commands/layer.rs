//! `lavascope layer`: makes the layer known to the loader for this user, and takes it away again.

use std::fs;
use std::io::ErrorKind;

use anyhow::Context;

use super::Outcome;
use crate::layer_files::{Name, user_folder, write_manifest};
use crate::text;

/// Install or uninstall the layer for this user
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Write the manifest into the loader's folder of this user
    Install(Options),
    /// Remove the manifest again
    Uninstall(Options),
}

#[derive(clap::Args)]
struct Options {
    /// Under the name of the Khronos layer
    #[arg(long)]
    as_khronos: bool,
}

impl Options {
    fn name(&self) -> Name {
        if self.as_khronos { Name::Khronos } else { Name::Own }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let folder = user_folder()?;
    match &arguments.action {
        Action::Install(options) => {
            let path = write_manifest(&folder, options.name())?;
            text::emit(&format!("installed {}\n", path.display()))?;
        }
        Action::Uninstall(options) => {
            let path = folder.join(options.name().manifest_file());
            match fs::remove_file(&path) {
                Ok(()) => text::emit(&format!("removed {}\n", path.display()))?,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    text::emit(&format!("not installed: there is no {}\n", path.display()))?;
                }
                Err(error) => return Err(error).with_context(|| format!("{} cannot be removed", path.display())),
            }
        }
    }
    Ok(Outcome::Fine)
}
