//! The parts of the Helm chart that are made from `deploy/`: `UPDATE_DEPLOY=1` writes them.
//! `tests/real/deploy.rs` compares what the chart renders with what kustomize does.

use std::fs;
use std::path::{Path, PathBuf};

const CHART: &str = "deploy/helm/stayput-reconciler";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).into()
}

fn deploy(file: &str) -> String {
    fs::read_to_string(root().join("deploy").join(file)).unwrap()
}

/// The same in the namespace of the release.
fn of_the_release(text: &str) -> String {
    assert!(!text.contains("{{"), "Helm would read this: {text}");
    text.replace("namespace: stayput\n", "namespace: {{ .Release.Namespace }}\n").replace(
        "system:serviceaccount:stayput:",
        "system:serviceaccount:{{ .Release.Namespace }}:",
    )
}

/// The NetworkPolicy with the ports and rules of the chart's values.
fn with_ports(policy: &str) -> String {
    const VALUES: [(&str, &str); 2] = [
        ("[{port: 443, protocol: TCP}, {port: 6443, protocol: TCP}]", "apiserverPorts"),
        ("[{port: 9199, protocol: TCP}, {port: 9200, protocol: TCP}]", "ports"),
    ];
    let mut text = policy.to_owned();
    for (ports, value) in VALUES {
        assert!(text.contains(ports), "{text}");
        let included = format!("{{{{ include \"stayput.ports\" .Values.networkPolicy.{value} }}}}");
        text = text.replace(ports, &included);
    }
    text + "    {{- range .Values.networkPolicy.egress }}\n    - {{ toJson . }}\n    {{- end }}\n"
}

/// The policy that keeps pods, with the names of the chart's values.
fn with_names(policy: &str) -> String {
    let (head, rest) = policy.split_once("expression: |-\n        [\n").expect("a list");
    let (_, tail) = rest.split_once("\n        ]\n").expect("its end");
    let names = "{{- toPrettyJson .Values.keepPods.names | nindent 8 }}";
    format!("{head}expression: |-\n        {names}\n{tail}")
}

/// The rules of the first role in a file.
fn rules(file: &str) -> String {
    let text = deploy(file);
    let (_, rest) = text.split_once("\nrules:\n").unwrap();
    let rules = rest.split("---\n").next().unwrap();
    format!("rules:\n{}", rules.trim_end())
}

/// Path in the chart and text of each part that is made.
fn made() -> Vec<(String, String)> {
    let head = |from: &str| format!("# Made from deploy/{from}: see tests/it/chart.rs.\n");
    let base = ["rbac", "role", "user-roles", "admission-policy", "availability", "network-policy"];
    let mut made: Vec<(String, String)> = base
        .iter()
        .map(|name| {
            let from = format!("base/{name}.yaml");
            let text = head(&from) + &of_the_release(&deploy(&from));
            let text = if *name == "network-policy" { with_ports(&text) } else { text };
            (format!("templates/{name}.yaml"), text)
        })
        .collect();
    for (name, from, values) in [
        ("replace-admission-policy", "replace/admission-policy.yaml", ".Values.replace"),
        ("keep-pods", "keep-pods/admission-policy.yaml", ".Values.keepPods.enabled"),
        (
            "searchclusters",
            "searchclusters.yaml",
            "not (or .Values.namespaces .Values.allNamespaces)",
        ),
    ] {
        let text = of_the_release(&deploy(from));
        let text = if name == "keep-pods" { with_names(&text) } else { text };
        let text = format!("{}{{{{- if {values} }}}}\n{text}{{{{- end }}}}\n", head(from));
        made.push((format!("templates/{name}.yaml"), text));
    }
    let parts = [
        ("stayput.rules.declared", "declared.yaml"),
        ("stayput.rules.replace", "replace/role.yaml"),
    ];
    let define = |(name, from): &(&str, &str)| {
        let comment = format!("{{{{- /* Made from deploy/{from}: see tests/it/chart.rs. */}}}}\n");
        format!("{comment}{{{{- define \"{name}\" -}}}}\n{}\n{{{{- end }}}}\n", rules(from))
    };
    made.push(("templates/_rules.tpl".into(), parts.iter().map(define).collect()));
    made.push(("crds/searchclusters.yaml".into(), deploy("base/crd.yaml")));
    made
}

#[test] // proves OPERATE-11, OPERATE-13
fn the_chart_has_what_deploy_has() {
    for (path, text) in made() {
        let file = root().join(CHART).join(&path);
        if std::env::var_os("UPDATE_DEPLOY").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == text,
            "{path} is not what deploy/ has: UPDATE_DEPLOY=1 cargo test --test it chart"
        );
    }
}

/// Every kustomization's resource is in the chart: made from it, or written for it.
#[test]
fn nothing_of_deploy_is_missing_in_the_chart() {
    let base = deploy("base/kustomization.yaml");
    let resources: Vec<&str> =
        base.lines().filter_map(|line| line.trim().strip_prefix("- ")).collect();
    assert!(resources.len() > 6, "{base}");
    // The Namespace is the release's; the other two have values.
    let elsewhere = ["namespace.yaml", "crd.yaml", "deployment.yaml"];
    let made = made();
    for resource in resources {
        let is_made = made.iter().any(|(path, _)| *path == format!("templates/{resource}"));
        assert!(is_made || elsewhere.contains(&resource), "{resource}");
    }
}
