//! Where the data of engines is, and whether another template has it at the same place.

use super::*;
use serde_json::{Value, json};

use super::elsewhere::is_data_elsewhere;

fn place_of(container: Value) -> DataPlace {
    let volumes = json!([
        {"name": "claim", "persistentVolumeClaim": {"claimName": "claim-logs-0"}},
        {"name": "other", "emptyDir": {}},
        {"name": "data", "emptyDir": {}},
        {"name": "each", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]);
    let volumes: Vec<Volume> = serde_json::from_value(volumes).expect("volumes");
    let container: Container = serde_json::from_value(container).expect("a container");
    place(&container, &volumes)
}

fn mounted(mounts: &[(&str, &str)]) -> Value {
    let mount = |(name, path): &(&str, &str)| json!({"name": name, "mountPath": path});
    json!({"name": "search", "volumeMounts": mounts.iter().map(mount).collect::<Vec<_>>()})
}

#[test]
fn the_volume_counts_that_is_mounted_where_the_data_is() {
    use DataPlace::{Claim, Container, OtherVolume, Unknown};
    let elasticsearch = "/usr/share/elasticsearch/data";
    let rows: [(&[(&str, &str)], DataPlace); 14] = [
        (&[("claim", elasticsearch)], Claim),
        (&[("claim", "/usr/share/opensearch/data/")], Claim),
        (&[("claim", "/bitnami/opensearch")], Claim),
        (&[("claim", "/bitnami/elasticsearch/data")], Claim),
        (&[("claim", "/var/lib/elasticsearch")], Claim),
        (&[("other", elasticsearch)], OtherVolume),
        (&[("each", elasticsearch)], OtherVolume),
        // For snapshots.
        (&[("other", elasticsearch), ("claim", "/backup")], OtherVolume),
        (&[("claim", "/usr/share/elasticsearch"), ("other", elasticsearch)], OtherVolume),
        (&[("other", "/usr/share/elasticsearch"), ("claim", elasticsearch)], Claim),
        // By name alone.
        (&[("data", "/my/own"), ("claim", "/backup")], OtherVolume),
        (&[("claim", "/my/own")], Unknown),
        (&[("claim", "/usr/share/elasticsearch/database")], Unknown),
        (&[("other", "/tmp")], Container),
    ];
    for (mounts, expected) in rows {
        assert_eq!(place_of(mounted(mounts)), expected, "{mounts:?}");
    }
}

#[test]
fn a_path_that_the_pod_names_counts_alone() {
    let with = |field: &str, value: Value| {
        let mut container = mounted(&[
            ("other", "/usr/share/elasticsearch/data"),
            ("claim", "/one"),
            ("other", "/two"),
        ]);
        container[field] = value;
        place_of(container)
    };
    let variable = |value: &str| with("env", json!([{"name": "path.data", "value": value}]));
    assert_eq!(variable("/one"), DataPlace::Claim);
    assert_eq!(variable("/one/below"), DataPlace::Claim);
    assert_eq!(variable("/one, /two"), DataPlace::OtherVolume);
    assert_eq!(variable("/one,/three"), DataPlace::Container);
    assert_eq!(variable("$(SOMEWHERE)"), DataPlace::Unknown);
    assert_eq!(with("args", json!(["eswrapper", "-Epath.data=/one"])), DataPlace::Claim);
    assert_eq!(with("args", json!(["eswrapper", "-E", "path.data=/one"])), DataPlace::Claim);
    let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let elsewhere = with("env", json!([{"name": "path.data", "valueFrom": from}]));
    assert_eq!(elsewhere, DataPlace::Unknown);
}

#[test]
fn a_template_that_looks_for_the_data_somewhere_else_is_known() {
    let volumes = json!([
        {"name": "other", "emptyDir": {}},
        {"name": "named", "persistentVolumeClaim": {"claimName": "one"}},
    ]);
    let template = |mount: Value, env: Value| {
        let mounts = json!([mount, {"name": "backup", "mountPath": "/backup"}]);
        let container = json!({"name": "search", "env": env, "volumeMounts": mounts});
        json!({"spec": {"containers": [{"name": "proxy"}, container], "volumes": volumes}})
    };
    let at = |path: &str| json!({"name": "data", "mountPath": path});
    let setting = |value: &str| json!([{"name": "path.data", "value": value}]);
    let known = "/usr/share/elasticsearch/data";
    let within = |part: &str| json!({"name": "data", "mountPath": known, "subPath": part});
    let expanded = || json!({"name": "data", "mountPath": known, "subPathExpr": "$(DIR)"});
    let dir = |value: &str| json!([{"name": "DIR", "value": value}]);
    let rows = [
        (at(known), json!([]), at(known), json!([{"name": "LANG", "value": "C"}]), false),
        (at(known), json!([]), within("os"), json!([]), true),
        (within(""), json!([]), at("/usr/share/elasticsearch/data/"), json!([]), false),
        (at(known), json!([]), at("/usr/share/opensearch/data"), json!([]), true),
        (at(known), json!([]), at("/my/own"), json!([]), true),
        (at("/my/own"), json!([]), at("/my/other"), json!([]), true),
        (at(known), json!([]), at("/usr/share/elasticsearch"), json!([]), true),
        (at(known), json!([]), json!({"name": "named", "mountPath": known}), json!([]), true),
        (at("/a"), setting("/a/1"), at("/a"), setting("/a/2"), true),
        (at("/a"), setting("/a/1"), at("/b"), setting("/b/1"), false),
        (at(known), json!([]), at(known), setting(known), false),
        (at(known), json!([]), at(known), setting("/tmp"), true),
        (at("/a"), setting("/$(DIR)"), at("/a"), setting("/$(DIR)"), false),
        (at("/a"), setting("/$(DIR)"), at("/a"), setting("/$(OTHER)"), true),
        (expanded(), dir("a"), expanded(), dir("a"), false),
        (expanded(), dir("a"), expanded(), dir("b"), true),
    ];
    for (old, old_env, new, new_env, expected) in rows {
        let pair = [template(old, old_env), template(new, new_env)];
        let found = is_data_elsewhere([&pair[0], &pair[1]], "search");
        assert_eq!(found, expected, "{pair:?}");
    }
}
