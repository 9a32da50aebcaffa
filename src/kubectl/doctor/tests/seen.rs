//! What the reconciler sees, and whether there is one.

use serde_json::json;

use crate::doctor::Severity::{Error, Note, Warning};
use crate::doctor::checks::findings;
use crate::doctor::tests::healthy::{from, healthy, unknown};
use crate::doctor::tests::{Change, each};
use crate::doctor::{Facts, Finding};

const POD: &str = "Pod/logs-0";
const RECONCILER: &str = "Deployment/stayput-reconciler";

#[test] // proves STOP-25, DOCTOR-1
fn managers_and_engine() {
    each(&[
        (
            "a manager that does not answer",
            |facts| {
                facts.see(|it| {
                    it["snapshot"]["pods"][0]["manager"] = json!({"unknown": "401: token expired"});
                });
            },
            Error,
            "manager_unreachable",
            POD,
            ["token expired", "kubectl -n search logs logs-0 --tail 50"],
        ),
        (
            "the manager of another pod",
            |facts| {
                facts
                    .see(|it| it["snapshot"]["pods"][0]["manager"]["known"]["podUid"] = json!("x"));
            },
            Error,
            "wrong_pod",
            POD,
            ["another pod (uid x)", "logs logs-0"],
        ),
        (
            "a journal that is not kept",
            |facts| {
                facts.see(|it| {
                    it["snapshot"]["pods"][0]["manager"]["known"]["durable"] = json!(false)
                });
            },
            Error,
            "not_durable",
            POD,
            ["cannot keep its journal", "logs logs-0"],
        ),
        (
            "other live files",
            |facts| {
                facts.see(|it| {
                    it["snapshot"]["pods"][0]["manager"]["known"]["liveMismatch"] = json!("users*");
                });
            },
            Error,
            "live_mismatch",
            POD,
            ["users*", "logs logs-0"],
        ),
        (
            "an archive that is ignored",
            |facts| {
                facts.see(|it| {
                    it["snapshot"]["pods"][0]["manager"]["known"]["ignoredArchive"] =
                        json!("/warm.jsa");
                });
            },
            Note,
            "archive_not_used",
            POD,
            ["/warm.jsa and starts slower", "stayput warm"],
        ),
        (
            "an engine that does not answer",
            |facts| {
                facts.see(|it| it["snapshot"]["engine"] = json!({"unknown": "403 of the engine"}))
            },
            Error,
            "engine_unreachable",
            "SearchCluster/logs",
            ["403 of the engine", "get searchcluster logs"],
        ),
    ]);
}

#[test]
fn a_budget_selects_what_the_search_cluster_selects_also_by_expressions() {
    let mut facts = healthy();
    facts.budgets = Ok(vec![]);
    facts.change_cluster(|it| {
        it["spec"]["pods"]["selector"]["matchExpressions"] = json!([
            {"key": "tier", "operator": "In", "values": ["hot", "warm"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "zone", "operator": "NotIn", "values": ["z3"]},
            {"key": "uid", "operator": "Exists"},
        ]);
    });
    let found = findings(&facts);
    let found = found.iter().find(|finding| finding.code == "no_budget").unwrap();
    let selector = "--selector='app=logs,tier in (hot,warm),!old,zone notin (z3),uid'";
    assert!(found.remedy.ends_with(selector), "{}", found.remedy);
}

#[test]
fn without_a_snapshot_the_status_still_counts() {
    let mut facts = healthy();
    facts.snapshot = Err(unknown());
    facts.change_cluster(|it| it["status"]["counts"] = json!({"unreachable": 2}));
    let found = findings(&facts);
    let codes: Vec<&str> = found.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["manager_unreachable", "no_snapshot"]);
    assert!(found[1].remedy.contains("port-forward"), "{found:?}");
    let again = "kubectl stayput -n search doctor logs --reconciler http://127.0.0.1:9198";
    assert!(found[1].remedy.ends_with(again), "{found:?}");
    facts.installation.lease = Ok(None);
    let found = findings(&facts);
    let found = found.iter().find(|finding| finding.code == "no_snapshot").unwrap();
    assert_eq!(found.remedy, "kubectl -n stayput logs deployment/stayput-reconciler");
}

/// The first manager has taken over from an older one.
fn upgraded(facts: &mut Facts) {
    facts.see(|it| {
        it["snapshot"]["pods"][0]["manager"]["known"]["upgradedFrom"] = json!("0.0.9");
    });
}

#[test]
fn another_image_comes_after_on_delete_and_not_behind_an_operators_back() {
    let mut facts = healthy();
    upgraded(&mut facts);
    let init = json!([{"name": "stayput", "image": "stayput/manager:0.0.9"}]);
    facts.change_pod(|it| it["spec"]["initContainers"] = init.clone());
    facts.change_set(|it| {
        it["spec"]["template"]["spec"]["initContainers"] = init;
        it["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
    });
    let version = |facts: &Facts| {
        let found = findings(facts);
        found.into_iter().find(|finding| finding.code == "version").expect("a finding")
    };
    let finding = version(&facts);
    assert!(finding.message.contains("by itself, without the rules"), "{}", finding.message);
    let (first, then) = finding.remedy.split_once('\n').expect("two commands");
    assert!(first.contains(r#""type":"OnDelete""#), "{first}");
    assert!(then.starts_with("kubectl -n search set image statefulset/logs stayput="), "{then}");

    let owner = json!({"apiVersion": "x/v1", "kind": "Elasticsearch", "name": "logs", "uid": "u", "controller": true});
    facts.change_set(|it| it["metadata"]["ownerReferences"] = json!([owner]));
    assert!(version(&facts).remedy.starts_with("change the image in Elasticsearch logs"));
}

#[test]
fn a_template_with_another_image_is_not_said_to_have_the_old_manager() {
    let mut facts = healthy();
    upgraded(&mut facts);
    let image = |image: &str| json!([{"name": "stayput", "image": image}]);
    facts.change_pod(|it| it["spec"]["initContainers"] = image("stayput/manager:old"));
    facts.change_set(|it| {
        it["spec"]["template"]["spec"]["initContainers"] = image("stayput/manager:new");
    });
    let found = findings(&facts);
    assert!(found.iter().all(|finding| finding.code != "version"), "{found:?}");
}

#[test] // proves OPERATE-5, DOCTOR-1, DOCTOR-2
fn versions() {
    each(&[
        (
            "another reconciler",
            |facts| {
                facts.see(|it| {
                    it["stayput"] = json!("9.0.0");
                    for pod in it["snapshot"]["pods"].as_array_mut().unwrap() {
                        pod["manager"]["known"]["version"] = json!("9.0.0");
                    }
                });
            },
            Warning,
            "version",
            RECONCILER,
            [
                "the reconciler has version 9.0.0",
                "upgrade kubectl stayput on this machine to 9.0.0",
            ],
        ),
        (
            "an older reconciler",
            |facts| {
                facts.see(|it| {
                    it["stayput"] = json!("0.0.9");
                    for pod in it["snapshot"]["pods"].as_array_mut().unwrap() {
                        pod["manager"]["known"]["version"] = json!("0.0.9");
                    }
                });
            },
            Warning,
            "version",
            RECONCILER,
            ["the reconciler has version 0.0.9", "kubectl apply -k deploy/namespaced\n"],
        ),
        (
            "another manager",
            |facts| {
                facts.see(|it| {
                    it["snapshot"]["pods"][1]["manager"]["known"]["version"] = json!("0.0.9")
                });
            },
            Warning,
            "version",
            "Pod/logs-1",
            ["managers of logs-1 have version 0.0.9", "diff logs"],
        ),
        (
            "a manager that was upgraded in place",
            |facts| {
                upgraded(facts);
                let init = json!([{"name": "stayput", "image": "stayput/manager:0.0.9"}]);
                facts.change_pod(|it| it["spec"]["initContainers"] = init.clone());
                facts.change_set(|it| it["spec"]["template"]["spec"]["initContainers"] = init);
            },
            Warning,
            "version",
            POD,
            [
                "from version 0.0.9 to",
                concat!(
                    "kubectl -n search set image statefulset/logs stayput=stayput/manager:",
                    env!("CARGO_PKG_VERSION")
                ),
            ],
        ),
        (
            "one whose program is in the engine's image",
            |facts| {
                upgraded(facts);
                let image =
                    facts.known_pods()[0].spec.as_ref().unwrap().containers[0].image.clone();
                facts.change_set(|it| {
                    it["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
                });
            },
            Warning,
            "version",
            POD,
            [
                "comes with the manager of opensearchproject/opensearch:2.19.3 again",
                "kubectl -n search edit statefulset/logs",
            ],
        ),
        (
            "an older definition",
            |facts| {
                let mut old = json!(facts.installation.definition.as_ref().unwrap());
                let version = &mut old["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                let spec = &mut version["properties"]["spec"]["properties"];
                spec.as_object_mut().unwrap().remove("stopped");
                facts.installation.definition = Ok(Some(from(old)));
            },
            Error,
            "definition",
            "CustomResourceDefinition/searchclusters.stayput.dev",
            ["it has no spec.stopped;", "kubectl stayput crd | kubectl apply --server-side"],
        ),
        (
            "a newer definition",
            newer_definition,
            Warning,
            "definition",
            "CustomResourceDefinition/searchclusters.stayput.dev",
            ["which does not know spec.newer", "upgrade kubectl stayput on this machine"],
        ),
    ]);
}

fn newer_definition(facts: &mut Facts) {
    let mut new = json!(facts.installation.definition.as_ref().unwrap());
    let version = &mut new["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    version["properties"]["spec"]["properties"]["newer"] = json!({"type": "string"});
    facts.installation.definition = Ok(Some(from(new)));
}

/// What has another version in the cluster is never replaced by an older definition: Kubernetes would
/// drop its fields.
#[test] // proves DOCTOR-2
fn nothing_older_is_installed_over_a_newer_version() {
    let newer: [(&str, Change); 2] = [
        ("definition", newer_definition),
        ("reconciler", |facts| {
            facts.see(|it| it["stayput"] = json!("9.0.0"));
            let mut other = json!(facts.installation.definition.as_ref().unwrap());
            let version = &mut other["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let spec = version["properties"]["spec"]["properties"].as_object_mut().unwrap();
            spec.remove("stopped");
            facts.installation.definition = Ok(Some(from(other)));
        }),
    ];
    for (what, change) in newer {
        let mut facts = healthy();
        change(&mut facts);
        facts.rights[1].1 = Ok(false);
        facts.installation.pods = Ok(vec![]);
        let found = findings(&facts);
        for code in ["definition", "rights", "reconciler"] {
            let finding = found.iter().find(|one| one.code == code).unwrap();
            assert!(finding.remedy.starts_with("upgrade kubectl stayput"), "{what}: {finding:?}");
        }
        let installs =
            |one: &&Finding| one.remedy.contains("apply -") || one.remedy.contains("helm ");
        assert_eq!(found.iter().find(installs), None, "{what}");
    }
}

#[test] // proves DOCTOR-1
fn the_reconciler() {
    each(&[
        (
            "never there",
            |facts| facts.installation.lease = Ok(None),
            Error,
            "leader",
            "Lease/stayput-reconciler",
            ["no reconciler has ever worked", "logs deployment/stayput-reconciler"],
        ),
        (
            "no leader",
            |facts| facts.installation.lease = Ok(Some(from(json!({"spec": {}})))),
            Error,
            "leader",
            "Lease/stayput-reconciler",
            ["no reconciler is the leader", "logs"],
        ),
        (
            "a leader that is dead",
            |facts| {
                facts.installation.lease = Ok(Some(from(json!({"spec": {
                    "holderIdentity": "one", "renewTime": "2026-11-21T03:00:00.000000Z",
                }}))));
            },
            Error,
            "leader",
            "Lease/stayput-reconciler",
            ["the leader one has not renewed its Lease for 10m", "logs"],
        ),
        (
            "no pods",
            |facts| facts.installation.pods = Ok(vec![]),
            Error,
            "reconciler",
            RECONCILER,
            ["no pod of the reconciler", "kubectl apply -k deploy/namespaced"],
        ),
        (
            "a pod that is not ready",
            |facts| facts.installation.pods = Ok(vec![from(json!({"metadata": {"name": "r"}}))]),
            Warning,
            "reconciler",
            "Pod/r",
            ["not ready", "kubectl -n stayput logs r"],
        ),
        (
            "no budget",
            |facts| facts.budgets = Ok(vec![]),
            Note,
            "no_budget",
            "SearchCluster/logs",
            [
                "no PodDisruptionBudget",
                "create poddisruptionbudget logs --max-unavailable=1 --selector='app=logs'",
            ],
        ),
        (
            "two budgets",
            |facts| {
                let budgets = facts.budgets.as_mut().unwrap();
                budgets.push(budgets[0].clone());
            },
            Warning,
            "several_budgets",
            "Pod/logs-0, Pod/logs-1, Pod/logs-2",
            ["logs and logs select it", "get poddisruptionbudgets"],
        ),
    ]);
}
