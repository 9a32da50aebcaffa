//! What `release/pack` makes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::small::{COMMIT, URL, packed, release};
use super::{json, read};
use crate::support::yaml::documents;

/// Each file by its name.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|one| (one.file_name().into_string().unwrap(), fs::read(one.path()).unwrap()))
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a program in the folder of the release.
fn run(release: &TempDir, program: &str, words: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(words).current_dir(release.path().join("release")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn versioned(name: &str) -> String {
    name.replace("VERSION", env!("CARGO_PKG_VERSION"))
}

#[test] // proves OPERATE-19
fn the_same_input_makes_the_same_bytes() {
    let release = release();
    packed(release.path(), "again");
    let first = files(&release.path().join("release"));
    assert!(first.len() > 15, "{:?}", first.keys());
    assert_eq!(first, files(&release.path().join("again")));
}

/// Sums and provenance name every file, with the digest that it has.
#[test] // proves OPERATE-19
fn every_digest_is_that_of_its_file() {
    let release = release();
    run(&release, "sha256sum", &["--check", "--strict", "--quiet", "SHA256SUMS"]);
    let mut files = files(&release.path().join("release"));
    let sums = String::from_utf8(files.remove("SHA256SUMS").unwrap()).unwrap();
    let names: Vec<&str> = sums.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(names, files.keys().collect::<Vec<_>>());
    let statement =
        json(&String::from_utf8(files.remove("provenance.intoto.json").unwrap()).unwrap());
    let subjects: Vec<(&str, &str)> = statement["subject"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["digest"]["sha256"].as_str().unwrap()))
        .collect();
    let digests: Vec<String> = files.values().map(|bytes| sha256(bytes)).collect();
    let wanted: Vec<(&str, &str)> =
        files.keys().map(String::as_str).zip(digests.iter().map(String::as_str)).collect();
    assert_eq!(subjects, wanted);
    let definition = &statement["predicate"]["buildDefinition"];
    assert_eq!(definition["resolvedDependencies"][0]["digest"]["gitCommit"], COMMIT);
    let lock = sha256(read("Cargo.lock").as_bytes());
    assert_eq!(definition["resolvedDependencies"][1]["digest"]["sha256"], *lock);
    let builder = &statement["predicate"]["runDetails"]["builder"];
    assert_eq!(builder["version"]["rustc"], "1.2.3 (of a test)");
}

#[test] // proves OPERATE-19
fn archives_have_program_licence_pages_and_completion() {
    let release = release();
    let list = |program: &str| {
        let name = versioned(&format!("{program}-VERSION-linux-arm64.tar.gz"));
        let listed = run(&release, "tar", &["-tzf", &name]);
        listed.lines().filter(|name| !name.ends_with('/')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list("stayput"), ["./LICENSE", "./man/stayput-run.1", "./stayput"]);
    let reconciler = ["./LICENSE", "./man/stayput-reconciler-run.1", "./stayput-reconciler"];
    assert_eq!(list("stayput-reconciler"), reconciler);
    let kubectl = [
        "./LICENSE",
        "./completion/kubectl-stayput.bash",
        "./kubectl-stayput",
        "./man/kubectl-stayput-why.1",
    ];
    assert_eq!(list("kubectl-stayput"), kubectl);
    let name = versioned("kubectl-stayput-VERSION-linux-arm64.tar.gz");
    let words = ["-xzOf", &name, "./kubectl-stayput"];
    assert_eq!(run(&release, "tar", &words), "#!/bin/sh\necho kubectl-stayput for arm64\n");
}

/// krew takes nothing else.
#[test] // proves OPERATE-19
fn archives_have_regular_files_and_folders_only() {
    let release = release();
    let mut archives = 0;
    for name in files(&release.path().join("release")).into_keys() {
        if !name.ends_with(".tar.gz") {
            continue;
        }
        let listed = run(&release, "tar", &["-tvzf", &name]);
        for line in listed.lines() {
            assert!(line.starts_with(['-', 'd']), "{name}: {line}");
        }
        archives += 1;
    }
    assert_eq!(archives, 6);
}

/// Each image is whole: every blob has its digest and size, and each architecture its program.
#[test] // proves OPERATE-19
fn images_have_a_program_for_each_architecture() {
    let release = release();
    for (image, program, user) in
        [("manager", "stayput", None), ("reconciler", "stayput-reconciler", Some("65532:65532"))]
    {
        let directory = tempfile::tempdir().unwrap();
        let name = versioned(&format!("{image}-VERSION.oci.tar"));
        run(&release, "tar", &["-xf", &name, "-C", directory.path().to_str().unwrap()]);
        let blob = |described: &Value| {
            let digest = described["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = fs::read(directory.path().join("blobs/sha256").join(digest)).unwrap();
            assert_eq!((sha256(&bytes).as_str(), bytes.len()), (digest, size(described)));
            bytes
        };
        let part = |described: &Value| json(&String::from_utf8(blob(described)).unwrap());
        let top = json(&fs::read_to_string(directory.path().join("index.json")).unwrap());
        let described = &top["manifests"][0];
        let line = versioned(&format!("stayput/{image}:VERSION@"));
        let line = line + described["digest"].as_str().unwrap();
        let images =
            String::from_utf8(files(&release.path().join("release"))["images.txt"].clone());
        assert!(images.unwrap().lines().any(|one| one == line), "{line}");
        let index = part(described);
        let mut found = Vec::new();
        for manifest in index["manifests"].as_array().unwrap() {
            let arch = manifest["platform"]["architecture"].as_str().unwrap();
            let manifest = part(manifest);
            let config = part(&manifest["config"]);
            assert_eq!(config["architecture"], arch);
            assert_eq!(config["config"]["User"].as_str(), user);
            assert_eq!(config["config"]["Entrypoint"][0], format!("/{program}"));
            let layer = blob(&manifest["layers"][0]);
            assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
            let content = format!("{program} for {arch}");
            let text = String::from_utf8_lossy(&layer);
            assert!(text.starts_with(&format!("{program}\0")) && text.contains(&content));
            found.push(arch.to_owned());
        }
        assert_eq!(found, ["amd64", "arm64"]);
    }
}

fn size(described: &Value) -> usize {
    usize::try_from(described["size"].as_u64().unwrap()).unwrap()
}

/// Where people install from: the archives and the image of this release, by their digests.
#[test] // proves OPERATE-19
fn krew_and_chart_name_the_files_of_the_release() {
    let release = release();
    let files = files(&release.path().join("release"));
    let manifest = String::from_utf8(files["krew-stayput.yaml"].clone()).unwrap();
    assert!(!manifest.replace("v@", "").contains('@'), "{manifest}");
    let [plugin] = documents(&manifest).try_into().unwrap();
    assert_eq!(plugin["spec"]["version"], versioned("vVERSION"));
    for platform in plugin["spec"]["platforms"].as_array().unwrap() {
        let (url, name) = platform["uri"].as_str().unwrap().rsplit_once('/').unwrap();
        assert_eq!(url, URL);
        assert_eq!(platform["sha256"], *sha256(&files[name]), "{name}");
    }
    let chart = versioned("stayput-reconciler-chart-VERSION.tgz");
    let values = "stayput-reconciler/values.yaml";
    let [values] = documents(&run(&release, "tar", &["-xzOf", &chart, values])).try_into().unwrap();
    let images = String::from_utf8(files["images.txt"].clone()).unwrap();
    let (repository, tag) = (&values["image"]["repository"], &values["image"]["tag"]);
    let image = format!("{}:{}", repository.as_str().unwrap(), tag.as_str().unwrap());
    assert!(images.lines().any(|line| line == image), "{image}\n{images}");
}
