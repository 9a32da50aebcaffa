//! The stand-in engine behaves like the real ones, as far as a supervisor can see.

use std::fs;

use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM};
use serde_json::json;

use crate::support::programs::{command_line, send};
use crate::support::standin::{Engine, StandIn, get, put};

#[test]
fn it_answers_with_what_its_config_says() {
    let standin =
        StandIn::new("cluster.name: logs\nnode.name: \"logs-2\"\n# zone\nnode.attr.zone: a");
    let (_engine, port) = standin.start_ready();
    let (status, banner) = get(port, "/");
    assert_eq!((status, &banner["name"]), (200, &json!("logs-2")));
    let (_, info) = get(port, "/_nodes/_local?pretty");
    assert_eq!(info["nodes"]["logs-2"]["attributes"], json!({"zone": "a"}));
    let (status, health) = get(port, "/_cluster/health");
    assert_eq!((status, &health["status"]), (200, &json!("green")));
    assert_eq!(health["cluster_name"], "logs");
    assert_eq!(get(port, "/_nothing").0, 404);
}

#[test]
fn it_is_not_ready_before_its_start_is_over_and_can_be_stopped_until_then() {
    let standin = StandIn::new("standin.start_delay_ms: 600000");
    let mut engine = standin.start();
    let port = engine.port();
    assert_eq!(get(port, "/_cluster/health").0, 503);
    engine.signal(SIGTERM);
    assert_eq!(engine.wait(), 143);
}

#[test]
fn documents_survive_a_restart() {
    let standin = StandIn::new("");
    let (mut engine, port) = standin.start_ready();
    assert_eq!(put(port, "/docs/1", r#"{"a":1}"#).0, 201);
    assert_eq!(put(port, "/docs/1", r#"{"a":2}"#).0, 200);
    assert_eq!(put(port, "/docs/2", "no JSON").0, 400);
    assert_eq!(put(port, "/docs/..", "1").0, 400);
    engine.signal(SIGKILL);
    assert_eq!(engine.wait(), 137);
    let (_engine, port) = standin.start_ready();
    let (status, document) = get(port, "/docs/1");
    assert_eq!((status, &document["_source"]), (200, &json!({"a": 2})));
    assert_eq!(get(port, "/docs/2").0, 404);
}

#[test]
fn a_config_it_does_not_understand_ends_it_with_78_and_a_sentence() {
    for (settings, sentence) in [
        ("node.atr.zone: a", "unknown setting [node.atr.zone]"),
        ("standin.typo: 1", "unknown setting [standin.typo]"),
        ("standin.refuse: no such codec", "ERROR: no such codec"),
        ("node.name: ${NOT_SET_ANYWHERE}", "Could not resolve placeholder 'NOT_SET_ANYWHERE'"),
        ("standin.exit_code: 256", "failed to parse value [256]"),
        ("nonsense", "malformed line [nonsense]"),
        ("path.data:", "path.data is not set"),
    ] {
        let (code, printed) = StandIn::new(settings).fail();
        assert_eq!(code, Some(78), "{settings}: {printed}");
        assert!(printed.contains(sentence), "{settings}: {printed}");
    }
    let standin = StandIn::new("");
    fs::remove_file(standin.config().join("elasticsearch.yml")).expect("it was there");
    assert_eq!(standin.fail().0, Some(78));
}

#[test]
fn two_engines_cannot_share_a_data_path() {
    let standin = StandIn::new("");
    let (mut first, _) = standin.start_ready();
    let (code, printed) = standin.fail();
    assert_eq!(code, Some(1));
    assert!(printed.contains("failed to obtain node locks"), "{printed}");
    first.signal(SIGKILL);
    first.wait();
    standin.start_ready();
}

#[test]
fn it_ends_on_signals_with_the_codes_of_a_jvm() {
    let standin = StandIn::new("");
    for (signal, code) in [(SIGTERM, 143), (SIGINT, 130), (SIGHUP, 129)] {
        let (mut engine, _) = standin.start_ready();
        engine.signal(SIGQUIT);
        engine.expect_line("Full thread dump");
        engine.signal(signal);
        assert_eq!(engine.wait(), code);
    }
}

#[test]
fn it_can_be_slow_to_stop_and_is_not_ready_meanwhile() {
    let standin = StandIn::new("standin.stop_delay_ms: 600000");
    let (mut engine, port) = standin.start_ready();
    engine.signal(SIGTERM);
    engine.expect_line("stopping");
    assert_eq!(get(port, "/_cluster/health").0, 503);
    engine.signal(SIGKILL);
    assert_eq!(engine.wait(), 137);
}

#[test]
fn it_can_be_deaf_to_term() {
    let standin = StandIn::new("standin.ignore_term: true");
    let (mut engine, port) = standin.start_ready();
    engine.signal(SIGTERM);
    engine.signal(SIGQUIT);
    engine.expect_line("Full thread dump");
    assert_eq!(get(port, "/_cluster/health").0, 200);
    engine.signal(SIGINT);
    assert_eq!(engine.wait(), 130);
}

#[test]
fn it_can_exit_by_itself() {
    for code in [0, 3, 255] {
        assert_eq!(StandIn::new(&format!("standin.exit_code: {code}")).fail().0, Some(code));
    }
    assert_eq!(StandIn::new("standin.crash_after_ms: 1").fail().0, Some(1));
    let (code, printed) =
        StandIn::new("standin.crash_after_ms: 1\nstandin.exit_code: 127\nstandin.launcher: true")
            .fail();
    assert_eq!(code, Some(127));
    assert!(printed.contains("exited unexpectedly, with exit code 127"), "{printed}");
}

#[test]
fn launcher_and_server_are_two_jvms_and_end_together() {
    let standin = StandIn::new("standin.launcher: true");
    let (mut launcher, _) = standin.start_ready();
    assert!(command_line(launcher.pid()).starts_with("java org.elasticsearch.launcher."));
    let server = server_of(&launcher);
    assert!(command_line(server).starts_with("java "));
    launcher.signal(SIGTERM);
    launcher.expect_line("exit code 0");
    assert_eq!(launcher.wait(), 143);
    launcher.expect_silence();
    standin.start_ready();
}

#[test]
fn a_server_whose_launcher_is_killed_ends_by_itself() {
    let standin = StandIn::new("standin.launcher: true");
    let (mut launcher, _) = standin.start_ready();
    launcher.signal(SIGKILL);
    assert_eq!(launcher.wait(), 137);
    launcher.expect_line("exit code 1");
    launcher.expect_silence();
}

#[test]
fn a_launcher_whose_server_is_killed_passes_that_on() {
    let standin = StandIn::new("standin.launcher: true");
    let (mut launcher, _) = standin.start_ready();
    send(server_of(&launcher), SIGKILL);
    assert_eq!(launcher.wait(), 137);
}

#[test]
fn its_setsid_children_have_sessions_of_their_own_and_survive_term() {
    let standin = StandIn::new("standin.setsid_children: 3");
    let (engine, _) = standin.start_ready();
    let children = engine.children();
    assert_eq!(children.len(), 3);
    for child in children {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).expect("it lives");
        let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
        assert_eq!(session, Some(child.to_string().as_str()));
        let status = fs::read_to_string(format!("/proc/{child}/status")).expect("it lives");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
        let caught = u64::from_str_radix(caught.expect("SigCgt"), 16).expect("a mask");
        assert_ne!(caught & (1 << (SIGTERM as i32 - 1)), 0, "TERM would end it");
    }
}

#[test]
fn its_orphans_are_not_its_children() {
    let standin = StandIn::new("standin.orphans: 5");
    let (engine, _) = standin.start_ready();
    assert_eq!(engine.children(), Vec::<u32>::new());
}

#[test]
fn its_helper_outlives_it() {
    let standin = StandIn::new("standin.helper: true");
    let (mut engine, _) = standin.start_ready();
    let [helper] = engine.children()[..] else { panic!("one child, the helper") };
    engine.signal(SIGTERM);
    assert_eq!(engine.wait(), 143);
    assert!(command_line(helper).contains("standin.helper"));
    send(helper, SIGTERM);
}

#[test]
fn it_writes_a_keystore_beside_its_config_once_and_litters_its_temp_dir_each_time() {
    let standin = StandIn::new("standin.keystore: true");
    let temp = tempfile::tempdir().expect("a temp dir");
    let keystore = standin.config().join("elasticsearch.keystore");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut engine = Engine::spawn(standin.command().env("ES_TMPDIR", temp.path()));
        engine.expect_line("started");
        seen.push(fs::read_to_string(&keystore).expect("a keystore"));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(fs::read_dir(temp.path()).expect("the temp dir").count(), 2);
}

fn server_of(launcher: &Engine) -> u32 {
    let server = launcher
        .children()
        .into_iter()
        .find(|child| command_line(*child).contains("org.elasticsearch.bootstrap.Elasticsearch"));
    server.expect("the launcher has a server")
}
