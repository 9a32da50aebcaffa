//! Commands that are no client: `checksum`, `warm`, `install` and `token`.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Failure;
use super::args::{ChecksumArgs, TokenArgs, WarmArgs};
use crate::config_watch::{ConfigSettings, ConfigWatch};
use crate::files;
use crate::warm::{self, Warm, WarmError};
use stayput_api::Span;
use stayput_api::checksum::{Checksum, FileDigest, listing};
use stayput_http::jwt::{Grant, mint};

/// Prints the checksum; with `--files`, the listing that it is the SHA-256 of, and the checksum on
/// stderr, so that `--files | sha256sum` prints the same digits.
pub(super) fn print_checksum(args: ChecksumArgs, out: &mut impl Write) -> Result<(), Failure> {
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

pub(super) fn make_archive(args: WarmArgs, out: &mut impl Write) -> Result<(), Failure> {
    let WarmArgs { archive, options, java_home, best_effort, command } = args;
    let warm = Warm { archive, options, java_home, command };
    if let Some(limit) = best_effort {
        return best_effort_within(&warm, limit, out);
    }
    let made = warm::warm(&warm).map_err(warm_failure)?;
    writeln!(
        out,
        "{}: {} MB; {} names it. The engine uses it, and accepted connections after {:.1} s",
        warm.archive.display(),
        made.size / 1_000_000,
        warm.options.display(),
        made.took.as_secs_f64()
    )?;
    if made.order_varies {
        writeln!(
            out,
            "the class path is lib/*, in the order of this file system: where that differs, as in an \
             image that is unpacked elsewhere, the archive is ignored; name the files one by one, as \
             docker/opensearch/Dockerfile does"
        )?;
    }
    Ok(())
}

fn warm_failure(error: WarmError) -> Failure {
    match error {
        WarmError::Signal(signal) => Failure::Signal(signal, error.to_string()),
        other => Failure::Failed(other.to_string()),
    }
}

/// Makes the archive within the limit. Even if that fails, the pod is to start, unless it is being deleted.
fn best_effort_within(warm: &Warm, limit: Span, out: &mut impl Write) -> Result<(), Failure> {
    let archive = warm.archive.display();
    let written = match warm::once(warm, limit.to_duration()) {
        Ok(Some(size)) => {
            writeln!(out, "{archive}: {} MB; {} names it", size / 1_000_000, warm.options.display())
        }
        Ok(None) => writeln!(
            out,
            "{archive}: it was tried before with this JVM and these jars of the engine, and is not tried again"
        ),
        Err(error @ WarmError::Signal(_)) => return Err(warm_failure(error)),
        Err(error) => writeln!(out, "no archive, so the engine starts without: {error}"),
    };
    written.map_err(Failure::Output)
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            "; it must be an existing directory, such as the mount of an emptyDir"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; mount a volume there that this user may write to"
        }
        _ => "",
    }
}

/// Copies this program to `dir/stayput` and returns that path. The file appears complete or not
/// at all: an engine's container may be started while an earlier copy is in use.
pub(super) fn install(dir: &Path) -> Result<PathBuf, String> {
    let target = dir.join("stayput");
    let partial = dir.join(".stayput.partial");
    copy(dir, &partial, &target).map_err(|error| {
        // If it cannot be removed, the next attempt replaces it.
        let _ = fs::remove_file(&partial);
        format!("cannot install into {}: {error}{}", dir.display(), hint(&error))
    })?;
    Ok(target)
}

fn copy(dir: &Path, partial: &Path, target: &Path) -> io::Result<()> {
    files::remove(partial)?;
    // Not by the program's path: another file may be there now.
    let mut source = File::open("/proc/self/exe")?;
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o755).open(partial)?;
    io::copy(&mut source, &mut copy)?;
    // The umask changed the mode above.
    copy.set_permissions(Permissions::from_mode(0o755))?;
    copy.sync_all()?;
    // A file that is open for writing cannot be executed.
    drop(copy);
    fs::rename(partial, target)?;
    File::open(dir)?.sync_all()
}

/// Prints a token, and nothing else.
pub(super) fn print_token(args: &TokenArgs, out: &mut impl Write) -> Result<(), Failure> {
    let grant = Grant {
        subject: "token".to_owned(),
        scopes: args.scope.parse().map_err(Failure::Usage)?,
        audience: args.audience.clone(),
        ttl: args.ttl.to_duration(),
    };
    grant.check().map_err(Failure::Usage)?;
    let shown = args.key.display();
    let key = std::fs::read(&args.key)
        .map_err(|error| Failure::Failed(format!("the key {shown} cannot be read: {error}")))?;
    let token = mint(&key, &grant, SystemTime::now())
        .map_err(|error| Failure::Failed(format!("no token with the key {shown}: {error}")))?;
    Ok(writeln!(out, "{token}")?)
}
