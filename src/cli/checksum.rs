//! `checksum`: what the status would show for a directory.

use std::io::Write;
use std::path::Path;

use super::failure::Failure;
use crate::checksum::Checksum;
use crate::config_watch::{ConfigDir, ConfigSettings, ConfigWatch};

/// Prints the checksum of `dir`, behind the line of each file if `files`.
pub(super) fn print(dir: &Path, files: bool, out: &mut impl Write) -> Result<(), Failure> {
    let (listing, checksum) = read(dir).map_err(Failure::Failed)?;
    if files {
        write!(out, "{listing}")?;
    }
    Ok(writeln!(out, "{checksum}")?)
}

/// Listing and checksum of a directory.
fn read(dir: &Path) -> Result<(String, Checksum), String> {
    let dirs = vec![ConfigDir { name: None, path: dir.to_owned() }];
    let settings = ConfigSettings { dirs, ..ConfigSettings::default() };
    let observed = ConfigWatch::read_once(&settings).map_err(|errors| errors.join("; "))?;
    let checksum = observed.checksum.ok_or_else(|| observed.errors.join("; "))?;
    let lines = observed.files.iter().map(|file| format!("{}  {}\n", file.sha256, file.path));
    Ok((lines.collect(), checksum))
}
