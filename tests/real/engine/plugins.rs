//! Plugins by a file of the config, which Elasticsearch's official images follow before each start.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::{on_engine, step};
use crate::support::engine::Node;
use crate::support::skip;

const LIST: &str = "elasticsearch-plugins.yml";
const PLUGIN: &str = "stayput-node-shutdown";

on_engine!(elasticsearch, Elasticsearch, [a_list_of_plugins_is_a_file_of_the_config]);

// proves CONFIG-4
fn a_list_of_plugins_is_a_file_of_the_config(mut node: Node) {
    let Some(archive) = archive(node.work()) else {
        let name = "engine::plugins::elasticsearch::a_list_of_plugins_is_a_file_of_the_config";
        return skip(name, "no Elasticsearch with a plugin");
    };
    node.as_official_image();
    let list = |id: &str, archive: &Path| {
        format!("plugins:\n  - id: {id}\n    location: file://{}\n", archive.display())
    };
    let with = list(PLUGIN, &archive);
    let good = node.swap_with("", &[(LIST, &with)]);
    let manager = node.launch().start();
    assert_eq!(manager.api.until_ready()["run"]["checksum"], json!(good));
    assert_eq!(plugins(&node), [PLUGIN]);
    manager.api.status_when("the good config is kept", |s| s["config"]["last_good"] == good);
    manager.api.stop();

    step("a plugin that cannot be had: held, and the last good config has its plugin again");
    let without = list("absent", &archive.with_file_name("absent.zip"));
    let bad = node.swap_with("", &[(LIST, &without)]);
    let answer = manager.api.post("/es/start?wait=5m", &json!({ "checksum": bad }));
    answer.expect_problem(503, "start_failed");
    manager.api.start(&json!({ "config": "last_good" }));
    assert_eq!(plugins(&node), [PLUGIN]);
    manager.api.stop();

    step("a shorter list removes it");
    let none = node.swap_with("", &[(LIST, "plugins: []\n")]);
    manager.api.start(&json!({ "checksum": none }));
    assert_eq!(plugins(&node), [] as [&str; 0]);
}

/// The archive of a plugin, made from the one that `tests/parts/elasticsearch-shutdown` has built.
fn archive(work: &Path) -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("STAYPUT_ELASTICSEARCH_SHUTDOWN_HOME")?);
    let built = home.join("modules").join(PLUGIN);
    let archive = work.join("plugin.zip");
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c"]).arg(&archive);
    zip.arg(built.join("node-shutdown.jar")).arg(built.join("plugin-descriptor.properties"));
    assert!(zip.status().expect("python3 runs").success());
    Some(archive)
}

fn plugins(node: &Node) -> Vec<String> {
    let list = node.rest("GET", "/_cat/plugins?format=json", None).expect(200);
    let list = list.as_array().expect("a list").iter();
    list.map(|one| one["component"].as_str().expect("a name").to_owned()).collect()
}
