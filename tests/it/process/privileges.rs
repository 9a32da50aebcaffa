//! The engine has another uid than the manager, and the manager has few capabilities.

use std::fs;

use stayput_manager::process::{Delivery, ExitStatus, Member, Reaper, Tree, become_subreaper};

use super::{COOKIE, command, reap};
use crate::support::isolated::{NAMESPACE, can_run, isolated, isolated_as_pid_1, test_name};
use crate::support::skip;
use crate::support::wait::eventually;

/// Root as in a container: the environment of another uid's process cannot be read. Since Linux
/// 6.13 CAP_PERFMON and CAP_SYS_ADMIN allow it, too.
const WITHOUT_PTRACE: [&str; 3] = [
    "setpriv",
    "--bounding-set=-sys_ptrace,-perfmon,-sys_admin",
    "--inh-caps=-sys_ptrace,-perfmon,-sys_admin",
];
const WITHOUT_KILL: [&str; 3] = ["setpriv", "--bounding-set=-kill", "--inh-caps=-kill"];
/// Changes to another uid, as an entrypoint does.
const DROP: &str = "setpriv --reuid=1000 --regid=1000 --clear-groups --bounding-set=-all";

fn with(name: &str, wrapper: &[&str], body: impl FnOnce()) {
    if !nix::unistd::geteuid().is_root() {
        return skip(name, "needs root to drop to another uid");
    }
    match can_run(wrapper) {
        Ok(()) => isolated(name, wrapper, body),
        Err(reason) => skip(name, &reason),
    }
}

fn sleeps_as(pid: u32, uid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains(&format!("\nUid:\t{uid}\t{uid}\t")) && status.starts_with("Name:\tsleep\n")
}

fn is_zombie(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn a_helper_whose_environment_is_hidden_is_found_by_the_engines_uid() {
    let name = test_name!(a_helper_whose_environment_is_hidden_is_found_by_the_engines_uid);
    with(name, &WITHOUT_PTRACE, || {
        become_subreaper().unwrap();
        let drop_and_disown = "(setsid sleep 1000 &) ; exec sleep 1000";
        let line: Vec<&str> = DROP.split(' ').chain(["sh", "-c", drop_and_disown]).collect();
        // Started outside of the run, with another uid: also hidden, and not the run's.
        let other = DROP.replace("1000", "2000");
        let script = format!("setsid {other} sleep 1000 &");
        let strange = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
        assert!(strange.success());
        let mut tree = Tree::new(command(&line), COOKIE, false);
        let leader = tree.leader();
        let scan = eventually("engine and helper run", || {
            let scan = tree.scan();
            // The scan may have come before the exec, and the look at its user after it.
            let sleeps =
                |member: &Member, user| member.command == "sleep" && sleeps_as(member.pid, user);
            let helper = scan.stragglers.iter().any(|member| sleeps(member, 1000));
            let stranger = scan.strangers.iter().any(|member| sleeps(member, 2000));
            (sleeps_as(leader, 1000) && helper && stranger).then_some(scan)
        });
        let hidden = fs::read(format!("/proc/{}/environ", scan.stragglers[0].pid));
        assert_eq!(hidden.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
        assert_eq!((scan.stragglers.len(), scan.strangers.len()), (1, 1));

        // Also found by a tree that never saw it as a descendant, when the engine's uid is known.
        let mut fresh = Tree::new(leader, COOKIE, false);
        fresh.scan();
        assert_eq!(fresh.scan().stragglers, scan.stragglers);

        assert_eq!(tree.kill_all(), 2);
        assert_eq!(reap(&mut Reaper::new(), leader), ExitStatus::Signal(9));
        tree.leader_reaped();
        eventually("the tree is empty", || {
            Reaper::new().reap().for_each(drop);
            tree.scan().is_empty().then_some(())
        });
        let strangers = tree.scan().strangers;
        assert_eq!(strangers, scan.strangers);
        assert_eq!(tree.signal(&strangers[0], 9), Delivery::Sent, "the test ends it itself");
        reap(&mut Reaper::new(), strangers[0].pid);
    });
}

#[test]
fn an_engine_that_proc_hides_is_not_taken_for_gone() {
    // Hidden from processes that may not trace it and are not in that group.
    let hide = "mount -o remount,hidepid=2,gid=12345 /proc && exec \"$@\"";
    let wrapper = [&NAMESPACE[..], &["sh", "-c", hide, "sh"], &WITHOUT_PTRACE].concat();
    isolated_as_pid_1(
        test_name!(an_engine_that_proc_hides_is_not_taken_for_gone),
        &wrapper,
        || {
            let line: Vec<&str> = DROP.split(' ').chain(["sleep", "1000"]).collect();
            let mut tree = Tree::new(command(&line), COOKIE, false);
            let scan = eventually("the engine is hidden", || {
                let scan = tree.scan();
                scan.leader.is_none().then_some(scan)
            });
            assert!(
                scan.unseen.as_ref().is_some_and(|reason| reason.contains("hidepid")),
                "{scan:?}"
            );
            assert!(!scan.is_empty());

            // The kernel reports one that has ended first, and then nothing of others.
            let ended = command(&["true"]);
            eventually("a child has ended", || is_zombie(ended).then_some(()));
            let scan = tree.scan();
            assert!(scan.unreaped && !scan.is_empty(), "{scan:?}");
            reap(&mut Reaper::new(), ended);
            assert!(tree.scan().unseen.is_some());

            assert_eq!(tree.signal_leader(9), Delivery::Sent);
            assert_eq!(reap(&mut Reaper::new(), tree.leader()), ExitStatus::Signal(9));
            tree.leader_reaped();
            assert!(tree.scan().is_empty());
        },
    );
}

#[test]
fn a_signal_we_may_not_send_is_told_and_not_fatal() {
    with(test_name!(a_signal_we_may_not_send_is_told_and_not_fatal), &WITHOUT_KILL, || {
        become_subreaper().unwrap();
        // Ends by itself: this process may not signal it.
        let line: Vec<&str> = DROP.split(' ').chain(["sleep", "4"]).collect();
        let mut tree = Tree::new(command(&line), COOKIE, false);
        let leader = tree.leader();
        eventually("the engine has dropped", || sleeps_as(leader, 1000).then_some(()));
        assert_eq!(tree.signal_leader(15), Delivery::Denied);
        let scan = tree.scan();
        assert_eq!(tree.signal(scan.leader.as_ref().unwrap(), 15), Delivery::Denied);
        tree.kill_all();
        assert_eq!(reap(&mut Reaper::new(), leader), ExitStatus::Code(0));
    });
}

#[test]
fn a_manager_without_root_supervises_as_well() {
    let name = test_name!(a_manager_without_root_supervises_as_well);
    let line: Vec<&str> = DROP.split(' ').chain(["--no-new-privs"]).collect();
    // That uid must be able to execute the test binary, which it often cannot in a home directory.
    let own = std::env::current_exe().unwrap();
    if nix::unistd::geteuid().is_root() && !is_public(&own) {
        return skip(name, "the test binary lies in a directory closed to other users");
    }
    with_any(name, &line, || {
        become_subreaper().unwrap();
        let mut tree = Tree::new(command(&["sh", "-c", "sleep 1000; :"]), COOKIE, true);
        eventually("both run", || (tree.scan().members().count() == 2).then_some(()));
        assert_eq!(tree.kill_all(), 2);
        assert_eq!(reap(&mut Reaper::new(), tree.leader()), ExitStatus::Signal(9));
    });
}

fn with_any(name: &str, wrapper: &[&str], body: impl FnOnce()) {
    let wrapper = if nix::unistd::geteuid().is_root() { wrapper } else { &[] };
    isolated(name, wrapper, body);
}

fn is_public(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.ancestors()
        .all(|part| fs::metadata(part).is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
}
