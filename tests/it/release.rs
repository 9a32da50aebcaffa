//! `release/`: what a release says of itself is true. The programs here are small files; the whole is
//! made by `release/run`, and `release/reproduce` builds its programs again.

mod bill;
mod made;
mod small;

use std::fs;
use std::path::Path;

use serde_json::Value;

use small::root;

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test] // proves OPERATE-19
fn one_version_is_written_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, words) in [
        ("deploy/helm/stayput-reconciler/Chart.yaml", "\nversion: VERSION\n"),
        ("deploy/helm/stayput-reconciler/Chart.yaml", "\nappVersion: VERSION\n"),
        ("deploy/base/deployment.yaml", "image: stayput/reconciler:VERSION "),
        ("docker/elasticsearch/Dockerfile", "MANAGER=stayput/manager:VERSION\n"),
        ("docker/opensearch/Dockerfile", "MANAGER=stayput/manager:VERSION\n"),
        ("docker/manager.Dockerfile", "stayput/manager:VERSION "),
        ("docker/reconciler.Dockerfile", "stayput/reconciler:VERSION "),
        ("docs/first-ten-minutes.md", "`stayput/manager:VERSION`, `stayput/reconciler:VERSION`"),
        ("examples/kubernetes/eck.yaml", "image: stayput/manager:VERSION\n"),
        ("examples/kubernetes/patch.yaml", "image: stayput/manager:VERSION\n"),
        ("examples/kubernetes/pod.yaml", "image: stayput/manager:VERSION "),
        ("examples/kubernetes/statefulset.yaml", "image: stayput/manager:VERSION\n"),
        ("proto/openapi.yaml", "  version: VERSION\n"),
    ] {
        let words = words.replace("VERSION", version);
        assert!(read(file).contains(&words), "{file}: not {words:?}");
    }
}
