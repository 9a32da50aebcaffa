//! `checksum`: prints the checksum that the status would show for these directories.

use std::io::Write;

use super::args::ChecksumArgs;
use super::failure::Failure;
use crate::config_watch::{ConfigSettings, ConfigWatch};
use stayput_api::checksum::{Checksum, FileDigest, listing};

/// Prints the checksum; with `--files`, the listing that it is the SHA-256 of, and the checksum on
/// stderr, so that `--files | sha256sum` prints the same digits.
pub(super) fn print(args: ChecksumArgs, out: &mut impl Write) -> Result<(), Failure> {
    let with_files = args.files;
    let settings = ConfigSettings { dirs: args.dirs, live: args.live, ..ConfigSettings::default() };
    let problems = settings.problems();
    if !problems.is_empty() {
        // Messages name the option of `run`; here a directory has no option.
        return Err(Failure::Usage(problems.join("; ").replace("--config ", "")));
    }
    let observed =
        ConfigWatch::read_once(&settings).map_err(|errors| Failure::Failed(errors.join("; ")))?;
    let checksum = observed.checksum.ok_or_else(|| Failure::Failed(observed.errors.join("; ")))?;
    if !with_files {
        return Ok(writeln!(out, "{checksum}")?);
    }
    let files: Option<Vec<FileDigest>> = observed
        .files
        .iter()
        .filter(|file| !file.live)
        .map(|file| {
            let sha256 = file.sha256.parse().ok()?;
            Some(FileDigest { path: file.path.clone().into_bytes(), sha256 })
        })
        .collect();
    let files = files.filter(|files| Checksum::of_files(files) == checksum).ok_or_else(|| {
        Failure::Failed(
            "a file's name is not UTF-8, so the listing cannot be printed: leave out --files"
                .into(),
        )
    })?;
    out.write_all(&listing(&files))?;
    out.flush()?;
    // If stderr is closed, the listing alone is enough.
    let _ = writeln!(std::io::stderr(), "{checksum}");
    Ok(())
}
