//! Pod templates of sets that are there: a difference is another step, or another pod, for each node of everybody.

use serde_json::json;

use super::{made, object, planned, usual};
use crate::{Distribution, Kind, Version};

fn image(plan: &crate::Plan, set: &str) -> String {
    let init = &object(plan, Kind::StatefulSet, set)["spec"]["template"]["spec"]["initContainers"];
    init[0]["image"].as_str().unwrap().to_owned()
}

#[test] // proves DECLARE-12
fn a_newer_reconciler_leaves_the_managers_of_sets_that_are_there() {
    let mut cluster = usual();
    let observed = made(&cluster);
    let before = planned(&cluster, &observed);
    cluster.manager.image_of_new_sets = "stayput/manager:0.2.0".to_owned();
    assert_eq!(planned(&cluster, &observed), before);
    cluster.node_sets.push(super::set("warm", 1, &["data"]));
    let grown = planned(&cluster, &observed);
    assert_eq!(image(&grown, "logs-warm"), "stayput/manager:0.2.0");
    cluster.manager.image = Some("registry.example/manager:0.2.0".to_owned());
    let named = planned(&cluster, &super::applied(observed, &grown.objects));
    assert_eq!(image(&named, "logs-data"), "registry.example/manager:0.2.0");
}

/// Another line here restarts, or replaces, the nodes of every declared cluster once the reconciler is upgraded. So it
/// is a decision, with a line in CHANGELOG.md. `UPDATE_DOCS=1` writes the files anew.
#[test] // proves DECLARE-12
#[allow(clippy::disallowed_methods, reason = "a test reads and writes its golden files")]
fn what_an_upgrade_of_the_reconciler_would_change_of_all_pods() {
    let mut elasticsearch = usual();
    elasticsearch.engine.distribution = Distribution::Elasticsearch;
    elasticsearch.engine.version = Version(8, 19, 0);
    elasticsearch.node_sets[0].config.insert("node.roles".into(), json!(["master"]));
    for (name, cluster) in [("opensearch", usual()), ("elasticsearch", elasticsearch)] {
        let plan = planned(&cluster, &made(&cluster));
        let template = &object(&plan, Kind::StatefulSet, "logs-data")["spec"]["template"];
        let text = format!("{}\n", serde_json::to_string_pretty(template).unwrap());
        let path = format!("{}/tests/templates/{name}.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{path}");
    }
}

#[test] // proves STOP-31
fn what_makes_the_archive_is_of_the_declared_engine() {
    let mut cluster = usual();
    cluster.engine.warm = true;
    let resources = json!({"limits": {"memory": "2Gi"}});
    cluster.node_sets[1].pod_template = json!({"spec": {
        "initContainers": [{"name": "plugins"}, {"name": "stayput-warm", "terminationMessagePath": "/dev/null"}],
        "containers": [{"name": "opensearch", "image": "own:1", "resources": resources}],
    }});
    let plan = planned(&cluster, &made(&usual()));
    let spec = &object(&plan, Kind::StatefulSet, "logs-data")["spec"]["template"]["spec"];
    let inits = spec["initContainers"].as_array().unwrap();
    let names: Vec<_> = inits.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["stayput", "plugins", stayput_pod_spec::WARM_CONTAINER]);
    let (warm, engine) = (&inits[2], &spec["containers"][0]);
    assert_eq!((&warm["image"], &warm["resources"]), (&json!("own:1"), &resources));
    assert_eq!(warm["terminationMessagePath"], "/dev/null", "what is declared of it wins");
    let mount =
        json!({"name": "stayput-warm", "mountPath": "/usr/share/opensearch/config/jvm.options.d"});
    for container in [warm, engine] {
        assert!(container["volumeMounts"].as_array().unwrap().contains(&mount), "{container:#}");
    }
    let volume = json!({"name": "stayput-warm", "emptyDir": {}});
    assert!(spec["volumes"].as_array().unwrap().contains(&volume));
}
