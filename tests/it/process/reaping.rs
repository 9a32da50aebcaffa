//! Exit codes and signals are reported correctly; orphans are reaped.

use stayput_manager::process::{ExitStatus, Reaper, Tree, become_subreaper};

use super::{COOKIE, command, reap, shell};
use crate::support::isolated::{isolated, test_name};
use crate::support::wait::eventually;

#[test]
fn every_exit_code_comes_back_right() {
    isolated(test_name!(every_exit_code_comes_back_right), &[], || {
        let mut reaper = Reaper::new();
        for code in 0..=255 {
            let pid = shell(&format!("exit {code}"));
            assert_eq!(reap(&mut reaper, pid), ExitStatus::Code(code));
        }
        assert_eq!(reaper.reap().count(), 0, "no children is no error");
    });
}

#[test]
fn deaths_by_signal_come_back_right_also_realtime_ones() {
    isolated(test_name!(deaths_by_signal_come_back_right_also_realtime_ones), &[], || {
        let mut reaper = Reaper::new();
        for signal in [1, 2, 6, 9, 11, 13, 15, 34, 37, 64] {
            let pid = command(&["sleep", "1000"]);
            let tree = Tree::new(pid, COOKIE, true);
            tree.signal_leader(signal);
            assert_eq!(reap(&mut reaper, pid), ExitStatus::Signal(signal));
        }
    });
}

#[test]
fn orphans_are_adopted_and_reaped() {
    isolated(test_name!(orphans_are_adopted_and_reaped), &[], || {
        become_subreaper().unwrap();
        let mut reaper = Reaper::new();
        let leader = shell("i=0; while [ $i -lt 100 ]; do (exit 7) & i=$((i+1)); done; exit 3");
        let mut codes = Vec::new();
        eventually("all are reaped", || {
            codes.extend(reaper.reap().map(|reaped| (reaped.pid == leader, reaped.status)));
            codes.contains(&(true, ExitStatus::Code(3))).then_some(())
        });
        // dash reaps some itself while it runs; no other code is taken for the leader's.
        let others = codes.iter().filter(|(is_leader, _)| !is_leader);
        assert!(others.clone().all(|(_, status)| *status == ExitStatus::Code(7)));
    });
}
