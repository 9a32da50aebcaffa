//! An archive that is made in an init container of the pod that will use it.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Until, Warm, WarmError, all_or_nothing, fits, java_home, make, plan, write};

/// Makes the archive within this time, if that was not tried before; returns its size if it was made now.
///
/// Only one attempt is made for each JVM and each set of the engine's jars: an attempt that takes
/// too much memory may end the whole container, and the kubelet would repeat it for ever. The
/// volume stays when the pod's containers are made again, as after a restart of its machine, and
/// these may have another image by then. The engine is not started a second time to see whether the
/// archive is used: the pod waits, and the manager looks at each start.
pub fn once(warm: &Warm, limit: Duration) -> Result<Option<u64>, WarmError> {
    plan::check(warm)?;
    let until = Until::new(Some(Instant::now() + limit))?;
    if !is_first(warm, &fits::made_for(&java_home(warm)?, &warm.options)?)? {
        return Ok(None);
    }
    all_or_nothing(warm, |java_home| {
        let size = make(warm, java_home, &until)?;
        write(&warm.options, &plan::option_file(&warm.archive))?;
        Ok(Some(size))
    })
}

/// True for the first attempt for `made_for` in the archive's directory. Records the attempt.
fn is_first(warm: &Warm, made_for: &str) -> Result<bool, WarmError> {
    let mut name = warm.archive.clone().into_os_string();
    name.push(".tried");
    let path = PathBuf::from(name);
    match fs::read(&path) {
        Ok(tried) if tried == made_for.as_bytes() => return Ok(false),
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(WarmError::File { path, source });
        }
        Ok(_) | Err(_) => {}
    }
    write(&path, made_for)?;
    Ok(true)
}
