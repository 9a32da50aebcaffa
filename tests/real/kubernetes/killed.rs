//! After a test was killed, the next test can run on the same machine.

#![allow(clippy::disallowed_types, reason = "nothing else waits for children in a test")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use crate::support::kubernetes::cluster::Cluster;
use crate::support::kubernetes::left_by;
use crate::support::skip;
use crate::support::wait::eventually;

const TEST: &str = "kubernetes::killed::a_killed_test_leaves_nothing_that_runs";
/// Set in the test process that is to be killed.
const VICTIM: &str = "STAYPUT_TEST_IS_KILLED";
const RUNS: &str = "the cluster runs";
const MISSING: &str = "missing here: ";

#[test]
fn a_killed_test_leaves_nothing_that_runs() {
    if std::env::var_os(VICTIM).is_some() {
        let cluster = Cluster::start();
        match &cluster {
            Ok(_) => println!("{RUNS}"),
            Err(why) => return println!("{MISSING}{why}"),
        }
        loop {
            thread::park();
        }
    }
    let mut victim = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", TEST, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program runs");
    let printed = BufReader::new(victim.stdout.take().expect("a pipe"));
    let mut lines = printed.lines().map_while(Result::ok);
    let began = lines.find(|line| line.contains(RUNS) || line.contains(MISSING));
    let began = began.expect("a cluster");
    if let Some((_, why)) = began.split_once(MISSING) {
        victim.wait().expect("it is ours");
        return skip(TEST, why);
    }
    let pid = victim.id();
    assert!(daemons_of(pid) >= 6, "etcd, apiserver, controllers, scheduler, containerd, kubelet");
    assert!(has_wire(pid));
    victim.kill().expect("it runs");

    // Until it is waited for, its files are not left by a process that is gone: no other test removes them.
    eventually("all its daemons end", || (daemons_of(pid) == 0).then_some(()));
    eventually("its wire is gone", || (!has_wire(pid)).then_some(()));
    assert!(!left_by(pid).is_empty(), "its files stay");
    victim.wait().expect("it is ours");
    let next = Cluster::start().expect("a cluster");
    assert_eq!(left_by(pid), Vec::<PathBuf>::new(), "until the next test");
    // Another test of this process may have a cluster at the same time.
    let own = left_by(std::process::id()).into_iter().filter(|place| {
        let directory = next.images.directory();
        directory.ancestors().any(|above| above.file_name() == place.file_name())
    });
    let own: Vec<PathBuf> = own.collect();
    assert!(!own.is_empty());
    drop(next);
    assert!(own.iter().all(|place| !place.exists()), "{own:?}");
}

/// The number of processes with a file of that test in their arguments.
fn daemons_of(pid: u32) -> usize {
    let mark = format!("stayput-kube.{pid}.");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&mark)).count()
}

/// Whether a network device has that test's mark.
fn has_wire(pid: u32) -> bool {
    let mark = format!("stayput-kube.{pid}.");
    let devices = fs::read_dir("/sys/class/net").expect("devices").flatten();
    let mut aliases = devices.filter_map(|device| fs::read(device.path().join("ifalias")).ok());
    aliases.any(|alias| String::from_utf8_lossy(&alias).starts_with(&mark))
}
