//! Variables of the engine by an annotation of its pod.

use serde_json::{Value, json};

use super::manifests::manifest;
use crate::{Options, inject, uninject};

const VOLUME: &str = "stayput-environment";

/// The injected object of a manifest that has an engine.
fn injected(name: &str) -> Value {
    let text = manifest(name);
    let outcome = inject(&text, &Options::default()).unwrap();
    assert_eq!(uninject(&outcome.text).unwrap().text, text, "{name}");
    let documents = crate::yaml::documents(&outcome.text).unwrap();
    let mut objects = documents.into_iter().filter_map(|one| one.root).map(|root| root.value());
    objects.find(|one| one.to_string().contains("stayput-jwks")).unwrap()
}

fn item(list: &Value, name: &str) -> Value {
    let mut items = list.as_array().unwrap().iter();
    items.find(|one| one["name"] == name).cloned().unwrap_or_default()
}

#[test] // proves MANIFEST-34
fn the_manager_is_shown_the_annotation_of_its_pod() {
    let field = json!({"fieldPath": "metadata.annotations['stayput.dev/environment']"});
    let items = json!([{"path": "environment", "fieldRef": field}]);
    let volume =
        json!({"name": VOLUME, "projected": {"sources": [{"downwardAPI": {"items": items}}]}});
    let mount = json!({"name": VOLUME, "mountPath": "/stayput-environment", "readOnly": true});
    let option =
        json!({"name": "STAYPUT_ENVIRONMENT", "value": "/stayput-environment/environment"});
    for name in ["hand-written.yaml", "opensearch-chart-3.yaml", "eck.yaml"] {
        let object = injected(name);
        let template = match &object["spec"]["nodeSets"] {
            Value::Null => &object["spec"]["template"],
            sets => &sets[0]["podTemplate"],
        };
        let spec = &template["spec"];
        let mut containers = spec["containers"].as_array().unwrap().iter();
        let engine = containers.find(|one| one.to_string().contains("STAYPUT_LISTEN")).unwrap();
        assert_eq!(item(&spec["volumes"], VOLUME), volume, "{name}");
        assert_eq!(item(&engine["volumeMounts"], VOLUME), mount, "{name}");
        assert_eq!(item(&engine["env"], "STAYPUT_ENVIRONMENT"), option, "{name}");
    }
    let operated = injected("opensearch-cluster-3.yaml");
    let mut mounted = volume;
    mounted["path"] = json!("/stayput-environment");
    let spec = &operated["spec"];
    assert_eq!(item(&spec["general"]["additionalVolumes"], VOLUME), mounted);
    assert_eq!(item(&spec["nodePools"][0]["env"], "STAYPUT_ENVIRONMENT"), option);
    // Volumes of the older group may not know the downward API.
    assert!(!injected("opensearch-cluster.yaml").to_string().contains(VOLUME));
}
