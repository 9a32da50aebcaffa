//! Where the data of engines is, and whether another template has it at the same place.

use super::*;
use serde_json::{Value, json};

use crate::pods::live::data::is_data_elsewhere;

fn place_of(mounts: &[(&str, &str)], directories: &[&str]) -> DataPlace {
    let volumes = json!([
        {"name": "claim", "persistentVolumeClaim": {"claimName": "claim-logs-0"}},
        {"name": "other", "emptyDir": {}},
        {"name": "each", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ]);
    let volumes: Vec<Volume> = serde_json::from_value(volumes).expect("volumes");
    let mount = |(name, path): &(&str, &str)| json!({"name": name, "mountPath": path});
    let mounted: Vec<Value> = mounts.iter().map(mount).collect();
    let container = json!({"name": "search", "volumeMounts": mounted});
    let container: Container = serde_json::from_value(container).expect("a container");
    let directories: Vec<String> = directories.iter().map(|one| (*one).to_owned()).collect();
    place(&super::mounts(&container, &volumes), &directories)
}

#[test] // proves RULE-7
fn the_volume_counts_that_is_mounted_where_the_engine_says_its_data_is() {
    use DataPlace::{Claim, Container, OtherVolume, Unknown};
    const IMAGE: &str = "/usr/share/elasticsearch/data";
    type Row = (&'static [(&'static str, &'static str)], &'static [&'static str], DataPlace);
    let rows: [Row; 13] = [
        (&[("claim", IMAGE)], &[IMAGE], Claim),
        (&[("claim", "/usr/share/elasticsearch/data/")], &[IMAGE], Claim),
        (&[("claim", "/bitnami/opensearch")], &["/bitnami/opensearch/data"], Claim),
        (&[("other", IMAGE)], &[IMAGE], OtherVolume),
        (&[("each", IMAGE)], &[IMAGE], OtherVolume),
        (&[("claim", "/usr/share/elasticsearch"), ("other", IMAGE)], &[IMAGE], OtherVolume),
        (&[("other", "/usr/share/elasticsearch"), ("claim", IMAGE)], &[IMAGE], Claim),
        (&[("claim", "/usr/share/elasticsearch/database")], &[IMAGE], Container),
        // The image's volume is left from before, and a variable or a file names another directory.
        (&[("claim", IMAGE), ("other", "/nvme")], &["/nvme/es"], OtherVolume),
        (&[("claim", "/snapshots")], &["/nvme/es"], Container),
        (&[("claim", "/one"), ("other", "/two")], &["/one", "/two/data"], OtherVolume),
        (&[("claim", "/one"), ("other", "/two")], &["/one", "/three"], Container),
        (&[("claim", IMAGE)], &[], Unknown),
    ];
    for (mounts, directories, expected) in rows {
        assert_eq!(place_of(mounts, directories), expected, "{mounts:?} {directories:?}");
    }
}

#[test] // proves RULE-6
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
    let variable = |name: &str, value: &str| json!([{"name": name, "value": value}]);
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
        (at(known), json!([]), at(known), variable("ES_SETTING_PATH_DATA", "/tmp"), true),
        (at(known), json!([]), at(known), variable("ES_SETTING_PATH_DATA", known), false),
        (at(known), variable("OPENSEARCH_DATA_DIR_LIST", known), at(known), json!([]), false),
        (at(known), json!([]), at(known), variable("ELASTICSEARCH_DATA_DIR_LIST", "/a;/b"), true),
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
        let mounted = pair[0]["spec"]["containers"][1]["volumeMounts"][0]["mountPath"].clone();
        let directories = [mounted.as_str().expect("a path").to_owned()];
        let found = is_data_elsewhere([&pair[0], &pair[1]], "search", &directories);
        assert_eq!(found, expected, "{pair:?}");
    }
}

#[test] // proves RULE-7
fn a_script_that_names_the_data_may_name_another_place() {
    let template = |script: &str| {
        let container = json!({"name": "search", "args": ["sh", "-c", script]});
        json!({"spec": {"containers": [container]}})
    };
    let rows = [
        ("opensearch -Epath.data=/x", "opensearch -Epath.data=/x", false),
        ("opensearch -Epath.data=/x", "opensearch -Epath.data=/y", true),
        ("opensearch", "opensearch -Epath.data=/y", true),
    ];
    for (old, new, expected) in rows {
        let [old, new] = [old, new].map(template);
        let found = is_data_elsewhere([&old, &new], "search", &["/x".to_owned()]);
        assert_eq!(found, expected, "{old} {new}");
    }
}
