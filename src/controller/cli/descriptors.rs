//! Raises the limit of this process's file descriptors.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit of file descriptors as far as it may be raised. Each manager that is asked takes one, and
/// the usual limit of 1024 is a convention for programs that use `select`.
pub(super) fn raise_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!("cannot raise the limit of open files: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves RESTART-34
    fn the_limit_is_as_high_as_it_may_be() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, hard - 1, hard).expect("a lower limit");
        raise_limit();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).expect("a limit"), (hard, hard));
    }
}
