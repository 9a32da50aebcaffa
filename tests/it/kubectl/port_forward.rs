//! A dry run without `--reconciler`: kubectl forwards the leader's port meanwhile.

use std::path::Path;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use super::fixture::{Fixture, idle};
use super::forecast::{reconciler, seen};
use crate::support::program::{Ended, finish};
use crate::support::programs::write_program;

/// A `kubectl` that says this and then waits, and where it writes its arguments and its process id.
fn stand_in(script: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("kubectl");
    let head = "#!/bin/sh\necho \"$@\" > \"${0%/*}/args\"\necho $$ > \"${0%/*}/pid\"\n";
    write_program(&program, format!("{head}{script}\n").as_bytes());
    directory
}

/// The Lease of the leader `stayput-reconciler-0`, renewed now.
async fn led(fixture: &Fixture) {
    let now = humantime::format_rfc3339_micros(std::time::SystemTime::now()).to_string();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "stayput-reconciler"},
        "spec": {"holderIdentity": "stayput-reconciler-0", "renewTime": now},
    });
    let leases: Api<Lease> = Api::namespaced(fixture.client.clone(), "stayput");
    let params = PatchParams::apply("test").force();
    leases.patch("stayput-reconciler", &params, &Patch::Apply(lease)).await.unwrap();
}

async fn run(fixture: &Fixture, line: &str, path: &Path) -> Ended {
    let mut command = fixture.command(line);
    command.env("PATH", format!("{}:/usr/bin:/bin", path.display()));
    tokio::task::spawn_blocking(move || finish(&mut command)).await.unwrap()
}

#[tokio::test] // proves UPDATE-50
async fn kubectl_forwards_the_port_of_the_leader_and_is_ended() {
    let fixture = Fixture::with(idle()).await;
    led(&fixture).await;
    let url = reconciler("200 OK", seen(&fixture).await).await;
    let port = url.rsplit(':').next().unwrap();
    let forwards = format!("echo 'Forwarding from 127.0.0.1:{port} -> 9198'; exec sleep 600");
    let kubectl = stand_in(&forwards);
    let ended = run(&fixture, "plan --context stand-in", kubectl.path()).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    assert!(ended.stdout.contains("\nstep 2      logs-hot-0 ("), "{}", ended.stdout);
    let read = |name: &str| std::fs::read_to_string(kubectl.path().join(name)).unwrap();
    assert_eq!(
        read("args").trim(),
        "--context stand-in --namespace stayput port-forward --address 127.0.0.1 \
         pod/stayput-reconciler-0 :9198"
    );
    let process = format!("/proc/{}", read("pid").trim());
    assert!(!Path::new(&process).exists(), "it is ended and reaped");
}

#[tokio::test] // proves UPDATE-50
async fn what_keeps_it_from_being_forwarded_is_told() {
    let fixture = Fixture::with(idle()).await;
    fixture.delete_lease().await;
    let refuses = "echo 'error: pods is forbidden: no create on pods/portforward' >&2; exit 1";
    let kubectl = stand_in(refuses);
    let ended = run(&fixture, "plan --coordinated", kubectl.path()).await;
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("there is no Lease stayput-reconciler"), "{}", ended.stderr);

    led(&fixture).await;
    let ended = run(&fixture, "plan --coordinated", kubectl.path()).await;
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    let says = "the reconciler stayput-reconciler-0: error: pods is forbidden";
    assert!(ended.stderr.contains(says), "{}", ended.stderr);
    // Without options, the status is an answer.
    let ended = run(&fixture, "plan", kubectl.path()).await;
    assert!(ended.code == 0 && ended.stdout.contains("no dry run  kubectl does not forward"));
    let ended = run(&fixture, "plan -o json", kubectl.path()).await;
    assert!(
        ended.stdout.contains(r#""noForecast": "kubectl does not forward"#),
        "{}",
        ended.stdout
    );

    let nowhere = tempfile::tempdir().unwrap();
    let mut command = fixture.command("snapshot");
    command.env("PATH", nowhere.path());
    let ended = tokio::task::spawn_blocking(move || finish(&mut command)).await.unwrap();
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("cannot run kubectl"), "{}", ended.stderr);
}

/// Such as a program for credentials: it has the pipe of kubectl's errors, and goes on.
#[tokio::test] // proves UPDATE-50
async fn a_child_that_kubectl_leaves_behind_is_not_waited_for() {
    let fixture = Fixture::with(idle()).await;
    led(&fixture).await;
    let leaves =
        "echo 'error: no such pod' >&2; sleep 60 >/dev/null & echo $! > \"${0%/*}/child\"; exit 1";
    let kubectl = stand_in(leaves);
    let ended = run(&fixture, "snapshot", kubectl.path()).await;
    let child = std::fs::read_to_string(kubectl.path().join("child")).unwrap();
    let child: i32 = child.trim().parse().unwrap();
    // Of a process that has ended there are no arguments.
    let arguments = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
    assert!(!arguments.is_empty(), "it was waited for");
    kill(Pid::from_raw(child), Signal::SIGKILL).unwrap();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("error: no such pod"), "{}", ended.stderr);
}
