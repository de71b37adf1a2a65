//! `lavascope layer`: makes the layer known to the loader for this user, and takes it away again.

use std::fs;
use std::io::ErrorKind;

use anyhow::Context;

use super::CommandOutcome;
use crate::launch::layer_manifest::{LayerName, install_manifest, rival_manifest, user_folder};
use crate::text;

/// Install or uninstall the layer for this user
#[derive(clap::Args)]
pub(crate) struct LayerArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Install the layer's manifest, so that programs and Vulkan Configurator can enable the layer by its name
    Install(LayerNameOptions),
    /// Remove the manifest
    Uninstall(LayerNameOptions),
}

#[derive(clap::Args)]
struct LayerNameOptions {
    /// Use the name VK_LAYER_KHRONOS_validation: the loader then loads this layer in the place of the Khronos layer
    #[arg(long)]
    as_khronos: bool,
}

impl LayerNameOptions {
    fn name(&self) -> LayerName {
        if self.as_khronos { LayerName::Khronos } else { LayerName::Own }
    }
}

pub(crate) fn run(arguments: &LayerArguments) -> anyhow::Result<CommandOutcome> {
    let folder = user_folder()?;
    match &arguments.action {
        Action::Install(options) => {
            let path = install_manifest(&folder, options.name())?;
            text::emit(&format!("installed {}\n", path.display()))?;
            if let Some(rival) = rival_manifest(options.name(), &path) {
                let name = options.name().layer();
                text::emit_stderr(&format!(
                    "lavascope: {} also defines {name}, and some loaders load that one; `lavascope run{} -- ./app` does \
                     not depend on it\n",
                    rival.display(),
                    if options.as_khronos { " --as-khronos" } else { "" }
                ));
            }
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
    Ok(CommandOutcome::Success)
}
