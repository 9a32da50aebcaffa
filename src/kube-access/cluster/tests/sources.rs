//! The checksum of a pod's config from its sources.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stayput_api::checksum::Checksum;
use stayput_pod_update::{MountedConfig, MountedPart, Source, SourceKind, mounted_config};

use crate::cluster::sources::{MissingSource, Sources};
use crate::cluster::tests::{read, with};

type Store = BTreeMap<Source, BTreeMap<String, Vec<u8>>>;

fn source(kind: SourceKind, name: &str) -> Source {
    Source { kind, name: name.into() }
}

fn content(files: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    files.iter().map(|(key, text)| ((*key).to_owned(), text.as_bytes().to_vec())).collect()
}

fn store() -> Store {
    let secret = content(&[("opensearch.yml", "a"), ("users.yml", "b"), ("node.crt", "c")]);
    let shared = content(&[("jvm.options", "d")]);
    BTreeMap::from([
        (source(SourceKind::Secret, "logs-0-config"), secret),
        (source(SourceKind::ConfigMap, "shared"), shared),
    ])
}

fn sources(config: Value) -> Sources {
    read(with("config", config)).check().unwrap().sources
}

fn checksum(sources: &Sources, store: &Store) -> Result<String, MissingSource> {
    sources.checksum("logs-0", |object| store.get(object)).map(|checksum| checksum.to_string())
}

fn of(files: &[(&str, &str)]) -> Result<String, MissingSource> {
    Ok(Checksum::of_contents(files.iter().copied()).to_string())
}

#[test]
fn every_key_is_a_file_and_the_pods_name_is_put_in() {
    let sources = sources(json!({"sources": [{"secret": "{pod}-config"}]}));
    assert_eq!(sources.objects("logs-0"), [source(SourceKind::Secret, "logs-0-config")]);
    assert_eq!(sources.objects("logs-1"), [source(SourceKind::Secret, "logs-1-config")]);
    assert_eq!(
        checksum(&sources, &store()),
        of(&[("opensearch.yml", "a"), ("users.yml", "b"), ("node.crt", "c")])
    );
}

#[test]
fn live_files_do_not_count() {
    let sources =
        sources(json!({"sources": [{"secret": "{pod}-config"}], "live": ["users*", "*.crt"]}));
    assert_eq!(checksum(&sources, &store()), of(&[("opensearch.yml", "a")]));
}

#[test]
fn a_star_does_not_match_a_slash_as_in_the_manager() {
    let config = json!({
        "sources": [{"secret": "{pod}-config", "items": [{"key": "node.crt", "path": "tls/node.crt"}]}],
        "live": ["*.crt"],
    });
    assert_eq!(checksum(&sources(config), &store()), of(&[("tls/node.crt", "c")]));
}

#[test]
fn items_choose_and_rename_and_directories_come_first() {
    let config = json!({"sources": [
        {
            "secret": "{pod}-config", "directory": "node",
            "items": [{"key": "opensearch.yml", "path": "conf/opensearch.yml"}],
        },
        {"configMap": "shared", "directory": "jvm"},
    ]});
    assert_eq!(
        checksum(&sources(config), &store()),
        of(&[("node/conf/opensearch.yml", "a"), ("jvm/jvm.options", "d")])
    );
}

#[test] // proves UPDATE-16
fn a_second_directory_that_a_pod_mounts_counts_under_its_name() {
    let template = json!({"spec": {
        "containers": [{
            "name": "search",
            "args": ["run", "--config=main=/config", "--config", "jvm=/jvm", "--", "search"],
            "volumeMounts": [
                {"name": "config", "mountPath": "/config"}, {"name": "jvm", "mountPath": "/jvm"},
            ],
        }],
        "volumes": [
            {"name": "config", "secret": {"secretName": "logs-0-config"}},
            {"name": "jvm", "configMap": {"name": "shared"}},
        ],
    }});
    let config = mounted_config(&template, "search").expect("they are found");
    let files = [
        ("main/opensearch.yml", "a"),
        ("main/users.yml", "b"),
        ("main/node.crt", "c"),
        ("jvm/jvm.options", "d"),
    ];
    assert_eq!(checksum(&Sources::found(config, &[]), &store()), of(&files));
}

#[test]
fn what_is_absent_is_named() {
    let secret = sources(json!({"sources": [{"secret": "{pod}-other"}]}));
    let message = checksum(&secret, &store()).unwrap_err().to_string();
    assert!(message.starts_with("Secret logs-0-other is absent"), "{message}");
    let key = sources(json!({"sources": [
        {"configMap": "shared", "items": [{"key": "log4j2.properties", "path": "l"}]},
    ]}));
    let message = checksum(&key, &store()).unwrap_err().to_string();
    assert!(message.starts_with("ConfigMap shared has no key log4j2.properties"), "{message}");
}

#[test]
fn what_is_found_in_a_pod_may_be_optional_and_brings_its_own_globs() {
    let part = |name: &str, key: &str| MountedPart {
        source: source(SourceKind::ConfigMap, name),
        items: vec![(key.to_owned(), key.to_owned())],
        directory: String::new(),
        optional: true,
    };
    let parts = vec![part("shared", "absent"), part("shared", "jvm.options"), part("absent", "a")];
    let found = |live: &str, spec: &[String]| {
        let config = MountedConfig { parts: parts.clone(), live: vec![live.to_owned()] };
        checksum(&Sources::found(config, spec), &store())
    };
    assert_eq!(found("*.crt", &[]), of(&[("jvm.options", "d")]));
    assert_eq!(found("jvm*", &[]), of(&[]));
    assert_eq!(found("*.crt", &["jvm*".to_owned()]), of(&[]));
}
