//! The environment of a launched engine: mask, dispositions, session, descriptors, variables.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, pthread_sigmask, signal};
use stayput_manager::process::{Delivery, ExitStatus, Launch, Reaper, Signals, Tree, launch};

use super::{COOKIE, command, reap, shell};
use crate::support::isolated::{isolated, test_name};
use crate::support::wait::eventually;

/// What `/proc` shows of a child that does nothing, after it has loaded its libraries.
struct Seen {
    status: String,
    descriptors: Vec<String>,
    pid: u32,
    group_and_session: Vec<String>,
    environ: String,
    directory: PathBuf,
    oom_score_adj: String,
}

fn look_at_child() -> Seen {
    let pid = command(&["sleep", "1000"]);
    let path = |name: &str| format!("/proc/{pid}/{name}");
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    let list = || -> Vec<String> {
        let entries = fs::read_dir(path("fd")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let sleeps = || fs::read_to_string(path("syscall")).is_ok_and(|text| is_clock_nanosleep(&text));
    eventually("child sleeps", || sleeps().then_some(()));
    let mut descriptors = list();
    descriptors.sort_unstable();
    let seen = Seen {
        status: read("status"),
        descriptors,
        pid,
        group_and_session: read("stat").split(' ').skip(4).take(2).map(str::to_owned).collect(),
        environ: read("environ"),
        directory: fs::read_link(path("cwd")).unwrap(),
        oom_score_adj: read("oom_score_adj"),
    };
    assert_eq!(Tree::new(pid, COOKIE, true).signal_leader(9), Delivery::Sent);
    assert_eq!(reap(&mut Reaper::new(), pid), ExitStatus::Signal(9));
    seen
}

fn is_clock_nanosleep(syscall: &str) -> bool {
    syscall.starts_with(&format!("{} ", nix::libc::SYS_clock_nanosleep))
}

fn assert_clean(seen: &Seen) {
    for field in ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"] {
        assert!(seen.status.contains(&format!("{field}:\t0000000000000000\n")), "{}", seen.status);
    }
    assert_eq!(seen.descriptors, ["0", "1", "2"]);
    assert_eq!(seen.group_and_session, [seen.pid.to_string(), seen.pid.to_string()]);
    assert!(seen.environ.contains("\0STAYPUT_RUN=run-1\0"), "{}", seen.environ);
    assert!(seen.environ.contains("STAYPUT_TEST_INSIDE=process::launching::"), "inherited");
}

#[test] // proves HOST-9
fn the_engine_starts_clean_of_what_we_were_started_with() {
    isolated(test_name!(the_engine_starts_clean_of_what_we_were_started_with), &[], || {
        for ignored in Signal::iterator() {
            if !matches!(ignored, Signal::SIGKILL | Signal::SIGSTOP | Signal::SIGCHLD) {
                // SAFETY: no handler is installed.
                unsafe { signal(ignored, SigHandler::SigIgn) }.unwrap();
            }
        }
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).unwrap();
        // Descriptors that exec would keep.
        let file = fs::File::open("/dev/null").unwrap();
        let kept: Vec<OwnedFd> = (0..3)
            // SAFETY: a new descriptor that has no other owner.
            .map(|_| unsafe { OwnedFd::from_raw_fd(nix::libc::dup(file.as_raw_fd())) })
            .collect();

        assert_clean(&look_at_child());
        assert!(kept.iter().all(|kept| kept.as_raw_fd() > 2));
    });
}

#[test]
fn the_engine_starts_clean_beside_our_handlers() {
    isolated(test_name!(the_engine_starts_clean_beside_our_handlers), &[], || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let _signals = Signals::install().unwrap();
            assert_clean(&look_at_child());
        });
    });
}

#[test]
fn umask_and_directory_are_ours_and_the_oom_score_is_raised() {
    isolated(test_name!(umask_and_directory_are_ours_and_the_oom_score_is_raised), &[], || {
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o027));
        std::env::set_current_dir("/usr").unwrap();
        let own: i32 =
            fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().parse().unwrap();
        let seen = look_at_child();
        assert!(seen.status.contains("Umask:\t0027\n"), "{}", seen.status);
        assert_eq!(seen.directory, Path::new("/usr"));
        assert_eq!(seen.oom_score_adj.trim(), (own + 100).min(1000).to_string());
    });
}

#[test]
fn arguments_are_passed_as_they_are() {
    isolated(test_name!(arguments_are_passed_as_they_are), &[], || {
        let odd = OsString::from_vec(b"a b\n'\"\\$HOME\xff".to_vec());
        let argv = vec![
            "sh".into(),
            "-c".into(),
            "test $# = 3 && sleep 1000".into(),
            "0".into(),
            odd.clone(),
            "".into(),
            "*".into(),
        ];
        let pid = launch(&Launch { argv: argv.clone(), set_env: Vec::new() }).unwrap().pid;
        let mut expected = Vec::new();
        for argument in argv {
            expected.extend(argument.into_vec());
            expected.push(0);
        }
        eventually("it is executed", || {
            (fs::read(format!("/proc/{pid}/cmdline")).unwrap() == expected).then_some(())
        });
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), Signal::SIGKILL)
            .unwrap();
        reap(&mut Reaper::new(), pid);
    });
}

#[test] // proves STOP-14
fn a_command_that_cannot_run_says_why_and_leaves_nothing() {
    isolated(test_name!(a_command_that_cannot_run_says_why_and_leaves_nothing), &[], || {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        let try_it = |argv: &[&str]| {
            let argv = argv.iter().map(OsString::from).collect();
            let line = Launch { argv, set_env: Vec::new() };
            eventually("it is tried in time", || match launch(&line) {
                Err(error) => Some(error),
                Ok(late) => {
                    assert!(late.is_late());
                    reap(&mut Reaper::new(), late.pid);
                    None
                }
            })
        };
        let path = script.to_str().unwrap();

        let missing = try_it(&["/no/such/command", "x"]);
        assert_eq!(missing.shell_code(), 127);
        assert_eq!(
            missing.to_string(),
            r#"cannot execute "/no/such/command": No such file or directory"#
        );
        assert_eq!(try_it(&["no-such-command-in-path"]).shell_code(), 127);
        let forbidden = try_it(&[path]);
        assert_eq!(forbidden.shell_code(), 126);
        assert!(forbidden.to_string().contains("Permission denied"), "{forbidden}");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let no_interpreter = try_it(&[path]);
        assert_eq!(no_interpreter.shell_code(), 127);
        assert!(no_interpreter.to_string().contains("interpreter"), "{no_interpreter}");
        assert_eq!(try_it(&["/"]).shell_code(), 126);
        assert_eq!(try_it(&[]).shell_code(), 126);
        assert_eq!(Reaper::new().reap().count(), 0, "failed children are waited for");
        // Cut off, in the head that all programs have or before it, and not run by a shell, for which
        // nothing at all is a success.
        let own = fs::read("/proc/self/exe").unwrap();
        for cut_off in [&own[..100], b""] {
            fs::write(&script, cut_off).unwrap();
            let error = try_it(&[path]);
            assert_eq!(error.shell_code(), 126);
            assert!(error.to_string().contains("is cut off"), "{error}");
        }
        // A script without `#!` runs as in a shell, and so as under tini.
        fs::write(&script, "exit $(($1 + $#))\n").unwrap();
        let pid = command(&[path, "3", "x"]);
        assert_eq!(reap(&mut Reaper::new(), pid), ExitStatus::Code(5));
    });
}

#[test]
fn the_engine_dies_with_a_manager_that_is_not_pid_1() {
    isolated(test_name!(the_engine_dies_with_a_manager_that_is_not_pid_1), &[], || {
        use nix::unistd::{ForkResult, Pid, fork, getpid};
        stayput_manager::process::become_subreaper().unwrap();
        let (read, write) = nix::unistd::pipe().unwrap();
        // SAFETY: there is only one thread, so the child may do anything.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let engine = shell("exec sleep 1000");
                nix::unistd::write(&write, &engine.to_ne_bytes()).unwrap();
                nix::sys::signal::kill(getpid(), Signal::SIGKILL).unwrap();
                unreachable!();
            }
            ForkResult::Parent { child } => {
                let mut engine = [0; 4];
                assert_eq!(nix::unistd::read(&read, &mut engine).unwrap(), 4);
                let engine = Pid::from_raw(i32::from_ne_bytes(engine));
                let mut ended = Vec::new();
                let mut reaper = Reaper::new();
                eventually("both end", || {
                    ended.extend(
                        reaper.reap().map(|reaped| (reaped.pid.cast_signed(), reaped.status)),
                    );
                    (ended.len() == 2).then_some(())
                });
                ended.sort_unstable();
                let mut expected = [child, engine].map(|pid| (pid.as_raw(), ExitStatus::Signal(9)));
                expected.sort_unstable();
                assert_eq!(ended, expected);
            }
        }
    });
}
