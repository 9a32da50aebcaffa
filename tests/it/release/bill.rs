//! What programs are built from.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::small::{built, script};
use super::{json, read};

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn sbom(program: &str) -> Value {
    json(&script("sbom", &[TARGET, program, built().to_str().unwrap()]))
}

/// Name and version of each component, with its checksum.
fn crates(sbom: &Value) -> BTreeMap<(String, String), Option<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let components = sbom["components"].as_array().unwrap().iter();
    components
        .map(|one| {
            let name = (text(&one["name"]).unwrap(), text(&one["version"]).unwrap());
            (name, text(&one["hashes"][0]["content"]))
        })
        .collect()
}

/// The same from `Cargo.lock`: all that can be reached from the members in it, by name.
fn locked(root: &str) -> BTreeSet<String> {
    let lock = read("Cargo.lock");
    let mut needs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]\nname = \"").skip(1) {
        let (name, rest) = package.split_once('"').unwrap();
        let list = rest.split_once("dependencies = [").map_or("", |(_, list)| list);
        // Of a crate that is there twice, both.
        needs.entry(name).or_default().extend(list.split('"').skip(1).step_by(2));
    }
    let mut found = BTreeSet::new();
    let mut open = vec![root];
    while let Some(one) = open.pop() {
        let name = one.split(' ').next().unwrap();
        if found.insert(name.to_owned()) {
            open.extend(&needs[name]);
        }
    }
    found
}

/// By another way: what our own crates ask for, and what can be reached from them in `Cargo.lock`.
#[test] // proves OPERATE-19
fn the_bill_names_every_crate_that_the_program_is_built_from() {
    // One feature of the root package brings both programs of the reconciler, and so both crates.
    for (program, crates_of_ours) in [
        ("stayput", &["stayput-manager"][..]),
        ("kubectl-stayput", &["stayput-controller", "stayput-kubectl"]),
    ] {
        let sbom = sbom(program);
        let crates = crates(&sbom);
        assert_eq!(sbom["metadata"]["component"]["name"], program);
        let names: BTreeSet<&str> = crates.keys().map(|(name, _)| name.as_str()).collect();
        assert!(names.len() > 50, "{program}: {names:?}");
        // Crates for other systems and for tests are in the lock file alone.
        let locked: BTreeSet<String> = crates_of_ours.iter().flat_map(|one| locked(one)).collect();
        let invented: Vec<_> = names.iter().filter(|name| !locked.contains(**name)).collect();
        assert!(invented.is_empty(), "{program}: not locked: {invented:?}");
        for direct in crates_of_ours.iter().flat_map(|one| direct(one)) {
            assert!(names.contains(direct.as_str()), "{program}: no {direct}");
        }
        assert!(crates_of_ours.iter().all(|one| names.contains(one)), "{program}: {names:?}");
    }
    let manager = crates(&sbom("stayput"));
    assert!(!manager.keys().any(|(name, _)| name == "kube"), "the manager has no client");
}

/// What `Cargo.toml` of a crate asks for, for itself.
fn direct(name: &str) -> Vec<String> {
    let folder = name.strip_prefix("stayput-").unwrap();
    let manifest = read(format!("src/{folder}/Cargo.toml"));
    let (_, rest) = manifest.split_once("\n[dependencies]\n").unwrap();
    let section = rest.split("\n[").next().unwrap();
    let names = section.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
    // It is used by another name.
    names.map(|name| if name == "webpki" { "rustls-webpki" } else { name }.to_owned()).collect()
}

/// Each component has the checksum in `Cargo.lock`, a licence, and an entry in the graph.
#[test] // proves OPERATE-19
fn each_component_is_the_locked_one() {
    let lock = read("Cargo.lock");
    let sbom = sbom("stayput");
    let graph = sbom["dependencies"].as_array().unwrap();
    let known: Vec<&Value> = graph.iter().map(|one| &one["ref"]).collect();
    for one in sbom["components"].as_array().unwrap() {
        assert!(known.contains(&&one["bom-ref"]), "{one}");
        let licence = one["licenses"][0]["expression"].as_str().unwrap();
        assert!(!licence.is_empty() && !licence.contains('/'), "{one}");
    }
    for ((name, version), checksum) in crates(&sbom) {
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        let (_, rest) = lock.split_once(&entry).unwrap_or_else(|| panic!("{name} {version}"));
        let package = rest.split("[[package]]").next().unwrap();
        match checksum {
            Some(checksum) => assert!(package.contains(&checksum), "{name}"),
            None => assert!(name.starts_with("stayput-") && !package.contains("checksum")),
        }
    }
}
