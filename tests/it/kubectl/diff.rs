//! `diff`: StatefulSets and their revisions as the StatefulSet controller leaves them.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use stayput_standin::apiserver::{Fault, How};

use super::fixture::{Fixture, under_way};

/// Three pods of `logs`, of which the first two were made from the revision before.
async fn with_set(strategy: &str, change: impl FnOnce(&mut Value)) -> Fixture {
    let fixture = Fixture::empty().await;
    fixture.declare("logs").await;
    let old = json!({
        "metadata": {"labels": {"app": "logs"}},
        "spec": {"containers": [
            {"name": "search", "image": "search:1", "ports": [{"containerPort": 9197}],
             "tomorrow": "kept"},
        ]},
    });
    let mut new = old.clone();
    change(&mut new);
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), "default");
    let set = json!({
        "metadata": {"name": "logs"},
        "spec": {
            "replicas": 3, "serviceName": "logs", "updateStrategy": {"type": strategy},
            "selector": {"matchLabels": {"app": "logs"}},
            "template": {
                "metadata": {"labels": {"app": "logs"}},
                "spec": {"containers": [{"name": "search", "image": "search"}]},
            },
        },
    });
    let set = sets.create(&PostParams::default(), &from(set)).await.unwrap();
    let status =
        json!({"status": {"replicas": 3, "observedGeneration": 1, "updateRevision": "logs-new"}});
    let params = PatchParams::default();
    sets.patch_status("logs", &params, &Patch::Merge(status)).await.unwrap();
    let revisions: Api<ControllerRevision> = Api::namespaced(fixture.client.clone(), "default");
    for (number, (name, mut template)) in
        [("logs-old", old), ("logs-new", new)].into_iter().enumerate()
    {
        template["$patch"] = json!("replace");
        let revision = json!({
            "metadata": {"name": name}, "revision": number + 1,
            "data": {"spec": {"template": template}},
        });
        revisions.create(&PostParams::default(), &from(revision)).await.unwrap();
    }
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "logs",
        "uid": set.metadata.uid, "controller": true,
    }]);
    for (number, revision) in ["logs-old", "logs-old", "logs-new"].into_iter().enumerate() {
        let pod = json!({
            "metadata": {
                "name": format!("logs-{number}"), "ownerReferences": owner,
                "labels": {"app": "logs", "controller-revision-hash": revision},
            },
            "spec": {"containers": [
                {"name": "search", "image": "search", "ports": [{"containerPort": 9197}]},
            ]},
        });
        fixture.pods().create(&PostParams::default(), &from(pod)).await.unwrap();
    }
    fixture
}

fn from<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn each_pod_has_its_step_and_its_fields() {
    let fixture = with_set("OnDelete", |new| {
        new["metadata"]["labels"]["team"] = json!("a");
        new["spec"]["containers"][0]["image"] = json!("search:2");
    })
    .await;
    assert_eq!(
        fixture.succeeds("diff").await,
        "\
POD      STEP        KEPT                       FIELD                           FROM       TO
logs-0   container   pod, address and volumes   spec.containers[search].image   search:1   search:2
         (relabel)                              metadata.labels.team            -          a
logs-1   container   pod, address and volumes   spec.containers[search].image   search:1   search:2
         (relabel)                              metadata.labels.team            -          a
logs-2   none        everything                 -                               -          -
"
    );
    let printed = fixture.json("diff logs").await;
    assert_eq!(printed["pods"][0]["step"], "container");
    let because = json!({
        "field": "spec.containers[search].image", "from": "search:1", "to": "search:2",
        "step": "container",
    });
    assert_eq!(printed["pods"][0]["because"][0], because);
    assert_eq!(printed["rollingStatefulSets"], json!([]));
}

/// The label of an operator's pod names the new revision before the pod has it.
#[tokio::test] // proves UPDATE-103
async fn a_pod_whose_label_is_ahead_is_compared_by_what_it_is_made_from() {
    let fixture = with_set("OnDelete", |new| {
        new["spec"]["containers"][0]["image"] = json!("search:2");
    })
    .await;
    let ahead = json!({"metadata": {
        "labels": {"controller-revision-hash": "logs-new"},
        "annotations": {"stayput.dev/actual-revision": "logs-old"},
    }});
    fixture.pods().patch("logs-0", &PatchParams::default(), &Patch::Merge(ahead)).await.unwrap();
    let printed = fixture.json("diff").await;
    let steps = [0, 1, 2].map(|number| printed["pods"][number]["step"].clone());
    assert_eq!(steps, ["container", "container", "none"]);
}

/// The reconciler deletes such a pod: nothing adds a toleration to one that lives.
#[tokio::test] // proves UPDATE-31
async fn a_toleration_that_is_added_asks_for_another_pod() {
    let fixture = with_set("OnDelete", |new| {
        new["spec"]["tolerations"] = json!([{"key": "zone", "operator": "Exists"}]);
        new["metadata"]["labels"]["team"] = json!("a");
    })
    .await;
    let pod = &fixture.json("diff").await["pods"][0];
    let steps = |all: &Value| {
        all["because"].as_array().unwrap().iter().map(|one| one["step"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (&pod["step"], steps(pod)),
        (&json!("replace"), vec!["replace".into(), "relabel".into()])
    );
}

#[tokio::test]
async fn a_revision_that_means_the_same_needs_its_label() {
    let fixture = with_set("OnDelete", |_| {}).await;
    let printed = fixture.json("diff").await;
    let steps = [0, 1, 2].map(|number| printed["pods"][number]["step"].clone());
    assert_eq!(steps, ["relabel", "relabel", "none"]);
}

/// The StatefulSet controller removes it: nobody asks where its data is.
#[tokio::test] // proves UPDATE-31
async fn a_pod_that_its_set_removes_is_told_from_a_node_that_leaves() {
    let fixture = with_set("OnDelete", |_| {}).await;
    let sets: Api<StatefulSet> = Api::namespaced(fixture.client.clone(), "default");
    let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
    sets.patch("logs", &PatchParams::default(), &fewer).await.unwrap();
    let page = fixture.succeeds("diff").await;
    assert!(
        page.contains("StatefulSet logs was changed, and the StatefulSet controller"),
        "{page}"
    );
    let seen = Patch::Merge(json!({"status": {"observedGeneration": 2}}));
    sets.patch_status("logs", &PatchParams::default(), &seen).await.unwrap();
    let page = fixture.succeeds("diff").await;
    assert!(page.contains("\nlogs-1   removed"), "{page}");
    let why = "logs-2: StatefulSet logs wants fewer pods: its controller removes this one, and nobody \
               moves its data to other nodes before\n";
    assert!(page.ends_with(why), "{page}");
    let printed = fixture.json("diff").await;
    let [stays, removed] = [&printed["pods"][0], &printed["pods"][2]];
    assert_eq!((&stays["step"], stays.get("removed")), (&json!("relabel"), None));
    let why = removed["removed"].as_str().unwrap();
    assert!(removed.get("step").is_none() && why.contains("nobody moves its data"), "{removed}");
}

/// Only the reconciler reads Secrets and ConfigMaps.
#[tokio::test] // proves UPDATE-31
async fn what_secrets_and_config_maps_ask_for_is_known_from_the_status() {
    let fixture = with_set("OnDelete", |new| {
        new["metadata"]["labels"]["team"] = json!("a");
    })
    .await;
    let mut status = under_way("b", "rolling");
    status["nodes"] = json!([
        {"name": "logs-0", "step": "restart", "because": ["the config", "metadata.labels.team: a is new"]},
        {"name": "logs-2", "step": "container", "because": ["ConfigMap logs, key A, in env"]},
    ]);
    fixture.status(status).await;
    assert_eq!(
        fixture.succeeds("diff").await,
        "\
POD      STEP        KEPT                                  FIELD                           FROM   TO
logs-0   restart     container, pod, address and volumes   the config                      -      -
         (relabel)                                         metadata.labels.team            -      a
logs-1   relabel     the engine's process                  metadata.labels.team            -      a
logs-2   container   pod, address and volumes              ConfigMap logs, key A, in env   -      -
"
    );
}

#[tokio::test]
async fn what_stands_in_the_way_is_named_with_its_remedy() {
    let fixture = with_set("RollingUpdate", |new| {
        new["spec"]["containers"][0]["tomorrow"] = json!("other");
    })
    .await;
    let page = fixture.succeeds("diff").await;
    assert!(page.contains("logs-0   replace   name and volume claims"), "{page}");
    assert!(page.contains("spec.containers[search].tomorrow"), "{page}");
    assert!(page.contains("kubectl patch statefulset logs --namespace default"), "{page}");
    let page = fixture.succeeds("diff --context stand-in").await;
    assert!(page.contains(": kubectl --context stand-in patch statefulset logs "), "{page}");

    // The revision of a pod is no longer there; a pod has no owner.
    let revisions: Api<ControllerRevision> = Api::namespaced(fixture.client.clone(), "default");
    revisions.delete("logs-old", &Default::default()).await.unwrap();
    fixture.pod("logs", 3).await;
    let page = fixture.succeeds("diff").await;
    assert!(
        page.contains("the revision logs-old that it was made from is no longer kept"),
        "{page}"
    );
    assert!(page.contains("logs-3: no StatefulSet owns it\n"), "{page}");

    fixture.server.inject(Fault::new(How::Refuse(403)).verb("get").resource("statefulsets"));
    let error = fixture.fails("diff", 1).await;
    assert!(error.contains("the verb get on statefulsets.apps;"), "{error}");
}
