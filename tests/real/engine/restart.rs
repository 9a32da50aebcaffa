//! The main function: stopped, given another config, started again, under one manager.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use serde_json::json;

use super::{on_engine, step};
use crate::support::engine::{Kind, Node};
use crate::support::manager::{AS_CONTAINED_ROOT, Launch};
use crate::support::namespace_processes::namespace_processes;
use crate::support::wait::eventually;

on_engine!(
    opensearch,
    OpenSearch,
    [restarted_on_another_config, under_a_root_manager_with_a_dropping_entrypoint]
);
on_engine!(elasticsearch, Elasticsearch, [restarted_on_another_config]);

// proves STOP-7
fn restarted_on_another_config(mut node: Node) {
    let manager = node.launch().start();
    let api = &manager.api;

    step("while it starts the status says so, and it is not ready");
    let status = api.until_state("starting");
    assert_eq!(status["ready"], false);
    assert_eq!(status["reason"]["code"], "starting");
    assert_eq!((api.get("/livez").status, api.get("/readyz").status), (200, 503));
    let status = api.until_ready();
    eventually("the engine answers in time", || (api.get("/readyz").status == 200).then_some(()));
    assert_eq!((&status["config"]["drift"], &status["reason"]), (&json!(false), &json!(null)));
    assert_eq!(node.attribute(), "first");
    assert!(!node.lock_is_free(), "a node holds node.lock");
    let leader = node.launcher(&manager);
    assert_eq!(status["run"]["pid"], leader.pid);
    let jvms = if node.kind == Kind::Elasticsearch { 2 } else { 1 };
    let java = |command: &str| command.contains("/bin/java ");
    assert_eq!(manager.guests().iter().filter(|guest| java(&guest.command)).count(), jvms);
    node.index(1);

    step("stop: everything of it gone, recorded as a clean stop");
    let status = api.stop();
    assert_eq!((&status["state"], &status["desired"]), (&json!("stopped"), &json!("stopped")));
    let exit = &status["last_exit"];
    assert_eq!((&exit["code"], &exit["reason"]), (&json!(143), &json!("stopped")));
    assert_eq!((&exit["stragglers"], &exit["strangers"]), (&json!([]), &json!([])));
    assert_eq!((&status["run"], &status["ready"]), (&json!(null), &json!(false)));
    node.assert_gone(&manager);
    assert_eq!((api.get("/livez").status, api.get("/readyz").status), (200, 503));

    step("another config is mounted while it is stopped");
    let old = status["config"]["checksum"].clone();
    let new = node.swap("node.attr.stayput: second");
    api.status_when("the new checksum", |status| status["config"]["checksum"] == json!(new));
    assert_ne!(old, json!(new));

    step("a start that expects the old one is refused, and nothing runs");
    let problem = api.post("/es/start", &json!({ "checksum": old }));
    let problem = problem.expect_problem(412, "checksum_mismatch");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(&new)), "{problem:#}");
    assert_eq!(api.status()["state"], "stopped");
    node.assert_gone(&manager);

    step("started with the new one, the node says so itself");
    let status = api.start(&json!({ "checksum": new }));
    assert_eq!((&status["run"]["checksum"], &status["starts"]), (&json!(new), &json!(2)));
    assert_eq!(node.attribute(), "second");
    assert_eq!(node.count(), 1);

    step("what is running as asked is left alone");
    let run = &status["run"]["id"];
    let again = api.post("/es/start", &json!({ "checksum": new })).expect(200);
    assert_eq!(&again["run"]["id"], run);
    api.post("/es/start", &json!({ "checksum": old })).expect_problem(409, "wrong_config");
    assert_eq!(&api.status()["run"]["id"], run);
}

/// Like the official entrypoints: started as root, leaves a helper in the background, drops root
/// and execs the engine. A second helper has also left the session.
const ENTRYPOINT: &str = r#"
if [ "$(id -u)" = 0 ]; then
    exec setpriv --reuid=1000 --regid=1000 --clear-groups bash -c "$0" "$0" "$@"
fi
(exec -a stayput-helper sleep infinity) &
disown
setsid bash -c 'exec -a stayput-daemon sleep infinity' &
disown
exec "$1"
"#;

fn under_a_root_manager_with_a_dropping_entrypoint(node: Node) {
    let Launch { options, variables, .. } = node.launch();
    // The last but one argument becomes `$0`: the script itself, for its second half.
    let script = OsString::from(ENTRYPOINT);
    let command = ["bash".into(), "-c".into(), script.clone(), script, node.executable()];
    let launch = Launch { options, variables, ..Launch::new(node.work(), command) };
    // As the kubelet makes an emptyDir, below directories of root.
    for (path, mode) in [(node.work().to_owned(), 0o755), (node.work().join("state"), 0o777)] {
        chown(&path, Some(0), Some(0)).expect("root may");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("ours");
    }
    let manager = launch.wrapped(AS_CONTAINED_ROOT).start();
    manager.api.until_ready();
    let helpers = ["stayput-helper", "stayput-daemon"].map(|name| manager.find(name).pid);

    step("a shell of kubectl exec beside it");
    let stranger = manager.visitor();

    step("stop: a clean one, though helpers had to be ended, and they are named");
    let status = manager.api.stop();
    let exit = &status["last_exit"];
    assert_eq!((&exit["code"], &exit["reason"]), (&json!(143), &json!("stopped")));
    let stragglers = exit["stragglers"].as_array().expect("stragglers");
    let mut pids: Vec<_> = stragglers.iter().map(|one| one["pid"].as_i64()).collect();
    pids.sort_unstable();
    let mut expected = helpers.map(|pid| Some(i64::from(pid)));
    expected.sort_unstable();
    assert_eq!(pids, expected, "{exit:#}");
    assert!(node.lock_is_free());

    step("the shell is still there");
    let left: Vec<_> = namespace_processes(manager.init().expect("a manager"))
        .into_iter()
        .filter(|guest| guest.pid != 1)
        .map(|guest| guest.command)
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    drop(stranger);
}
