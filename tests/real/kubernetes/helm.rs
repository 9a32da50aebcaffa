//! Image and chart of a release, installed by Helm: the reconciler's pods run and work; then more rights,
//! then it is gone. And `kubectl stayput inject` as a post-renderer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tempfile::TempDir;

use crate::support::kubernetes::apiserver::part;
use crate::support::kubernetes::cluster::Cluster;
use crate::support::kubernetes::kubectl::Kubectl;
use crate::support::release;
use crate::support::shell::Shell;
use crate::support::wait::eventually;

/// A release with this reconciler.
fn release(reconciler: &Path) -> TempDir {
    let directory = release::release();
    let program = directory.path().join("work/amd64/stayput-reconciler");
    fs::copy(reconciler, program).expect("a copy");
    release::packed(directory.path(), "real");
    directory
}

/// The nodes have the image by its tag and, as if they had pulled it, by its digest.
fn load(cluster: &Cluster, release: &Path) {
    let tar = concat!("reconciler-", env!("CARGO_PKG_VERSION"), ".oci.tar");
    cluster.images.import(&release.join(tar));
    let images = fs::read_to_string(release.join("images.txt")).expect("a file");
    let line = images.lines().find(|line| line.starts_with("stayput/reconciler:"));
    let (name, digest) = line.and_then(|line| line.split_once('@')).expect("a digest");
    let (repository, _) = name.split_once(':').expect("a tag");
    let name = format!("docker.io/{name}");
    cluster.images.tag(&name, &format!("docker.io/{repository}@{digest}"));
}

struct Helm<'a> {
    program: PathBuf,
    cluster: &'a Cluster,
}

impl Helm<'_> {
    #[track_caller]
    fn run(&self, command: &str, options: &[&str]) {
        let home = self.cluster.api.directory();
        let output = Command::new(&self.program)
            .args([command, "stayput", "--namespace", "stayput", "--wait", "--timeout", "2m"])
            .args(options)
            .env_clear()
            .env("HOME", home)
            .env("KUBECONFIG", self.cluster.api.admin().kubeconfig())
            .output()
            .expect("Helm can be executed");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{command}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

/// `Err` names what is missing here.
pub(super) fn installed_and_removed(cluster: &Cluster) -> Result<(), String> {
    let helm = Helm { program: part("STAYPUT_HELM")?, cluster };
    let program = part("STAYPUT_STATIC_RECONCILER_BIN")?;
    let began = Instant::now();
    let directory = release(&program);
    let release = directory.path().join("real");
    load(cluster, &release);
    let chart = concat!("stayput-reconciler-chart-", env!("CARGO_PKG_VERSION"), ".tgz");
    let chart = release.join(chart);
    let chart = chart.to_str().expect("UTF-8");
    let never = ["--set", "image.pullPolicy=Never"];
    let admin = cluster.api.admin();

    // It waits until both pods are ready.
    helm.run("install", &[&[chart, "--create-namespace"][..], &never].concat());
    let lease = ["get", "lease", "stayput-reconciler", "--namespace", "stayput", "--output"];
    let holder = eventually("one of them works", || {
        let holder =
            admin.attempt(&[&lease[..], &["jsonpath={.spec.holderIdentity}"]].concat(), "");
        holder.ok().filter(|holder| !holder.is_empty())
    });
    assert!(holder.starts_with("stayput-reconciler-"), "{holder}");
    let may = |verb: &str, what: &str| {
        let account = "--as=system:serviceaccount:stayput:stayput-reconciler";
        admin.attempt(&["auth", "can-i", verb, what, "--namespace", "search", account], "").is_ok()
    };
    assert!(may("watch", "searchclusters.stayput.dev"), "it finds them in every namespace");
    assert!(!may("get", "secrets") && !may("create", "statefulsets.apps"));

    a_newer_definition_is_applied(admin)?;
    let more = ["--set", "allNamespaces=true", "--set", "declared=true", "--set", "replicas=1"];
    helm.run("upgrade", &[&[chart][..], &never, &more].concat());
    eventually("the rights count", || may("patch", "statefulsets.apps").then_some(()));
    assert!(may("get", "secrets"));

    helm.run("uninstall", &[]);
    let left = ["get", "deployments,serviceaccounts", "--namespace", "stayput", "--output=name"];
    assert_eq!(admin.run(&left), "serviceaccount/default");
    eventually("the rights are gone", || (!may("get", "secrets")).then_some(()));
    // Helm keeps definitions: with them all SearchClusters would be gone.
    admin.run(&["get", "customresourcedefinition/searchclusters.stayput.dev"]);
    println!("Helm installed, upgraded and removed it in {} ms", began.elapsed().as_millis());
    Ok(())
}

/// The line of `docs/upgrade.md`, with a definition that has changed since Helm made it, and word for word.
fn a_newer_definition_is_applied(admin: &Kubectl) -> Result<(), String> {
    const WAS: &str = "description: Phase of the cluster as a whole.";
    const IS: &str = "description: Phase of the cluster as a whole, in a newer version.";
    let people = Shell::new(admin, &part("STAYPUT_KUBE")?);
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/upgrade.md");
    let document = fs::read_to_string(document).expect("a file");
    let mut lines = document.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with("kubectl stayput crd | "));
    let line = line.expect("the line of the CRD");
    people.run(&line.replacen(" | ", &format!(" | sed 's/{WAS}/{IS}/' | "), 1));
    let get = ["get", "customresourcedefinition/searchclusters.stayput.dev", "--output=yaml"];
    assert!(admin.run(&get).contains(IS), "it is the newer one");
    // And back.
    people.run(line);
    assert!(admin.run(&get).contains(WAS), "it is that of this version");
    Ok(())
}

/// The script under "With Helm" of `docs/inject.md`, word for word, first for a new release and then
/// with nothing changed; the chart has what that of OpenSearch renders. `Err` names what is missing here.
pub(super) fn post_rendered(admin: &Kubectl) -> Result<(), String> {
    let people = Shell::new(admin, &part("STAYPUT_KUBE")?).with("helm", &part("STAYPUT_HELM")?);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("a file");
    let chart = "apiVersion: v2\nname: opensearch\nversion: 1.0.0\n";
    people.write("opensearch/opensearch/Chart.yaml", chart);
    let rendered = read("src/inject/tests/manifests/opensearch-chart.yaml");
    assert!(rendered.contains("subPath"), "{rendered}");
    people.write("opensearch/opensearch/templates/all.yaml", &rendered);
    let document = read("docs/inject.md");
    let (_, section) = document.split_once("\n## With Helm\n").expect("a section");
    let (_, block) = section.split_once("```sh\n").expect("a block");
    let (script, _) = block.split_once("```").expect("its end");

    let get = ["get", "statefulset", "search-master", "--namespace", "default"];
    let deployed = |revision: u32| {
        let printed = people.run(script);
        assert!(printed.contains(&format!("REVISION: {revision}\n")), "{printed}");
        admin.json(&get)
    };
    let installed = deployed(1);
    let pod = &installed["spec"]["template"]["spec"];
    let engine = &pod["containers"][0];
    assert_eq!(engine["command"][0], "/stayput/stayput", "{pod:#}");
    let mounts = engine["volumeMounts"].as_array().expect("mounts");
    assert!(mounts.iter().all(|mount| mount["subPath"].is_null()), "{mounts:#?}");
    let volumes = pod["volumes"].as_array().expect("volumes");
    let tls = volumes.iter().find(|volume| volume["name"] == "stayput-tls").expect("a volume");
    assert_eq!(tls["secret"]["secretName"], "search-manager-tls", "{tls:#}");
    // No pod is replaced.
    let upgraded = deployed(2);
    assert_eq!(upgraded["metadata"]["generation"], 1, "{upgraded:#}");
    assert_eq!(upgraded["spec"], installed["spec"]);
    people.run("helm uninstall search");
    Ok(())
}
