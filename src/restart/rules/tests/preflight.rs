//! Faults of a pod or its manager that block a stop.

use super::{fit, unknown};
use crate::rules::preflight;
use crate::{Code, LastRequest, Manager, Pod, Sources};
use stayput_api::{Desired, RequestKind, State};

/// A change of a pod that is fit.
type Change = fn(&mut Pod);

/// The pod's manager, to change something.
fn manager(pod: &mut Pod) -> &mut Manager {
    pod.manager.as_mut().expect("a manager")
}

/// Each fault alone, in the order in which they are checked.
const FAULTS: [(&str, Change, Code, &str); 14] = [
    ("being deleted", |pod| pod.terminating = true, Code::PodGone, "pod logs-2 is being deleted"),
    (
        "node that leaves",
        |pod| pod.leaving = Some("4 shards are still on it".to_owned()),
        Code::Leaving,
        "logs-2 leaves the cluster: 4 shards are still on it",
    ),
    (
        "manager silent",
        |pod| pod.manager = Err(unknown()),
        Code::ManagerUnreachable,
        "no answer within 5s",
    ),
    (
        "manager of another pod",
        |pod| manager(pod).pod_uid = Some("another".to_owned()),
        Code::WrongPod,
        "uid another",
    ),
    (
        "manager that does not know its pod",
        |pod| manager(pod).pod_uid = None,
        Code::WrongPod,
        "downward API",
    ),
    (
        "owner about to replace it",
        |pod| pod.outdated = Some("StatefulSet logs has another revision".to_owned()),
        Code::OwnerWillReplace,
        "StatefulSet logs has another revision",
    ),
    (
        "probe aimed at the engine",
        |pod| pod.deadly_probe = Some("the liveness probe asks port 9200".to_owned()),
        Code::LivenessWouldKill,
        "the liveness probe asks port 9200",
    ),
    (
        "other live globs",
        |pod| manager(pod).live_mismatch = Some("spec.config.live has *.crt".to_owned()),
        Code::LiveMismatch,
        "spec.config.live has *.crt",
    ),
    ("journal in memory", |pod| manager(pod).durable = false, Code::NotDurable, "state directory"),
    (
        "mounted config unknown",
        |pod| manager(pod).mounted = None,
        Code::ConfigUnknown,
        "the sources of its config are known",
    ),
    (
        "source absent",
        |pod| pod.sources = Sources::Absent("Secret logs-2-config is not there".to_owned()),
        Code::SourceAbsent,
        "Secret logs-2-config is not there",
    ),
    (
        "process that survives SIGKILL",
        |pod| manager(pod).state = State::Stuck,
        Code::EngineBusy,
        "survives SIGKILL",
    ),
    (
        "stopped by a person",
        |pod| {
            let manager = manager(pod);
            manager.state = State::Stopped;
            manager.desired = Desired::Stopped;
            manager.last_request = Some(LastRequest {
                sequence: 8,
                kind: RequestKind::Stop,
                accepted: true,
                by: "alice".to_owned(),
            });
        },
        Code::KeptStopped,
        "stopped by alice",
    ),
    (
        "not spawned yet",
        |pod| manager(pod).state = State::Stopped,
        Code::EngineBusy,
        "about to be started",
    ),
];

#[test]
fn a_pod_nothing_is_wrong_with_gives_its_manager() {
    let pod = fit("logs-2");
    assert_eq!(preflight("search/logs", &pod), Ok(pod.manager.as_ref().expect("a manager")));
}

#[test]
fn every_fault_is_told() {
    for (what, fault, code, text) in FAULTS {
        let mut pod = fit("logs-2");
        fault(&mut pod);
        let blocker = preflight("search/logs", &pod).expect_err(what);
        assert_eq!(blocker.code, code, "{what}");
        assert!(blocker.message.contains(text), "{what}: {}", blocker.message);
    }
}

#[test]
fn of_two_faults_the_earlier_one_is_told() {
    for (place, (first, apply_first, code, _)) in FAULTS.iter().enumerate() {
        for (second, apply_second, ..) in &FAULTS[place + 1..] {
            let mut pod = fit("logs-2");
            apply_second(&mut pod);
            apply_first(&mut pod);
            let found = preflight("search/logs", &pod).expect_err(first).code;
            assert_eq!(found, *code, "{first} and {second}");
        }
    }
}

#[test]
fn which_states_a_stop_leads_out_of() {
    let code = |state, desired| {
        let mut pod = fit("logs-2");
        manager(&mut pod).state = state;
        manager(&mut pod).desired = desired;
        preflight("search/logs", &pod).err().map(|blocker| blocker.code)
    };
    for state in State::ALL {
        let (running, stopped) = match state {
            State::Starting | State::Running | State::Backoff | State::Failed => {
                (None, Some(Code::KeptStopped))
            }
            State::Stopped => (Some(Code::EngineBusy), Some(Code::KeptStopped)),
            State::Stopping | State::Killing | State::Stuck => {
                (Some(Code::EngineBusy), Some(Code::EngineBusy))
            }
        };
        assert_eq!(code(state, Desired::Running), running, "{state:?}, asked to run");
        assert_eq!(code(state, Desired::Stopped), stopped, "{state:?}, asked to be stopped");
    }
}

#[test]
fn without_declared_sources_no_checksum_is_needed() {
    let mut pod = fit("logs-2");
    pod.sources = Sources::Unknown("nowhere".into());
    manager(&mut pod).mounted = None;
    assert!(preflight("search/logs", &pod).is_ok());
}

#[test]
fn a_declared_source_that_is_absent_does_not_hide_an_unknown_mount() {
    let mut pod = fit("logs-2");
    pod.sources = Sources::Absent("Secret logs-2-config is not there".to_owned());
    manager(&mut pod).mounted = None;
    assert_eq!(preflight("search/logs", &pod).expect_err("both").code, Code::ConfigUnknown);
}

#[test]
fn a_refused_stop_is_not_blamed_on_its_sender() {
    let mut pod = fit("logs-2");
    let changed = manager(&mut pod);
    changed.desired = Desired::Stopped;
    changed.state = State::Stopped;
    changed.last_request = Some(LastRequest {
        sequence: 9,
        kind: RequestKind::Start,
        accepted: false,
        by: "bob".to_owned(),
    });
    let found = preflight("search/logs", &pod).expect_err("kept stopped").message;
    assert!(found.contains("an earlier request"), "{found}");
    assert!(!found.contains("bob"), "{found}");
    let command = "`kubectl -n search exec logs-2 -- stayput start` starts it again";
    assert!(found.contains(command), "{found}");
    pod.container = Some("search".to_owned());
    pod.program = Some("/stayput/stayput".to_owned());
    let found = preflight("search/logs", &pod).expect_err("kept stopped").message;
    let command = "`kubectl -n search exec logs-2 -c search -- /stayput/stayput start`";
    assert!(found.contains(command), "{found}");
}
