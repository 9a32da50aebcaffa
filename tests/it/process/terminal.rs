//! If there is a terminal, the engine gets it: a shell has job control, and the manager gets no
//! extra HUP.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::ptr;

use nix::libc;
use stayput_manager::process::{ExitStatus, Reaper, Signals};

use super::{reap, shell};
use crate::support::isolated::{INSIDE, harness_name, is_inside, test_name};

fn open_terminal() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: two valid pointers for descriptors; the other arguments may be null.
    let opened = unsafe {
        libc::openpty(&raw mut ours, &raw mut theirs, ptr::null_mut(), ptr::null(), ptr::null())
    };
    assert_eq!(opened, 0);
    // SAFETY: just opened, without another owner.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

#[test]
fn the_engine_gets_the_terminal_and_we_no_hangup() {
    let name = test_name!(the_engine_gets_the_terminal_and_we_no_hangup);
    if is_inside(name) {
        return inside();
    }
    let name = harness_name(name);
    let (ours, theirs) = open_terminal();
    let terminal = theirs.as_raw_fd();
    let mut manager = Command::new(std::env::current_exe().unwrap());
    manager
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs.try_clone().unwrap())
        .stderr(Stdio::inherit());
    // SAFETY: only system calls. Like `docker run -t`: a session with the terminal as its own.
    unsafe {
        manager.pre_exec(move || {
            libc::setsid();
            libc::ioctl(terminal, libc::TIOCSCTTY, 0);
            Ok(())
        })
    };
    let mut child = manager.spawn().unwrap();
    // The command also has copies of the terminal's descriptor.
    drop((manager, theirs));
    let mut output = Vec::new();
    // Ends with EIO when the last descriptor of the other side is closed.
    let _ = File::from(ours).read_to_end(&mut output);
    let output = String::from_utf8_lossy(&output);
    assert!(child.wait().unwrap().success(), "{output}");
    assert!(output.contains("controlling-terminal"), "{output}");
}

/// Like the manager, when it leads a session on a terminal.
fn inside() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut signals = Signals::install().unwrap();
        for _ in 0..2 {
            // Opening /dev/tty needs a controlling terminal; field 8 of stat is its foreground group.
            let engine = shell(
                r#"set -- $(cat /proc/$$/stat); test "$8" = $$ && echo controlling-terminal >/dev/tty"#,
            );
            assert_eq!(reap(&mut Reaper::new(), engine), ExitStatus::Code(0), "also the second one");
        }
        let mut came = signals.recv().await;
        came.retain(|&signal| signal != libc::SIGCHLD);
        assert_eq!(came, [] as [i32; 0], "no HUP or CONT from releasing the terminal");
    });
}
