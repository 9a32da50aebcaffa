//! Many repetitions: nothing is lost, nothing is left behind, nothing grows.
//!
//! The long forms: `STAYPUT_CYCLES=10000 STAYPUT_STORM=10000 cargo test --test it supervise::load`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::pod::Pod;
use super::processes::{
    becomes, descendants, descriptors, eventually, field, is_alive, until_rest,
};
use crate::support::program::{finish, stayput};
use crate::support::programs::children;

fn times(variable: &str, otherwise: u32) -> u32 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn stop_and_start_in_turn_leave_no_zombie_and_no_descriptor() {
    let cycles = times("STAYPUT_CYCLES", 200);
    let pod = Pod::new();
    let mut command = stayput(["run", "--log-level", "error", "--grace", "30s", "--socket"]);
    command.arg(pod.socket()).arg("--state-dir").arg(pod.path("state"));
    let manager =
        pod.spawn(command.arg("--ready").arg(pod.gate.url()).args(["--", "sleep", "600"]));
    let boot = manager.until_state("running")["manager"]["boot_id"].clone();
    let measure = || {
        // Connections of answered requests end by themselves.
        until_rest(manager.pid());
        (descriptors(manager.pid()), field(manager.pid(), "VmRSS").unwrap())
    };
    let cycle = || {
        assert_eq!(manager.post("/es/stop?wait=30s", "{}").code, 200);
        assert!(children(manager.pid()).is_empty(), "nothing is left, not even a zombie");
        assert_eq!(manager.post("/es/start?wait=30s", "{}").code, 200);
    };
    // The first cycles fill memory that is allocated only once.
    (0..10).for_each(|_| cycle());
    let (open, memory) = measure();
    (0..cycles).for_each(|_| cycle());
    let (open_after, memory_after) = measure();
    println!(
        "{cycles} cycles: descriptors {open} → {open_after}, RSS {memory} → {memory_after} kB"
    );
    becomes(&open, || descriptors(manager.pid()));
    let status = manager.status();
    assert_eq!((&status["manager"]["boot_id"], &status["starts"]), (&boot, &(11 + cycles).into()));
}

#[test]
fn engines_that_exit_at_once_among_orphans_give_the_right_codes() {
    let engines = times("STAYPUT_STORM", 1000);
    let next = AtomicU32::new(0);
    // Each leaves orphans that end at the same time as it.
    let script = "for i in 1 2 3; do (exit 9 & exit 8 &) ; done; exit $1";
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= engines {
                        break;
                    }
                    let code = i32::try_from(number % 256).expect("a code");
                    let mut command = stayput(["run", "--", "sh", "-c", script, "sh"]);
                    let ended = finish(command.arg(code.to_string()));
                    assert_eq!((ended.code, ended.stderr.as_str()), (code, ""));
                }
            });
        }
    });
}

#[test]
fn one_manager_reaps_a_thousand_orphans() {
    let pod = Pod::new();
    let script =
        "i=0; while [ $i -lt 1000 ]; do (true &); i=$((i+1)); done; touch done; exec sleep 600";
    let manager = pod.start(&["--on-exit", "hold"], &["sh", "-c", script]);
    eventually("a thousand orphans", || pod.path("done").exists().then_some(()));
    eventually("only the engine is left", || (descendants(manager.pid()).len() == 1).then_some(()));
    assert!(is_alive(manager.engine()));
    assert_eq!(manager.status()["starts"], 1);
}
