//! As the init of a real process namespace.

use std::process::Command;

use stayput_manager::process::{Delivery, ExitStatus, Reaper, Tree, is_pid_1};

use super::{COOKIE, reap, shell};
use crate::support::isolated::{NAMESPACE, isolated_as_pid_1, test_name};
use crate::support::wait::eventually;

#[test]
fn stops_the_engine_and_leaves_what_exec_shells_left() {
    let name = test_name!(stops_the_engine_and_leaves_what_exec_shells_left);
    isolated_as_pid_1(name, &NAMESPACE, || {
        assert!(is_pid_1());
        // Without the cookie and in another session, like a process of `kubectl exec`.
        let exec = Command::new("setsid").args(["sh", "-c", "sleep 1000 &"]).status().unwrap();
        assert!(exec.success());
        let mut reaper = Reaper::new();
        let mut tree =
            Tree::new(shell("trap '' TERM; (setsid sleep 1000 &); sleep 999; :"), COOKIE, false);
        let scan = eventually("all run", || {
            let scan = tree.scan();
            let sleeps = scan.stragglers.iter().filter(|member| member.command == "sleep");
            let strangers: Vec<&str> = scan.strangers.iter().map(|m| m.command.as_str()).collect();
            (sleeps.count() == 2 && strangers == ["sleep"]).then_some(scan)
        });
        assert!(scan.leader.is_some());
        assert_eq!(tree.signal_leader(15), Delivery::Sent);
        assert_eq!(tree.kill_all(), 3);
        assert_eq!(reap(&mut reaper, tree.leader()), ExitStatus::Signal(9));
        tree.leader_reaped();
        eventually("the tree is empty", || {
            reaper.reap().for_each(drop);
            tree.scan().is_empty().then_some(())
        });
        assert_eq!(tree.scan().strangers, scan.strangers);
    });
}

#[test]
fn ten_thousand_orphans_are_reaped() {
    isolated_as_pid_1(test_name!(ten_thousand_orphans_are_reaped), &NAMESPACE, || {
        let mut reaper = Reaper::new();
        // Each subshell ends before its child does.
        let script = "i=0; while [ $i -lt 10000 ]; do (: & ) ; i=$((i+1)); done; exit 9";
        let leader = shell(script);
        let (mut orphans, mut code) = (0, None);
        eventually("all are reaped", || {
            for reaped in reaper.reap() {
                if reaped.pid == leader { code = Some(reaped.status) } else { orphans += 1 }
            }
            (code.is_some() && orphans == 10_000).then_some(())
        });
        assert_eq!(code, Some(ExitStatus::Code(9)));
        assert!(Tree::new(leader, COOKIE, false).scan().is_empty());
    });
}

#[test]
fn another_namespaces_proc_is_not_believed() {
    const WITHOUT_PROC: [&str; 4] = ["unshare", "--pid", "--fork", "--kill-child"];
    let name = test_name!(another_namespaces_proc_is_not_believed);
    isolated_as_pid_1(name, &WITHOUT_PROC, || {
        let leader = shell("sleep 1000; :");
        let mut tree = Tree::new(leader, COOKIE, false);
        let scan = tree.scan();
        assert!(
            scan.unseen.as_ref().is_some_and(|reason| reason.contains("namespace")),
            "{scan:?}"
        );
        assert!(!scan.is_empty(), "nothing seen is not nothing there");
        assert_eq!(tree.kill_all(), 1, "the leader's group is known without /proc");
        assert_eq!(reap(&mut Reaper::new(), leader), ExitStatus::Signal(9));
        tree.leader_reaped();
        assert_eq!(tree.kill_all(), 0);
        // A process without a child has no descendant, so /proc is not needed.
        eventually("the shell's child is reaped too", || {
            Reaper::new().reap().for_each(drop);
            tree.scan().is_empty().then_some(())
        });
    });
}
