//! Pod templates of sets that are there: a difference is another step, or another pod, for each node of everybody.

use super::{made, object, planned, usual};
use crate::{Distribution, Kind, Version};

fn image(plan: &crate::Plan, set: &str) -> String {
    let init = &object(plan, Kind::StatefulSet, set)["spec"]["template"]["spec"]["initContainers"];
    init[0]["image"].as_str().unwrap().to_owned()
}

#[test]
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
#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads and writes its golden files")]
fn what_an_upgrade_of_the_reconciler_would_change_of_all_pods() {
    let mut elasticsearch = usual();
    elasticsearch.engine.distribution = Distribution::Elasticsearch;
    elasticsearch.engine.version = Version(8, 19, 0);
    elasticsearch.node_sets[0].config.insert("node.roles".into(), serde_json::json!(["master"]));
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
