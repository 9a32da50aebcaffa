//! Signals to the manager are received, each once; signals about the manager itself are ignored.

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use stayput_manager::process::Signals;

use crate::support::isolated::{isolated, test_name};

fn raise(signal: i32) {
    // SAFETY: takes integers.
    assert_eq!(unsafe { libc::kill(libc::getpid(), signal) }, 0);
}

fn on_runtime(body: impl AsyncFnOnce(Signals)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { body(Signals::install().unwrap()).await });
}

#[test]
fn every_signal_that_can_be_handled_arrives() {
    isolated(test_name!(every_signal_that_can_be_handled_arrives), &[], || {
        on_runtime(async |mut signals| {
            let own_faults = [4, 5, 6, 7, 8, 11, 31];
            let ignored = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTTIN, libc::SIGTTOU];
            for signal in (1..=31).chain(34..=64) {
                if signal == 9 || signal == 19 || own_faults.contains(&signal) {
                    continue;
                }
                raise(signal);
                if !ignored.contains(&signal) {
                    assert_eq!(signals.recv().await, [signal]);
                }
            }
            raise(libc::SIGHUP);
            assert_eq!(signals.recv().await, [libc::SIGHUP], "no ignored signal was received");
        });
    });
}

#[test]
fn a_wait_that_was_given_up_loses_nothing() {
    isolated(test_name!(a_wait_that_was_given_up_loses_nothing), &[], || {
        on_runtime(async |mut signals| {
            for _ in 0..1000 {
                raise(libc::SIGTERM);
                raise(libc::SIGCHLD);
                tokio::select! {
                    biased;
                    () = std::future::ready(()) => {}
                    _ = signals.recv() => unreachable!(),
                }
                let mut came = Vec::new();
                while came.len() < 2 {
                    tokio::select! {
                        got = signals.recv() => came.extend(got),
                        () = tokio::task::yield_now() => {}
                    }
                }
                came.sort_unstable();
                assert_eq!(came, [libc::SIGTERM, libc::SIGCHLD]);
            }
        });
    });
}

#[test]
fn a_signal_that_was_blocked_when_we_started_arrives() {
    isolated(test_name!(a_signal_that_was_blocked_when_we_started_arrives), &[], || {
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None).unwrap();
        // Sent to this thread: the test harness has another one, which does not block it.
        // SAFETY: takes an integer.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        on_runtime(async |mut signals| assert_eq!(signals.recv().await, [libc::SIGTERM]));
    });
}
