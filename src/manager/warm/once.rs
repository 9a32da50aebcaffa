//! An archive that is made in an init container of the pod that will use it.

use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Until, Warm, WarmError, all_or_nothing, make, plan, write};

/// Makes the archive within this time, if it was not tried before; returns its size if it was made now.
///
/// It is tried once only: an attempt that takes too much memory may end the whole container, and the
/// kubelet would repeat it for ever. The engine is not started a second time to see whether the
/// archive is used: the pod waits, and the manager looks at each start.
pub fn once(warm: &Warm, limit: Duration) -> Result<Option<u64>, WarmError> {
    let until = Until::new(Some(Instant::now() + limit))?;
    if !is_first(warm)? {
        return Ok(None);
    }
    all_or_nothing(warm, |java_home| {
        let size = make(warm, java_home, &until)?;
        write(&warm.options, &plan::option_file(&warm.archive))?;
        Ok(Some(size))
    })
}

/// Whether this is the first attempt in the archive's directory. From now on it is not.
fn is_first(warm: &Warm) -> Result<bool, WarmError> {
    let mut name = warm.archive.clone().into_os_string();
    name.push(".tried");
    let path = PathBuf::from(name);
    match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(WarmError::File { path, source }),
    }
}
