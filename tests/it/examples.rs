//! Every `stayput run` in `examples/kubernetes`, and in what `inject` writes, is a valid command line.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use serde_json::Value;
use stayput_declare::{Kind, Observed};
use stayput_kube_access::cluster::SearchCluster;
use stayput_manager::settings::{self, Environment, RunArgs, Settings};
use stayput_manager::supervisor::Probe;

use crate::support;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kubernetes")
}

/// The YAML of a manifest.
fn yaml(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// The manifests of pods that people take as they are.
const PODS: [&str; 6] = [
    "pod.yaml",
    "statefulset.yaml",
    "patch.yaml",
    "declared-laptop.yaml",
    "declared-tiers.yaml",
    "declared-zones.yaml",
];

/// The declared clusters: the reconciler makes the pods.
const DECLARED: [&str; 3] = ["declared-laptop.yaml", "declared-tiers.yaml", "declared-zones.yaml"];

/// The StatefulSets of a declared cluster, as the reconciler makes them.
fn stateful_sets(file: &str) -> Vec<Value> {
    let manifest = support::yaml::documents(&yaml(&folder().join(file)));
    let [declared] = &manifest[..] else { panic!("{file}: more than one object") };
    let cluster: SearchCluster = serde_json::from_value(declared.clone()).unwrap();
    cluster.check().unwrap_or_else(|problems| panic!("{file}: {problems:#?}"));
    let declaration = cluster.declaration("stayput:stayput-reconciler").unwrap();
    let plan = stayput_declare::plan(&declaration, &Observed::default()).unwrap();
    let sets = plan.objects.iter().filter(|object| object.kind == Kind::StatefulSet);
    sets.map(|set| set.body.clone()).collect()
}

fn documents(file: &str) -> Vec<Value> {
    if DECLARED.contains(&file) {
        return stateful_sets(file);
    }
    support::yaml::documents(&yaml(&folder().join(file)))
}

/// Every container that runs the manager, anywhere in the documents. Anchors are resolved.
fn containers(documents: &[Value]) -> Vec<&Value> {
    let mut found = Vec::new();
    documents.iter().for_each(|document| find_containers(document, &mut found));
    found
}

fn find_containers<'a>(yaml: &'a Value, found: &mut Vec<&'a Value>) {
    match yaml {
        Value::Object(hash) => {
            if words(&yaml["command"]).get(1).is_some_and(|word| word == "run") {
                found.push(yaml);
            }
            hash.values().for_each(|value| find_containers(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| find_containers(item, found)),
        _ => {}
    }
}

fn words(yaml: &Value) -> Vec<String> {
    let items = yaml.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().expect("a string").to_owned()).collect()
}

/// The environment that the kubelet would set, with sample values for fields of the pod.
fn variables(container: &Value) -> Vec<(OsString, OsString)> {
    let items = container["env"].as_array().map(Vec::as_slice).unwrap_or_default();
    let value = |item: &Value| match item["valueFrom"]["fieldRef"]["fieldPath"].as_str() {
        None if item["valueFrom"]["configMapKeyRef"]["key"].as_str() == Some("issuer") => {
            "https://kubernetes.default.svc.cluster.local".to_owned()
        }
        None if item["valueFrom"]["configMapKeyRef"]["key"].as_str()
            == Some("INITIAL_MASTER_NODES") =>
        {
            "logs-masters-0".to_owned()
        }
        None => item["value"].as_str().expect("a value is a string").to_owned(),
        Some("metadata.namespace") => "search".to_owned(),
        Some("metadata.name") => "logs-0".to_owned(),
        Some("status.podIP") => "10.1.0.7".to_owned(),
        Some("metadata.uid") => "0b4a1f6e-8e5c-4c1e-9a55-2f1f0c9d1b7a".to_owned(),
        Some(other) => panic!("no sample for {other}"),
    };
    items.iter().map(|item| (item["name"].as_str().unwrap().into(), value(item).into())).collect()
}

fn read(container: &Value) -> Result<Settings, Vec<String>> {
    let mut line = words(&container["command"]);
    line.extend(words(&container["args"]));
    let command = RunArgs::augment_args(Command::new("run"));
    let matches =
        command.try_get_matches_from(&line[1..]).map_err(|error| vec![error.to_string()])?;
    settings::read(&matches, &Environment::new(variables(container)), false)
}

#[test] // proves DECLARE-39
fn every_run_in_the_manifests_is_taken_as_it_stands() {
    for (file, expected) in [
        ("pod.yaml", 1),
        ("statefulset.yaml", 1),
        ("patch.yaml", 1),
        ("eck.yaml", 1),
        ("declared-laptop.yaml", 1),
        ("declared-tiers.yaml", 3),
        ("declared-zones.yaml", 3),
    ] {
        let documents = documents(file);
        let found = containers(&documents);
        assert_eq!(found.len(), expected, "{file}");
        for container in found {
            let settings =
                read(container).unwrap_or_else(|problems| panic!("{file}: {problems:#?}"));
            assert_eq!(settings.warnings, Vec::<String>::new(), "{file}");
            assert!(!settings.command.is_empty() && settings.policy.api, "{file}");
        }
    }
    // All manifests are covered.
    let yamls = fs::read_dir(folder()).unwrap().filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "yaml")
    });
    assert_eq!(yamls.count(), 7);
}

#[test] // proves MANIFEST-8, MANIFEST-9, MANIFEST-21
fn every_run_that_inject_writes_is_taken_as_it_stands() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/inject/tests/manifests");
    let injected = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        support::yaml::documents(&text)
    };
    for (name, expected) in [
        ("hand-written.yaml.injected", 1),
        ("opensearch-chart.yaml.injected", 1),
        ("elasticsearch-chart.yaml.injected", 1),
        ("elasticsearch-chart.yaml.secured", 1),
        ("list.json.injected", 1),
        ("eck.yaml.injected", 2),
        ("eck-7.yaml.injected", 1),
    ] {
        let documents = injected(name);
        let found = containers(&documents);
        assert_eq!(found.len(), expected, "{name}");
        for container in found {
            let settings = read(container).unwrap_or_else(|found| panic!("{name}: {found:#?}"));
            assert_eq!(settings.warnings, Vec::<String>::new(), "{name}");
        }
    }
    for name in ["opensearch-cluster.yaml.injected", "opensearch-cluster-3.yaml.secured"] {
        let spec = &injected(name)[0]["spec"];
        let line = spec["general"]["command"].as_str().unwrap();
        let line = line.strip_prefix("exec /stayput/stayput ").unwrap().split_whitespace();
        let command = RunArgs::augment_args(Command::new("run"));
        let matches = command.try_get_matches_from(line).unwrap();
        for pool in spec["nodePools"].as_array().unwrap() {
            let read = settings::read(&matches, &Environment::new(variables(pool)), false);
            assert_eq!(read.unwrap().warnings, Vec::<String>::new());
        }
    }
    // Behind a script that installs plugins.
    let pod = &injected("opensearch-chart-3.yaml.injected")[1]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let script = container["command"][2].as_str().unwrap();
    let line = script.lines().last().unwrap().strip_prefix("exec /stayput/stayput ").unwrap();
    let command = RunArgs::augment_args(Command::new("run"));
    let matches = command.try_get_matches_from(line.split_whitespace()).unwrap();
    let read = settings::read(&matches, &Environment::new(variables(container)), false);
    assert_eq!(read.unwrap().warnings, Vec::<String>::new());
}

/// `inject` names variables that the manager does not know.
#[test] // proves MANIFEST-19
fn inject_knows_every_variable_of_the_manager() {
    let command = RunArgs::augment_args(Command::new("run"));
    let options = command.get_arguments().filter_map(|option| option.get_long());
    let of_options = options
        .map(|option| format!("STAYPUT_{}", option.to_uppercase().replace('-', "_")))
        .filter(|variable| variable != "STAYPUT_HELP");
    let others =
        ["CA", "CERT", "KEY", "TOKEN_FILE", "POD_NAME", "POD_NAMESPACE", "POD_UID"].into_iter();
    let mut all: Vec<String> =
        of_options.chain(others.map(|name| format!("STAYPUT_{name}"))).collect();
    all.sort();
    assert_eq!(all, stayput_inject::VARIABLES);
}

/// The files that the manager opens to ask a secured engine are where the Secrets are mounted.
#[test] // proves MANIFEST-9
fn the_manager_finds_the_secrets_that_inject_mounts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/inject/tests/manifests");
    for name in ["elasticsearch-chart.yaml.secured", "eck-7.yaml.injected"] {
        let documents = support::yaml::documents(&yaml(&folder.join(name)));
        let container = containers(&documents)[0];
        let Some(Probe::Http { address, tls, ca, auth, .. }) = read(container).unwrap().ready
        else {
            panic!("{name}: no call of the engine");
        };
        assert_eq!((address.as_str(), tls), ("127.0.0.1:9200", true), "{name}");
        let mounts = container["volumeMounts"].as_array().unwrap();
        let is_mounted =
            |path: &Path| mounts.iter().any(|mount| mount["mountPath"].as_str() == path.to_str());
        assert!(is_mounted(&auth.unwrap()), "{name}: the directory of the Secret");
        let ca = ca.unwrap();
        assert!(is_mounted(ca.parent().unwrap()) && ca.ends_with("ca.crt"), "{name}");
    }
}

/// What the comments of the images' Dockerfiles say to set is enough.
#[test]
fn the_variables_that_the_images_name_are_enough() {
    let value = |name: &str| match name {
        "STAYPUT_ALLOW_SUBJECT" | "STAYPUT_ALLOW_CLIENT" => "reconciler=es:read es:control",
        "STAYPUT_LISTEN" => ":9199",
        _ => "/file",
    };
    for image in ["opensearch", "elasticsearch"] {
        let at = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker").join(image);
        let text = yaml(&at.join("Dockerfile"));
        let sets = text.lines().filter(|line| line.starts_with("#   ") && line.contains("STAYPUT"));
        let names = |line: &'_ str| -> Vec<String> {
            line.split(' ').filter(|word| word.starts_with("STAYPUT")).map(str::to_owned).collect()
        };
        let sets: Vec<Vec<String>> = sets.map(names).collect();
        let (always, ways) = sets.split_first().unwrap();
        assert_eq!(ways.len(), 3, "{image}");
        for way in ways {
            let image = ["STAYPUT_LISTEN", "STAYPUT_STATE_DIR"].map(str::to_owned);
            let all = image.iter().chain(always).chain(way);
            let environment = all.map(|name| (name.into(), value(name).into()));
            let command = RunArgs::augment_args(Command::new("run"));
            let matches = command.try_get_matches_from(["run", "--", "engine"]).unwrap();
            let read = settings::read(&matches, &Environment::new(environment), false);
            assert_eq!(read.unwrap().warnings, Vec::<String>::new(), "{way:?}");
        }
    }
}

/// `exec` would fail at the pids limit, and a probe of the engine while the engine is stopped.
#[test]
fn liveness_is_asked_of_the_manager_over_http_and_given_a_minute() {
    for file in PODS {
        let documents = documents(file);
        let container = &containers(&documents)[0];
        let probe = &container["livenessProbe"];
        assert_eq!(probe["httpGet"]["path"].as_str(), Some("/livez"), "{file}");
        let seconds = |name: &str| probe[name].as_i64().unwrap_or_default();
        assert!(seconds("timeoutSeconds") >= 5, "{file}");
        assert!(seconds("periodSeconds") * seconds("failureThreshold") >= 60, "{file}");
    }
}

/// What the rules for a node that comes back need, and an engine that can write beside its config.
#[test] // proves RESTART-4
fn pods_stage_their_config_keep_the_last_good_one_and_come_back_on_it() {
    for file in PODS {
        let documents = documents(file);
        let container = &containers(&documents)[0];
        let settings = read(container).unwrap_or_else(|problems| panic!("{file}: {problems:#?}"));
        let config = &settings.config;
        assert!(config.all_staged() && config.keep_last_good.is_some(), "{file}");
        assert!(settings.policy.pin_config, "{file}");
        let mounts = container["volumeMounts"].as_array().unwrap();
        for stage in &config.stage {
            // A volume that the kubelet keeps read-only, or a single file of one.
            let below = mounts.iter().filter(|mount| {
                let at = Path::new(mount["mountPath"].as_str().unwrap());
                at.starts_with(&stage.target) && mount["$patch"].as_str() != Some("delete")
            });
            let read_only = |mount: &&Value| {
                mount["readOnly"].as_bool() == Some(true) || !mount["subPath"].is_null()
            };
            assert_eq!(below.filter(read_only).count(), 0, "{file}");
        }
    }
}

/// Images of the init containers that have this volume mounted, and the words they run.
fn fillers<'a>(pod: &'a Value, volume: &str) -> Vec<(&'a str, Vec<String>)> {
    let containers = pod["initContainers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has_it = |one: &&Value| {
        let mounts = one["volumeMounts"].as_array().map(Vec::as_slice).unwrap_or_default();
        mounts.iter().any(|mount| mount["name"].as_str() == Some(volume))
    };
    let found = containers.iter().filter(has_it);
    found.map(|one| (one["image"].as_str().unwrap(), words(&one["command"]))).collect()
}

/// An empty volume over the engine's config directory hides `jvm.options` of the image, without which
/// no engine starts.
#[test]
fn a_volume_over_the_engines_config_is_filled_with_the_images_files() {
    for (file, at) in [("pod.yaml", "spec"), ("statefulset.yaml", "template")] {
        let documents = documents(file);
        let last = &documents.last().unwrap()["spec"];
        let pod = if at == "spec" { last } else { &last[at]["spec"] };
        let container = containers(&documents)[0];
        let settings = read(container).unwrap();
        let mounts = container["volumeMounts"].as_array().unwrap();
        for stage in &settings.config.stage {
            let target = stage.target.to_str().unwrap();
            let mount = mounts.iter().find(|one| one["mountPath"].as_str() == Some(target));
            let volume = mount.unwrap()["name"].as_str().unwrap();
            let (image, command) =
                fillers(pod, volume).into_iter().next().expect("something fills it");
            assert_eq!(Some(image), container["image"].as_str(), "{file}");
            let from = format!("{target}/.");
            assert_eq!(command, ["cp", "-R", &from, "/engine-config/"], "{file}");
        }
    }
}

/// It is not the same in all clusters.
#[test]
fn who_issues_tokens_is_taken_from_where_the_keys_are() {
    for file in PODS.into_iter().chain(["eck.yaml"]) {
        let documents = documents(file);
        for container in containers(&documents) {
            let issuer = container["env"].as_array().unwrap().iter();
            let issuer = issuer.filter(|one| one["name"].as_str() == Some("STAYPUT_JWT_ISSUER"));
            let names: Vec<_> =
                issuer.map(|one| one["valueFrom"]["configMapKeyRef"]["name"].as_str()).collect();
            assert_eq!(names, [Some("cluster-jwks")], "{file}");
        }
    }
}

/// A pod that is about to stop gets no more requests after one failed probe.
#[test] // proves RESTART-4, MANIFEST-11
fn readiness_is_asked_every_second_and_fails_at_once() {
    for file in PODS.into_iter().chain(["eck.yaml"]) {
        let documents = documents(file);
        let container = &containers(&documents)[0];
        let probe = &container["readinessProbe"];
        assert_eq!(probe["httpGet"]["path"].as_str(), Some("/readyz"), "{file}");
        assert_eq!(probe["periodSeconds"].as_i64(), Some(1), "{file}");
        assert_eq!(probe["failureThreshold"].as_i64(), Some(1), "{file}");
    }
}

/// The image is the one that its Dockerfile says how to build.
#[test] // proves RESTART-4
fn the_managers_image_has_one_name() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker/manager.Dockerfile");
    let built = fs::read_to_string(built).unwrap();
    let name = built.split(" -t ").nth(1).unwrap().split_whitespace().next().unwrap();
    for set in DECLARED.into_iter().flat_map(stateful_sets) {
        let init = &set["spec"]["template"]["spec"]["initContainers"][0];
        assert_eq!(init["image"].as_str(), Some(name));
    }
    for file in ["pod.yaml", "statefulset.yaml", "patch.yaml", "eck.yaml"] {
        let text = yaml(&folder().join(file));
        let used: Vec<&str> = text
            .split("image: ")
            .skip(1)
            .filter_map(|rest| rest.split_whitespace().next())
            .filter(|image| image.contains("stayput"))
            .collect();
        assert_eq!(used, [name], "{file}");
    }
}

#[test]
fn a_mistake_in_a_manifest_would_be_found() {
    let text = yaml(&folder().join("statefulset.yaml"));
    for (from, to) in [
        ("value: \"true\"", "value: \"yes\""),
        ("STAYPUT_STATE_DIR", "STAYPUT_STATE_DIRECTORY"),
        ("- run\n", "- run\n            - --no-such-option\n"),
    ] {
        let broken = text.replace(from, to);
        assert_ne!(broken, text, "{from}");
        let documents = support::yaml::documents(&broken);
        assert!(read(containers(&documents)[0]).is_err(), "{to}");
    }
}
