//! What objects say: spec, status, owners, templates, Secrets, operators.

use serde_json::{Value, json};

use crate::doctor::Facts;
use crate::doctor::Severity::{Error, Note, Warning};
use crate::doctor::checks::findings;
use crate::doctor::tests::each;
use crate::doctor::tests::healthy::healthy;

const CLUSTER: &str = "SearchCluster/logs";
const POD: &str = "Pod/logs-0";

#[test] // proves DOCTOR-1
fn the_spec_and_its_status() {
    each(&[
        (
            "no pods",
            |facts| facts.pods = Ok(vec![]),
            Error,
            "no_pods",
            CLUSTER,
            ["finds no pod", "get pods --show-labels"],
        ),
        (
            "an invalid spec",
            |facts| facts.cluster.spec.engine.ca_secret = None,
            Error,
            "invalid_spec",
            CLUSTER,
            ["engine.caSecret", "kubectl -n search edit searchcluster logs"],
        ),
        (
            "paused",
            |facts| facts.cluster.spec.paused = true,
            Warning,
            "paused",
            CLUSTER,
            ["spec.paused", "kubectl stayput -n search resume logs"],
        ),
        (
            "being deleted",
            |facts| {
                facts.change_cluster(|it| {
                    it["metadata"]["deletionTimestamp"] = json!("2026-11-21T03:00:00Z");
                });
            },
            Error,
            "deleting",
            CLUSTER,
            ["being deleted", "kubectl stayput -n search status logs"],
        ),
        (
            "plain http",
            |facts| {
                facts.change_cluster(|it| {
                    it["spec"]["engine"]["scheme"] = json!("http");
                    it["spec"]["engine"]["allowPlainCredentials"] = json!(true);
                });
            },
            Warning,
            "plain_credentials",
            CLUSTER,
            ["plain http", "edit searchcluster logs"],
        ),
        (
            "never seen",
            |facts| facts.cluster.status = None,
            Error,
            "not_processed",
            CLUSTER,
            ["has not processed", "logs deployment/stayput-reconciler"],
        ),
        (
            "another generation",
            |facts| facts.change_cluster(|it| it["metadata"]["generation"] = json!(2)),
            Warning,
            "status_behind",
            CLUSTER,
            ["last change", "status logs"],
        ),
    ]);
}

/// Sets the conditions, each by type, status, reason, message and the time since when it is so.
fn set_conditions(facts: &mut Facts, all: &[[&str; 5]]) {
    let condition = |[kind, status, reason, message, since]: &[&str; 5]| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": format!("2026-11-21T{since}Z")})
    };
    let all: Vec<Value> = all.iter().map(condition).collect();
    facts.change_cluster(|it| it["status"]["conditions"] = json!(all));
}

#[test] // proves DOCTOR-1
fn each_condition_that_is_not_as_it_should_be() {
    const OWED: &str = "the engine of logs-1 must be started";
    each(&[
        (
            "stalled",
            |facts| {
                set_conditions(
                    facts,
                    &[
                        ["Ready", "False", "stranded", "why", "02:10:00"],
                        ["Stalled", "True", "stranded", "why", "02:10:00"],
                        ["Blocked", "True", "stranded", "why", "02:10:00"],
                    ],
                );
            },
            Error,
            "condition",
            CLUSTER,
            ["Stalled and Blocked True for 1h (stranded): why", "stayput runbook stranded"],
        ),
        (
            "a new debt",
            |facts| set_conditions(facts, &[["Degraded", "True", "Debts", OWED, "03:00:00"]]),
            Warning,
            "condition",
            CLUSTER,
            ["Degraded True for 10m (Debts): the engine of logs-1 must be started", "status logs"],
        ),
        (
            "an old debt",
            |facts| set_conditions(facts, &[["Degraded", "True", "Debts", OWED, "02:00:00"]]),
            Error,
            "condition",
            CLUSTER,
            ["for 1h 10m", "status logs"],
        ),
        (
            "red",
            |facts| set_conditions(facts, &[["Available", "False", "Red", "why", "03:00:00"]]),
            Error,
            "condition",
            CLUSTER,
            ["Available False for 10m (Red)", "status logs"],
        ),
        (
            "a rule that is off",
            |facts| {
                let off = ["PredicatesDisabled", "True", "Disabled", "why", "03:00:00"];
                set_conditions(facts, &[off]);
            },
            Warning,
            "condition",
            CLUSTER,
            ["PredicatesDisabled True", "status logs"],
        ),
    ]);
}

#[test]
fn conditions_that_are_as_they_should_be_or_are_found_anyhow_are_not_said() {
    let mut facts = healthy();
    let good = [
        ["Ready", "True", "Ready", "", "03:00:00"],
        ["Reconciling", "True", "Rolling", "", "03:00:00"],
        ["Available", "True", "Yellow", "", "03:00:00"],
        ["Degraded", "False", "NothingOwed", "", "03:00:00"],
        ["CertificatesValid", "True", "Valid", "", "03:00:00"],
    ];
    set_conditions(&mut facts, &good);
    assert_eq!(findings(&facts), []);
    facts.cluster.spec.paused = true;
    set_conditions(&mut facts, &[["Blocked", "True", "paused", "why", "03:00:00"]]);
    let codes: Vec<&str> = findings(&facts).iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["paused"]);
}

#[test] // proves DOCTOR-1
fn the_owners_of_the_pods() {
    each(&[
        (
            "RollingUpdate",
            |facts| {
                facts.change_set(|it| it["spec"]["updateStrategy"]["type"] = json!("RollingUpdate"))
            },
            Warning,
            "replaces_pods",
            "StatefulSet/logs",
            ["without the rules", "kubectl patch statefulset logs --namespace search"],
        ),
        (
            "RollingUpdate, where edits are to be carried out",
            |facts| {
                facts
                    .change_set(|it| it["spec"]["updateStrategy"]["type"] = json!("RollingUpdate"));
                facts.change_cluster(|it| it["spec"]["update"] = json!({"mode": "inPlace"}));
            },
            Error,
            "replaces_pods",
            "StatefulSet/logs",
            ["RollingUpdate", "OnDelete"],
        ),
        (
            "the set is gone",
            |facts| drop(facts.sets.insert("logs".into(), Ok(None))),
            Error,
            "owner",
            "StatefulSet/logs",
            ["not there", "get statefulset logs"],
        ),
        (
            "a bare pod",
            |facts| facts.change_pod(|it| it["metadata"]["ownerReferences"] = json!([])),
            Note,
            "no_owner",
            POD,
            ["nothing owns it", "get pods -o yaml"],
        ),
        (
            "a Deployment",
            |facts| {
                facts.change_pod(|it| {
                    it["metadata"]["ownerReferences"][0]["kind"] = json!("ReplicaSet")
                });
            },
            Error,
            "other_owner",
            POD,
            ["ReplicaSet logs owns it", "get replicaset logs"],
        ),
    ]);
    let mut facts = healthy();
    facts.change_set(|it| {
        it["spec"]["updateStrategy"]["type"] = json!("RollingUpdate");
        it["status"]["updateRevision"] = json!("logs-2");
    });
    let found = findings(&facts);
    let replaced: Vec<&str> = found
        .iter()
        .filter(|finding| finding.code == "owner_will_replace")
        .map(|finding| finding.object.as_str())
        .collect();
    assert_eq!(replaced, ["Pod/logs-0", "Pod/logs-1", "Pod/logs-2"]);
    facts.change_set(|it| {
        it["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "x/v1", "kind": "Database", "name": "big", "uid": "u", "controller": true,
        }]);
    });
    let found = findings(&facts);
    let found = found.iter().find(|one| one.code == "owner_will_replace").unwrap();
    assert_eq!(found.remedy, "set the update strategy OnDelete in Database big");
    assert!(!found.message.contains("patch statefulset"), "{}", found.message);
}

/// The first pod's only container, with a change.
fn container(facts: &mut Facts, change: impl FnOnce(&mut Value)) {
    facts.change_pod(|pod| change(&mut pod["spec"]["containers"][0]));
}

#[test] // proves DOCTOR-1
fn what_the_pods_are_made_of() {
    each(&[
        (
            "the image's own entrypoint",
            |facts| container(facts, |it| it["command"] = Value::Null),
            Error,
            "no_manager",
            POD,
            ["without the manager", "kubectl stayput inject --check"],
        ),
        (
            "another command",
            |facts| container(facts, |it| it["command"] = json!(["./start"])),
            Error,
            "no_manager",
            POD,
            ["container opensearch", "get statefulset logs -o yaml"],
        ),
        (
            "a shell in front",
            |facts| {
                container(facts, |it| {
                    it["command"] = json!(["bash", "-c", "ulimit -n 1; /stayput/stayput run -- x"]);
                });
            },
            Warning,
            "manager_behind_shell",
            POD,
            ["bash stays in front", "inject --check"],
        ),
        (
            "no state directory",
            |facts| container(facts, |it| it["env"] = json!([])),
            Error,
            "state_directory",
            POD,
            ["keeps no journal", "inject"],
        ),
        (
            "a state directory of the image",
            |facts| container(facts, |it| it["env"][0]["value"] = json!("/var/lib/stayput")),
            Error,
            "state_directory",
            POD,
            ["is on no volume", "inject"],
        ),
        (
            "a state directory that outlives the pod",
            |facts| {
                facts.change_pod(|it| {
                    it["spec"]["volumes"] = json!([{
                        "name": "stayput-state", "persistentVolumeClaim": {"claimName": "c"},
                    }]);
                });
            },
            Warning,
            "state_directory",
            POD,
            ["outlives the pod", "inject"],
        ),
        (
            "a liveness probe of the engine",
            |facts| {
                container(facts, |it| it["livenessProbe"] = json!({"tcpSocket": {"port": 9200}}))
            },
            Error,
            "liveness_would_kill",
            POD,
            ["liveness probe of container opensearch of the pod", "inject"],
        ),
        (
            "a container that stays down",
            |facts| container(facts, |it| it["restartPolicy"] = json!("OnFailure")),
            Warning,
            "restart_policy",
            POD,
            ["container opensearch has restartPolicy: OnFailure", "edit statefulset logs"],
        ),
        (
            "files by subPath",
            |facts| {
                facts.change_pod(|it| {
                    let mount = json!({
                        "name": "config", "subPath": "opensearch.yml",
                        "mountPath": "/usr/share/opensearch/config/opensearch.yml",
                    });
                    let container = &mut it["spec"]["containers"][0];
                    container["volumeMounts"].as_array_mut().unwrap().push(mount);
                    let volume = json!({"name": "config", "configMap": {"name": "logs-config"}});
                    it["spec"]["volumes"].as_array_mut().unwrap().push(volume);
                });
            },
            Warning,
            "sub_path",
            POD,
            [
                "/usr/share/opensearch/config/opensearch.yml mounted by subPath without --stage",
                "inject",
            ],
        ),
    ]);
}

/// Such a file is read again by another container, which comes with the update.
#[test]
fn files_by_sub_path_are_no_fault_where_their_changes_are_carried_out() {
    let mut facts = healthy();
    container(&mut facts, |it| {
        let path = "/usr/share/opensearch/config/opensearch.yml";
        let mount = json!({"name": "config", "subPath": "opensearch.yml", "mountPath": path});
        it["volumeMounts"].as_array_mut().unwrap().push(mount);
    });
    facts.change_pod(|it| {
        let volume = json!({"name": "config", "configMap": {"name": "logs-config"}});
        it["spec"]["volumes"].as_array_mut().unwrap().push(volume);
    });
    let codes = |facts: &Facts| findings(facts).iter().map(|one| one.code).collect::<Vec<_>>();
    assert_eq!(codes(&facts), ["sub_path"]);
    facts.change_cluster(|it| it["spec"]["update"] = json!({"mode": "inPlace"}));
    assert_eq!(codes(&facts), [""; 0]);
}

#[test] // proves MANIFEST-3, UPDATE-102
fn what_an_operator_has_made_is_changed_in_its_own_object() {
    for (group, kind, command) in [
        ("elasticsearch.k8s.elastic.co", "Elasticsearch", "get elasticsearch big -o yaml"),
        (
            "opensearch.org",
            "OpenSearchCluster",
            "get opensearchclusters.opensearch.org big -o yaml",
        ),
    ] {
        let mut facts = healthy();
        facts.change_set(|it| {
            it["metadata"]["ownerReferences"] = json!([{
                "apiVersion": format!("{group}/v1"), "kind": kind, "name": "big", "uid": "u",
                "controller": true,
            }]);
        });
        container(&mut facts, |it| {
            it["command"] = Value::Null;
            it["livenessProbe"] = json!({"tcpSocket": {"port": 9200}});
            it["restartPolicy"] = json!("OnFailure");
        });
        let found = findings(&facts);
        let policy = found.iter().find(|found| found.code == "restart_policy").unwrap();
        let edit = command.replace("get", "edit").replace(" -o yaml", "");
        assert_eq!(policy.remedy, format!("kubectl -n search {edit}"));
        for code in ["no_manager", "liveness_would_kill"] {
            let found = found.iter().find(|found| found.code == code).unwrap();
            assert_eq!(
                found.remedy,
                format!("kubectl -n search {command} | kubectl stayput inject --check")
            );
        }
    }
}

/// The operator would delete pods whose StatefulSet somebody else has changed.
#[test]
fn a_manager_that_a_shell_is_replaced_by_is_the_first_process() {
    for command in [
        json!(["/bin/bash", "-c", "exec /stayput/stayput run --state-dir=/stayput-state -- x"]),
        json!(["/stayput/stayput", "run", "--state-dir", "/stayput-state/", "--", "x"]),
    ] {
        let mut facts = healthy();
        container(&mut facts, |it| it["command"] = command.clone());
        assert_eq!(findings(&facts), [], "{command}");
    }
}

#[test] // proves DOCTOR-1
fn the_secrets_that_the_spec_names() {
    each(&[
        (
            "an absent Secret",
            |facts| drop(facts.secrets.insert("manager-ca".into(), Ok(None))),
            Error,
            "secret_absent",
            "Secret/manager-ca",
            ["spec.manager.caSecret names it", "get secrets"],
        ),
        (
            "a Secret without its key",
            |facts| {
                facts.put_secret(json!({"metadata": {"name": "logs-ca"}, "data": {"ca": "YQ=="}}))
            },
            Error,
            "secret_key",
            "Secret/logs-ca",
            ["needs the key ca.crt", "describe secret logs-ca"],
        ),
        (
            "credentials without a password",
            |facts| {
                facts.put_secret(json!({
                    "metadata": {"name": "logs-admin", "annotations": {"stayput.dev/allow": "logs"}},
                    "data": {"username": "YQ=="},
                }));
            },
            Error,
            "secret_key",
            "Secret/logs-admin",
            ["needs the key password", "describe secret logs-admin"],
        ),
        (
            "credentials of somebody else",
            |facts| {
                facts.put_secret(json!({
                    "metadata": {"name": "logs-admin", "annotations": {"stayput.dev/allow": "other"}},
                    "data": {"apiKey": "YQ=="},
                }));
            },
            Error,
            "not_allowed",
            "Secret/logs-admin",
            [
                "does not allow",
                "annotate --overwrite secret logs-admin stayput.dev/allow='other,logs'",
            ],
        ),
    ]);
}

/// The objects as ECK makes them: a password under the user's name, and labels of its own.
#[test] // proves DOCTOR-13
fn credentials_as_eck_keeps_them_are_taken_as_they_are() {
    let mut facts = healthy();
    facts.change_cluster(|it| {
        it["spec"]["engine"]["credentialsSecret"] = json!("logs-es-elastic-user");
    });
    facts.put_secret(json!({
        "metadata": {
            "name": "logs-es-elastic-user", "annotations": {"stayput.dev/allow": "logs"},
            "labels": {"eck.k8s.elastic.co/credentials": "true"},
        },
        "data": {"elastic": "YQ=="},
    }));
    assert_eq!(findings(&facts), []);
}
