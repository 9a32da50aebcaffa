//! Processes of a run are found, classified and killed completely; others are left alone.

use std::process::Command;

use stayput_manager::process::{Delivery, ExitStatus, Inherited, Reaper, Tree, become_subreaper};

use super::{COOKIE, command, reap, shell};
use crate::support::isolated::{isolated, test_name};
use crate::support::programs::{children, command_line};
use crate::support::wait::eventually;

/// A tree as PID 1 would see it: not every orphan belongs to the engine.
fn tree(script: &str) -> Tree {
    become_subreaper().unwrap();
    Tree::new(shell(script), COOKIE, false)
}

fn wait_for(tree: &mut Tree, members: usize) {
    eventually("the tree is complete", || (tree.scan().members().count() == members).then_some(()));
}

/// Waits until no process of the run lives, and leaves none of them as a zombie.
fn assert_gone(tree: &mut Tree) {
    eventually("the tree is empty", || {
        // Looked at first: what dies after the last reaping would stay a zombie.
        let is_empty = tree.scan().is_empty();
        reap_all(tree);
        is_empty.then_some(())
    });
}

/// Reaps what has ended.
fn reap_all(tree: &mut Tree) {
    for reaped in Reaper::new().reap() {
        if reaped.pid == tree.leader() {
            tree.leader_reaped();
        }
    }
}

/// Ends only the leader.
fn kill_leader(tree: &mut Tree) {
    assert_eq!(tree.signal_leader(9), Delivery::Sent);
    assert_eq!(reap(&mut Reaper::new(), tree.leader()), ExitStatus::Signal(9));
    tree.leader_reaped();
    assert_eq!(tree.signal_leader(9), Delivery::Gone, "its pid may belong to another process now");
}

#[test] // proves STOP-3
fn two_hundred_children_in_their_own_sessions_that_ignore_term_are_killed() {
    isolated(
        test_name!(two_hundred_children_in_their_own_sessions_that_ignore_term_are_killed),
        &[],
        || {
            let mut tree = tree(
                "trap '' TERM; i=0
                 while [ $i -lt 200 ]; do setsid sleep 1000 & i=$((i+1)); done; sleep 1000",
            );
            eventually("all sleep", || {
                let scan = tree.scan();
                (scan.stragglers.iter().filter(|m| m.command == "sleep").count() == 201)
                    .then_some(())
            });
            assert_eq!(tree.signal_stragglers(15), 201);
            assert_eq!(tree.kill_all(), 202);
            assert_gone(&mut tree);
        },
    );
}

#[test]
fn a_disowned_helper_is_found_by_its_cookie() {
    isolated(test_name!(a_disowned_helper_is_found_by_its_cookie), &[], || {
        // The middle shell ends before the next scan, and the helper has its own session and
        // `oom_score_adj`.
        let helper = "echo 1000 >/proc/self/oom_score_adj; exec sleep 1000";
        let mut tree = tree(&format!("(setsid sh -c '{helper}' &); exec sleep 1000"));
        let stragglers = eventually("helper runs", || {
            let stragglers = tree.scan().stragglers;
            (stragglers.len() == 1 && stragglers[0].command == "sleep").then_some(stragglers)
        });
        kill_leader(&mut tree);
        let scan = tree.scan();
        assert_eq!((scan.leader, &scan.stragglers), (None, &stragglers));
        // A tree with another cookie does not claim it; this one does, although it never saw it as
        // a descendant.
        for (cookie, found) in [("run-2", 0), (COOKIE, 1)] {
            let mut unseen = Tree::new(tree.leader(), cookie, false);
            unseen.leader_reaped();
            assert_eq!(unseen.scan().stragglers.len(), found, "{cookie}");
        }
        assert_eq!(tree.signal_stragglers(15), 1);
        assert_gone(&mut tree);
    });
}

#[test]
fn a_helper_without_environment_is_remembered_as_a_descendant() {
    isolated(test_name!(a_helper_without_environment_is_remembered_as_a_descendant), &[], || {
        let mut tree = tree("env -i sh -c 'setsid sleep 1000 & exec sleep 999' & exec sleep 1000");
        wait_for(&mut tree, 3);
        kill_leader(&mut tree);
        let scan = tree.scan();
        assert_eq!((scan.stragglers.len(), scan.strangers.len()), (2, 0));
        assert_eq!(tree.kill_all(), 2);
        assert_gone(&mut tree);
    });
}

#[test]
fn a_helper_without_environment_is_found_in_the_engines_session_unseen_before() {
    isolated(
        test_name!(a_helper_without_environment_is_found_in_the_engines_session_unseen_before),
        &[],
        || {
            let mut seen = tree("env -i sleep 1000 & exec sleep 1000");
            eventually("helper runs", || {
                (seen.scan().stragglers.first()?.command == "sleep").then_some(())
            });
            kill_leader(&mut seen);
            let mut tree = Tree::new(seen.leader(), COOKIE, false);
            tree.leader_reaped();
            assert_eq!(tree.scan().stragglers, seen.scan().stragglers);
            assert_eq!(tree.kill_all(), 1);
            assert_gone(&mut tree);
        },
    );
}

#[test] // proves STOP-5
fn a_helper_without_environment_in_its_own_session_is_found_unseen_before() {
    isolated(
        test_name!(a_helper_without_environment_in_its_own_session_is_found_unseen_before),
        &[],
        || {
            // No scan is made before the middle shell has ended.
            let mut tree = tree("(setsid env -i sleep 999 &); exec sleep 1000");
            let stranger = stranger();
            let all = children_that_sleep(3);
            assert!(all.contains(&stranger) && all.contains(&tree.leader()));
            let scan = tree.scan();
            assert_eq!((scan.stragglers.len(), scan.strangers.len()), (1, 1), "{scan:?}");
            assert_eq!(scan.strangers[0].pid, stranger);
            kill_leader(&mut tree);
            assert_eq!(tree.kill_all(), 1);
            assert_gone(&mut tree);
            assert_eq!(children_that_sleep(1), [stranger]);
        },
    );
}

/// Waits until the test has so many children and each of them has become `sleep`.
fn children_that_sleep(count: usize) -> Vec<u32> {
    eventually("children that sleep", || {
        let children = children(std::process::id());
        let sleep = |&pid: &u32| command_line(pid).starts_with("sleep");
        (children.len() == count && children.iter().all(sleep)).then_some(children)
    })
}

/// An orphan like one from a shell of `kubectl exec`: adopted, and not of the run.
fn stranger() -> u32 {
    let script = "setsid sleep 1000 >/dev/null 2>&1 & echo $!";
    let shell = Command::new("sh").args(["-c", script]).output().unwrap();
    String::from_utf8(shell.stdout).unwrap().trim().parse().unwrap()
}

#[test] // proves STOP-3
fn a_stranger_is_reported_and_never_touched() {
    isolated(test_name!(a_stranger_is_reported_and_never_touched), &[], || {
        let mut tree = tree("setsid sleep 1000 & exec sleep 1000");
        let stranger = stranger();
        wait_for(&mut tree, 2);
        let strangers = eventually("stranger sleeps", || {
            let strangers = tree.scan().strangers;
            (strangers.first()?.command == "sleep").then_some(strangers)
        });
        assert_eq!(strangers.iter().map(|member| member.pid).collect::<Vec<_>>(), [stranger]);
        tree.signal_stragglers(15);
        tree.dump_threads();
        tree.kill_all();
        assert_gone(&mut tree);
        let scan = tree.scan();
        assert!(scan.is_empty());
        assert_eq!(scan.strangers, strangers);
        // A subreaper that is not PID 1 can only adopt processes of the run.
        let mut all_ours = Tree::new(tree.leader(), COOKIE, true);
        all_ours.leader_reaped();
        assert_eq!(all_ours.kill_all(), 1);
        assert_gone(&mut all_ours);
    });
}

#[test]
fn what_was_ours_before_the_first_launch_is_a_stranger_for_good() {
    isolated(test_name!(what_was_ours_before_the_first_launch_is_a_stranger_for_good), &[], || {
        become_subreaper().unwrap();
        assert!(Inherited::find().unwrap().is_empty());
        let before = stranger();
        let inherited = Inherited::find().unwrap();
        assert!(!inherited.is_empty());
        let helper = "(setsid sleep 1000 &); exec sleep 1000";
        let mut tree = Tree::new(shell(helper), COOKIE, true).beside(&inherited);
        eventually("engine and helper sleep", || {
            let scan = tree.scan();
            let names: Vec<&str> = scan.members().map(|one| one.command.as_str()).collect();
            (names == ["sleep", "sleep"]).then_some(())
        });
        // Nor processes that it may have forked: only a cookie would show an orphan's origin.
        let later = stranger();
        let strangers: Vec<u32> = tree.scan().strangers.iter().map(|one| one.pid).collect();
        assert!(strangers.contains(&before) && strangers.contains(&later), "{strangers:?}");
        assert_eq!(tree.kill_all(), 2);
        assert_gone(&mut tree);
        assert_eq!(tree.scan().strangers.len(), 2);
    });
}

#[test] // proves STOP-4
fn a_tree_that_keeps_forking_does_not_escape() {
    isolated(test_name!(a_tree_that_keeps_forking_does_not_escape), &[], || {
        // Each process starts the next one in a new session and ends. The pause is for other tests: where the kernel
        // groups sessions, each new one gets as much of the processor as all tests together.
        let mut tree = tree(
            r#"relay='trap "" TERM; sleep 0.02; setsid sh -c "$RELAY" & exit'; export RELAY="$relay"
               i=0; while [ $i -lt 5 ]; do setsid sh -c "$RELAY" & i=$((i+1)); done; sleep 1000"#,
        );
        eventually("relays run", || (tree.scan().members().count() > 3).then_some(()));
        eventually("the tree is empty", || {
            tree.kill_all();
            reap_all(&mut tree);
            tree.scan().is_empty().then_some(())
        });
        assert_eq!(tree.scan().strangers, []);
        eventually("no child is left", || {
            Reaper::new().reap().for_each(drop);
            children(std::process::id()).is_empty().then_some(())
        });
    });
}

#[test]
fn zombies_do_not_count_as_alive() {
    isolated(test_name!(zombies_do_not_count_as_alive), &[], || {
        let mut tree = tree("exit 0");
        eventually("the leader is a zombie", || tree.scan().leader.is_none().then_some(()));
        let scan = tree.scan();
        assert_eq!((scan.members().count(), scan.unseen), (0, None));
        assert_eq!(tree.kill_all(), 0);
        // Signalling a zombie has no effect, and is no error.
        assert_eq!(tree.signal_leader(15), Delivery::Sent);
        assert_eq!(reap(&mut Reaper::new(), tree.leader()), ExitStatus::Code(0));
    });
}

#[test] // proves STOP-4
fn beside_a_stranger_an_ended_child_is_reaped_before_it_is_certain_that_none_is_left() {
    isolated(
        test_name!(
            beside_a_stranger_an_ended_child_is_reaped_before_it_is_certain_that_none_is_left
        ),
        &[],
        || {
            let mut tree = tree("exit 0");
            let stranger = stranger();
            let strangers = |tree: &mut Tree| -> Vec<u32> {
                tree.scan().strangers.iter().map(|one| one.pid).collect()
            };
            eventually("the leader is a zombie", || tree.scan().leader.is_none().then_some(()));
            eventually("the stranger is alone", || {
                (strangers(&mut tree) == [stranger]).then_some(())
            });
            let scan = tree.scan();
            assert_eq!((scan.members().count(), &scan.unseen), (0, &None));
            assert!(scan.unreaped && !scan.is_empty(), "it may have forked while /proc was read");
            reap_all(&mut tree);
            assert!(tree.scan().is_empty());
            assert_eq!(strangers(&mut tree), [stranger]);
        },
    );
}

#[test] // proves STOP-3
fn thread_dumps_go_to_the_server_jvm_and_to_no_other_process() {
    isolated(test_name!(thread_dumps_go_to_the_server_jvm_and_to_no_other_process), &[], || {
        become_subreaper().unwrap();
        let directory = tempfile::tempdir().unwrap();
        // A shell with the name of a JVM: a file shows that it got QUIT.
        let jvm = r#"trap ': >"$0.dump"' QUIT; sleep 1000 & : >"$0.up"; while :; do wait; done"#;
        let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        let script = r#"
            (exec -a java bash -c "$1" "$2" org.elasticsearch.server/org.elasticsearch.bootstrap.Elasticsearch) &
            exec -a /jdk/bin/java bash -c "$1" "$3" org.elasticsearch.launcher.CliToolLauncher"#;
        let (server, launcher) = (file("server"), file("launcher"));
        let leader = command(&["bash", "-c", script, "engine", jvm, &server, &launcher]);
        let mut tree = Tree::new(leader, COOKIE, true);
        let exists =
            |path: String| eventually(&path, || std::fs::exists(&path).unwrap().then_some(()));
        exists(format!("{server}.up"));
        exists(format!("{launcher}.up"));

        // Between fork and exec, their sleeping children still have the same arguments.
        let scan = eventually("both have a child", || {
            let scan = tree.scan();
            let sleeps = scan.stragglers.iter().filter(|member| member.command == "sleep");
            (sleeps.count() == 2).then_some(scan)
        });
        assert_eq!(scan.server.len(), 1);
        assert!(scan.leader.is_some_and(|leader| leader.jvm && !leader.server_jvm));
        assert_eq!(tree.dump_threads(), [scan.server[0].pid]);
        exists(format!("{server}.dump"));
        assert!(!std::fs::exists(format!("{launcher}.dump")).unwrap());

        // Only one JVM (OpenSearch, and Elasticsearch before 8.4): the leader.
        assert_eq!(tree.signal(&scan.server[0], 9), Delivery::Sent);
        eventually("the server is gone", || tree.scan().server.is_empty().then_some(()));
        assert_eq!(tree.dump_threads(), [leader]);
        exists(format!("{launcher}.dump"));
        tree.kill_all();
        assert_gone(&mut tree);

        let mut tree = Tree::new(command(&["sleep", "1000"]), COOKIE, true);
        assert_eq!(tree.dump_threads(), [] as [u32; 0], "QUIT would end it");
        assert!(tree.scan().leader.is_some());
        tree.kill_all();
        assert_gone(&mut tree);
    });
}
