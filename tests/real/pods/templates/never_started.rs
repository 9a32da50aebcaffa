//! Pods that never start, each for another reason, and get a corrected template.

use std::time::Instant;

use serde_json::{Value, json};

use super::stage::Stage;
use crate::pods::fixture::ENGINE;
use crate::support::wait::eventually;

/// What makes the template bad: a name, the change, and a word of the kubelet or the scheduler.
type Fault = (&'static str, fn(&mut Value), &'static [&'static str]);

const FAULTS: [Fault; 5] = [
    (
        "an image that is not there",
        |spec| engine(spec)["image"] = json!("stayput.test/none:1"),
        &["ErrImageNeverPull"],
    ),
    (
        "a Secret of a variable that is absent",
        |spec| {
            let secret = json!({ "name": "absent", "key": "key" });
            let variable = json!({ "name": "KEY", "valueFrom": { "secretKeyRef": secret } });
            let variables = engine(spec)["env"].as_array_mut().expect("variables");
            variables.push(variable);
        },
        &["CreateContainerConfigError"],
    ),
    (
        "a request that is too large",
        |spec| {
            for kind in ["requests", "limits"] {
                engine(spec)["resources"][kind]["memory"] = json!("64Ti");
            }
        },
        &["Unschedulable"],
    ),
    (
        "an init container that fails",
        |spec| {
            let mut failing = engine(spec).clone();
            failing["name"] = json!("fails");
            failing["command"] = json!(["/opt/stayput", "no-such-command"]);
            for field in ["ports", "livenessProbe", "readinessProbe", "startupProbe"] {
                failing.as_object_mut().expect("a container").remove(field);
            }
            let init = spec["initContainers"].as_array().cloned().unwrap_or_default();
            spec["initContainers"] = init.into_iter().chain([failing]).collect();
        },
        &["CrashLoopBackOff", "Error"],
    ),
    (
        "a Secret of a volume that is absent",
        |spec| {
            let volume = json!({ "name": "absent", "secret": { "secretName": "absent" } });
            spec["volumes"].as_array_mut().expect("volumes").push(volume);
            // The kubelet leaves out what no container mounts.
            let mounts = engine(spec)["volumeMounts"].as_array_mut().expect("mounts");
            mounts.push(json!({ "name": "absent", "mountPath": "/absent" }));
        },
        &["ContainerCreating"],
    ),
];

fn engine(spec: &mut Value) -> &mut Value {
    &mut spec["containers"][0]
}

#[test] // proves UPDATE-7
fn a_pod_that_never_started_gets_the_corrected_template() {
    let test =
        "pods::templates::never_started::a_pod_that_never_started_gets_the_corrected_template";
    let Some(mut stage) = Stage::set_up(test) else { return };
    let good = stage.template.clone();
    assert_eq!(good["spec"]["containers"][0]["image"], ENGINE);
    for (what, spoil, reasons) in FAULTS {
        // Otherwise the bad template would be carried out node by node.
        stage.fixture.configure(&json!({ "paused": true }));
        spoil(&mut stage.template["spec"]);
        stage.edit();
        stage.fixture.run(&["delete", "pod", "logs-2"]);
        let shown = eventually("the status says why the pod does not start", || {
            let logs = stage.fixture.logs();
            let nodes = logs["status"]["nodes"].as_array()?;
            let node = nodes.iter().find(|node| node["name"] == "logs-2")?;
            let message = node["message"].as_str()?;
            let is_told = reasons.iter().any(|reason| message.contains(reason));
            (node["down"] == "pod_not_started" && is_told).then(|| message.to_owned())
        });
        let uid = stage.fixture.read("pods/logs-2")["metadata"]["uid"].clone();
        let began = Instant::now();
        stage.template = good.clone();
        stage.edit();
        stage.fixture.configure(&json!({ "paused": false }));
        let (before, after) = stage.until_updated();
        println!("{what}: {shown}; repaired in {} ms", began.elapsed().as_millis());
        let (was, is) = (&before[2], &after[2]);
        assert_eq!(is.claim, was.claim, "{what}");
        // Another image is the only fault that a pod which is there can lose.
        assert_eq!(json!(is.uid) == uid, reasons == ["ErrImageNeverPull"], "{what}");
        for (was, is) in before.iter().zip(&after).take(2) {
            assert_eq!((&is.uid, &is.container), (&was.uid, &was.container), "{what}: {}", is.name);
        }
    }
}
