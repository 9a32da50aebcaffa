//! A stand-in for an older kernel or a stricter seccomp profile: it answers some system calls of a
//! command with an error.
//!
//! `standin-kernel CALL=ERRNO[,CALL=ERRNO…] COMMAND…`, with ERRNO `ENOSYS` or `EPERM`. The CALL
//! `newer` stands for every call that is newer than Linux 4.18. Of two for one call the later holds.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// From Linux 5.0 on, new calls have one number on every architecture, from here on.
const FIRST_NEWER: i64 = libc::SYS_pidfd_send_signal;
/// Higher than any number that is in use.
const LAST_NEWER: i64 = 511;

fn main() -> ExitCode {
    let error = match refuse_and_execute(std::env::args_os().skip(1).collect()) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    eprintln!("standin-kernel: {error}");
    ExitCode::FAILURE
}

fn refuse_and_execute(
    arguments: Vec<OsString>,
) -> Result<std::convert::Infallible, Box<dyn Error>> {
    let [refused, program, arguments @ ..] = &arguments[..] else {
        return Err("usage: standin-kernel CALL=ERRNO[,CALL=ERRNO…] COMMAND…".into());
    };
    let refused = refused.to_str().ok_or("not UTF-8")?;
    for (errno, calls) in by_errno(refused)? {
        apply_filter(&filter(errno, &calls)?)?;
    }
    Err(Command::new(program).args(arguments).exec().into())
}

/// The calls that get each error.
fn by_errno(refused: &str) -> Result<BTreeMap<i32, Vec<i64>>, Box<dyn Error>> {
    let mut errnos = BTreeMap::new();
    for one in refused.split(',') {
        let (call, errno) = one.split_once('=').ok_or_else(|| format!("no errno in {one:?}"))?;
        let errno = match errno {
            "ENOSYS" => libc::ENOSYS,
            "EPERM" => libc::EPERM,
            other => return Err(format!("unknown errno {other}").into()),
        };
        errnos.extend(numbers(call)?.into_iter().map(|number| (number, errno)));
    }
    let mut calls: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for (number, errno) in errnos {
        calls.entry(errno).or_default().push(number);
    }
    Ok(calls)
}

fn numbers(call: &str) -> Result<Vec<i64>, Box<dyn Error>> {
    Ok(vec![match call {
        "newer" => return Ok((FIRST_NEWER..=LAST_NEWER).collect()),
        "clone3" => libc::SYS_clone3,
        "close_range" => libc::SYS_close_range,
        "copy_file_range" => libc::SYS_copy_file_range,
        "getrandom" => libc::SYS_getrandom,
        "openat2" => libc::SYS_openat2,
        "pidfd_open" => libc::SYS_pidfd_open,
        "pidfd_send_signal" => libc::SYS_pidfd_send_signal,
        "prctl" => libc::SYS_prctl,
        "rseq" => libc::SYS_rseq,
        "statx" => libc::SYS_statx,
        "unshare" => libc::SYS_unshare,
        other => return Err(format!("unknown call {other}").into()),
    }])
}

fn filter(errno: i32, calls: &[i64]) -> Result<BpfProgram, Box<dyn Error>> {
    let rules = calls.iter().map(|&call| (call, Vec::new())).collect();
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let target = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, target)?.try_into()?)
}
