//! Whether a config differs from its sources in something that counts.

mod settings;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use stayput_pod_update::{IGNORE, SourceKind};

use super::*;
use crate::pods::Reading;
use stayput_kube_access::cluster::{ALLOW, SearchCluster};

/// The config is a Secret with all its keys, and of a ConfigMap one key at another path.
fn checked() -> Checked {
    let cluster = json!({
        "apiVersion": "stayput.dev/v1alpha1", "kind": "SearchCluster",
        "metadata": {"name": "logs"},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {"scheme": "http"},
            "manager": {"caSecret": "ca", "auth": {"jwtKeySecret": "key"}},
            "config": {"sources": [
                {"secret": "{pod}-config"},
                {"configMap": "words", "items": [{"key": "common", "path": "words/list.txt"}]},
            ]},
        },
    });
    let cluster: SearchCluster = serde_json::from_value(cluster).unwrap();
    cluster.check().unwrap()
}

fn pod() -> PodFacts {
    let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"});
    let pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
    PodFacts::of(&pod, &Reading::default()).unwrap()
}

/// The Secret with these keys, the ConfigMap with this text, and what is ignored of each.
fn read(
    secret: &[(&str, &str)],
    secret_ignore: &str,
    words: &str,
    words_ignore: &str,
) -> SourceReader {
    let mut reader = SourceReader::default();
    let mut add = |kind, name: &str, ignore: &str, data: &[(&str, &str)]| {
        let metadata: ObjectMeta =
            serde_json::from_value(json!({"annotations": {IGNORE: ignore}})).unwrap();
        let data = data.iter().map(|(key, text)| ((*key).to_owned(), text.as_bytes().to_vec()));
        let content = Content::of(&Object::new(metadata, data.collect()), &BTreeSet::new());
        let source = Source { kind, name: name.to_owned() };
        reader.known.insert(source, (Instant::now(), Ok(Some(content))));
    };
    add(SourceKind::Secret, "a-config", secret_ignore, secret);
    add(SourceKind::ConfigMap, "words", words_ignore, &[("common", words), ("not mounted", words)]);
    reader
}

/// The config that the engine runs on.
fn runs_on() -> Generation {
    let files = [("opensearch.yml", "1"), ("roles.yml", "1"), ("words/list.txt", "1")];
    let digest = |text: &str| ContentDigest::of(text.as_bytes()).to_string();
    let files = files.map(|(path, text)| (path.to_owned(), digest(text)));
    let formed = BTreeMap::new();
    Generation { checksum: Some("runs on".to_owned()), files: files.into(), formed }
}

fn is_alike(reader: &SourceReader) -> bool {
    !reader.alike(&checked(), &pod(), [runs_on()].iter()).is_empty()
}

const SAME: [(&str, &str); 2] = [("opensearch.yml", "1"), ("roles.yml", "1")];

#[test] // proves UPDATE-61
fn only_a_change_of_nothing_but_what_is_ignored_is_none() {
    let changed = [("opensearch.yml", "1"), ("roles.yml", "2")];
    let both = [("opensearch.yml", "2"), ("roles.yml", "2")];
    let added = [("opensearch.yml", "1"), ("roles.yml", "1"), ("users.yml", "1")];
    let removed = [("opensearch.yml", "1")];
    for (secret, secret_ignore, words, words_ignore, expected) in [
        (&changed[..], "true", "1", "", true),
        (&changed, "roles.yml", "1", "", true),
        (&changed, "other, roles.yml", "1", "", true),
        (&changed, "opensearch.yml", "1", "", false),
        (&changed, "", "1", "true", false),
        (&both, "roles.yml", "1", "", false),
        (&both, "true", "1", "", true),
        (&added, "users.yml", "1", "", true),
        (&added, "", "1", "", false),
        (&removed, "roles.yml", "1", "", true),
        (&removed, "opensearch.yml", "1", "", false),
        // The key counts, and not the path.
        (&SAME, "", "2", "common", true),
        (&SAME, "", "2", "words/list.txt", false),
        (&changed, "true", "2", "", false),
        (&changed, "true", "2", "true", true),
        // It is what the engine runs on.
        (&SAME, "true", "1", "true", false),
    ] {
        let reader = read(secret, secret_ignore, words, words_ignore);
        assert_eq!(
            is_alike(&reader),
            expected,
            "{secret:?} {secret_ignore:?}, {words} {words_ignore:?}"
        );
    }
}

#[test] // proves RESTART-128
fn the_first_masters_do_not_count_once_the_cluster_has_formed() {
    let digest = |text: &str| ContentDigest::of(text.as_bytes()).to_string();
    let first = "cluster:\n  initial_master_nodes:\n  - a\n  name: logs\n";
    let formed = "cluster:\n  name: logs\n";
    let other = "cluster:\n  name: other\n";
    for (runs, wanted, expected) in [
        (first, formed, true),
        (formed, first, true),
        (first, other, false),
        (formed, other, false),
    ] {
        let mut config = runs_on();
        let path = || "opensearch.yml".to_owned();
        config.files.insert(path(), digest(runs));
        let without = stayput_api::without_initial_masters(runs.as_bytes());
        let without = without.map(|text| ContentDigest::of(&text).to_string());
        config.formed.extend(without.map(|digest| (path(), digest)));
        let mut reader = read(&[("opensearch.yml", wanted), ("roles.yml", "1")], "", "1", "");
        let source = Source { kind: SourceKind::Secret, name: "a-config".into() };
        let data = [("opensearch.yml", wanted), ("roles.yml", "1")];
        let data = data.map(|(key, text)| (key.to_owned(), text.as_bytes().to_vec()));
        let object = Object::new(ObjectMeta::default(), data.into());
        let content = Content::of(&object, &BTreeSet::from(["opensearch.yml".to_owned()]));
        reader.known.insert(source, (Instant::now(), Ok(Some(content))));
        let alike = reader.alike(&checked(), &pod(), [config].iter());
        assert_eq!(!alike.is_empty(), expected, "{runs} -> {wanted}");
    }
}

#[test] // proves UPDATE-61
fn with_an_object_that_is_absent_or_cannot_be_read_nothing_is_known() {
    let mut reader = read(&[("opensearch.yml", "2"), ("roles.yml", "1")], "true", "1", "");
    assert!(is_alike(&reader));
    let words = Source { kind: SourceKind::ConfigMap, name: "words".into() };
    reader.known.insert(words, (Instant::now(), Ok(None)));
    assert!(!is_alike(&reader));
}

#[test] // proves ACCESS-17
fn a_secret_is_read_if_a_pod_mounts_it_or_it_allows_that() {
    let mounted_in = |volume: Value, variable: &str| {
        let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1"});
        let container = json!({"name": "search", "env": [{"name": variable, "value": "u"}]});
        let spec = json!({"containers": [container], "volumes": [volume]});
        let pod = json!({"metadata": metadata, "spec": spec});
        let pod = serde_json::from_value(pod).unwrap();
        [Arc::new(PodFacts::of(&pod, &Reading::default()).unwrap())]
    };
    let mounting = |volume: Value| mounted_in(volume, "STAYPUT_POD_UID");
    let other = mounting(json!({"name": "v", "secret": {"secretName": "other"}}));
    let own = mounting(json!({"name": "v", "secret": {"secretName": "a-config"}}));
    let projected = json!({"sources": [{"secret": {"name": "a-config"}}]});
    let projected = mounting(json!({"name": "v", "projected": projected}));
    let may = |kind, pods: &[Arc<PodFacts>], allow: &str| {
        let source = Source { kind, name: "a-config".to_owned() };
        let metadata = serde_json::from_value(json!({"annotations": {ALLOW: allow}})).unwrap();
        may_read(&source, &Object::new(metadata, BTreeMap::new()), pods, ("n", "logs"))
    };
    assert_eq!(may(SourceKind::Secret, &own, ""), Ok(()));
    let theirs = mounted_in(json!({"name": "v", "secret": {"secretName": "a-config"}}), "OTHER");
    assert!(may(SourceKind::Secret, &theirs, "").is_err(), "no manager runs in their pod");
    assert_eq!(may(SourceKind::Secret, &projected, ""), Ok(()));
    assert_eq!(may(SourceKind::Secret, &other, "metrics, logs"), Ok(()));
    assert_eq!(may(SourceKind::ConfigMap, &other, ""), Ok(()));
    let refused = may(SourceKind::Secret, &other, "metrics").unwrap_err().to_string();
    assert!(
        refused.ends_with(
            "kubectl -n n annotate --overwrite secret a-config stayput.dev/allow='metrics,logs'"
        ),
        "{refused}"
    );
}
