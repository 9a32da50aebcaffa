//! Single changes of the example's template.

use serde_json::{Value, json};

use super::{step_of, template, update, with_content};
use crate::{Abilities, Content, Declaration, UpdateStep, compare};

#[test] // proves UPDATE-58
fn each_change_asks_for_the_least_step() {
    type Change = fn(&mut Value);
    let rows: [(&str, Change, UpdateStep); 27] = [
        ("nothing", |_| {}, UpdateStep::None),
        ("a label", |all| all["metadata"]["labels"]["team"] = json!("a"), UpdateStep::Relabel),
        (
            "a first annotation",
            |all| all["metadata"]["annotations"] = json!({"a": "b"}),
            UpdateStep::Relabel,
        ),
        ("no labels", |all| all["metadata"]["labels"] = Value::Null, UpdateStep::Relabel),
        (
            "kubectl rollout restart",
            |all| {
                all["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = json!("now")
            },
            UpdateStep::Restart,
        ),
        (
            "the engine's image",
            |all| all["spec"]["containers"][0]["image"] = json!("other"),
            UpdateStep::Container,
        ),
        (
            "another's image",
            |all| all["spec"]["containers"][1]["image"] = json!("other"),
            UpdateStep::Restart,
        ),
        (
            "a sidecar's image",
            |all| all["spec"]["initContainers"][1]["image"] = json!("other"),
            UpdateStep::Restart,
        ),
        (
            "an init image",
            |all| all["spec"]["initContainers"][0]["image"] = json!("other"),
            UpdateStep::Replace,
        ),
        (
            "a variable",
            |all| all["spec"]["containers"][0]["env"][0]["value"] = json!("b"),
            UpdateStep::Replace,
        ),
        (
            "more memory",
            |all| all["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("4Gi"),
            UpdateStep::Resize,
        ),
        (
            "the same memory in other words",
            |all| all["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("2048Mi"),
            UpdateStep::None,
        ),
        (
            "a first CPU limit",
            |all| all["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(2),
            UpdateStep::Resize,
        ),
        (
            "a limit less",
            |all| all["spec"]["containers"][0]["resources"]["limits"] = json!({}),
            UpdateStep::Replace,
        ),
        (
            "another quality of service",
            |all| {
                let same = json!({"cpu": "1", "memory": "2Gi"});
                for (list, index) in [("containers", 0), ("containers", 1), ("initContainers", 0)] {
                    all["spec"][list][index]["resources"]["limits"] = same.clone();
                }
                all["spec"]["initContainers"][1]["resources"]["limits"] = same.clone();
                all["spec"]["containers"][0]["resources"]["requests"] = same;
            },
            UpdateStep::Replace,
        ),
        (
            "huge pages",
            |all| {
                all["spec"]["containers"][0]["resources"]["limits"]["hugepages-2Mi"] = json!("2Mi")
            },
            UpdateStep::Replace,
        ),
        (
            "memory of a sidecar",
            |all| {
                all["spec"]["initContainers"][1]["resources"] = json!({"limits": {"memory": "1Gi"}})
            },
            UpdateStep::Resize,
        ),
        (
            "memory of an init container",
            |all| {
                all["spec"]["initContainers"][0]["resources"] = json!({"limits": {"memory": "1Gi"}})
            },
            UpdateStep::Relabel,
        ),
        (
            "pod resources",
            |all| all["spec"]["resources"] = json!({"limits": {"cpu": "1"}}),
            UpdateStep::Replace,
        ),
        (
            "one toleration more",
            |all| {
                let list = all["spec"]["tolerations"].as_array_mut().expect("a list");
                list.insert(0, json!({"key": "zone", "operator": "Exists"}));
            },
            UpdateStep::Relabel,
        ),
        ("a toleration less", |all| all["spec"]["tolerations"] = json!([]), UpdateStep::Replace),
        (
            "affinity",
            |all| all["spec"]["affinity"] = json!({"podAntiAffinity": {"a": 1}}),
            UpdateStep::Replace,
        ),
        ("empty affinity", |all| all["spec"]["affinity"] = json!({}), UpdateStep::None),
        (
            "another volume",
            |all| {
                let list = all["spec"]["volumes"].as_array_mut().expect("a list");
                list.push(json!({"name": "scratch", "emptyDir": {}}));
            },
            UpdateStep::Replace,
        ),
        (
            "containers in another order",
            |all| all["spec"]["containers"].as_array_mut().expect("a list").reverse(),
            UpdateStep::None,
        ),
        (
            "init containers in another order",
            |all| all["spec"]["initContainers"].as_array_mut().expect("a list").reverse(),
            UpdateStep::Replace,
        ),
        (
            "a container more",
            |all| {
                let list = all["spec"]["containers"].as_array_mut().expect("a list");
                list.push(json!({"name": "logs", "image": "x"}));
            },
            UpdateStep::Replace,
        ),
    ];
    for (name, change, expected) in rows {
        assert_eq!(step_of(change), expected, "{name}");
    }
}

#[test]
fn the_highest_step_does_it_all_and_all_fields_are_named() {
    let mut wanted = template();
    wanted["metadata"]["labels"]["team"] = json!("a");
    wanted["spec"]["containers"][0]["image"] = json!("registry/opensearch:2.19.3");
    let update = update(&wanted, &template());
    assert_eq!(update.step, UpdateStep::Container);
    let said: Vec<String> = update
        .because
        .iter()
        .map(|each| format!("{} {:?} {:?} {}", each.field, each.from, each.to, each.step.name()))
        .collect();
    assert_eq!(
        said,
        [
            "spec.containers[opensearch].image Some(\"registry/opensearch:2.19.2\") \
             Some(\"registry/opensearch:2.19.3\") container",
            "metadata.labels.team None Some(\"a\") relabel",
        ]
    );
}

#[test] // proves UPDATE-58
fn an_annotation_that_no_living_pod_takes_needs_another_pod() {
    for name in
        ["container.apparmor.security.beta.kubernetes.io/opensearch", "kubernetes.io/config.mirror"]
    {
        let with = |value: Value| {
            let mut all = template();
            all["metadata"]["annotations"] = json!({"a": "b", name: value});
            all
        };
        let [none, one, other] =
            [Value::Null, json!("runtime/default"), json!("unconfined")].map(with);
        for (wanted, actual) in [(&one, &none), (&other, &one), (&none, &one)] {
            let found = update(wanted, actual);
            assert_eq!(found.step, UpdateStep::Replace, "{name}: {found:?}");
        }
    }
}

#[test] // proves UPDATE-58
fn what_is_read_only_when_a_pod_is_made_needs_another_pod() {
    for name in [
        "kubernetes.io/egress-bandwidth",
        "kubernetes.io/ingress-bandwidth",
        "k8s.v1.cni.cncf.io/networks",
        "v1.multus-cni.io/default-network",
        "cni.projectcalico.org/ipv4pools",
        "vault.hashicorp.com/agent-inject",
        "vault.hashicorp.com/role",
        "sidecar.istio.io/inject",
        "proxy.istio.io/config",
        "linkerd.io/inject",
        "config.linkerd.io/proxy-cpu-limit",
        "azure.workload.identity/use",
        "instrumentation.opentelemetry.io/inject-java",
        "sidecar.opentelemetry.io/inject",
        "dapr.io/enabled",
        "consul.hashicorp.com/connect-inject",
        "kuma.io/sidecar-injection",
        "admission.datadoghq.com/enabled",
        "io.kubernetes.cri-o.Devices",
        "kueue.x-k8s.io/queue-name",
        "mesh.example.org/inject",
    ] {
        for map in ["annotations", "labels"] {
            let step = step_of(|all| all["metadata"][map][name] = json!("a"));
            assert_eq!(step, UpdateStep::Replace, "{map} {name}");
        }
    }
    let step = step_of(|all| all["metadata"]["annotations"]["example.org/linkerd.io"] = json!("a"));
    assert_eq!(step, UpdateStep::Relabel);
}

#[test]
fn a_file_of_a_label_needs_another_pod() {
    let item = |path: &str| json!([{"path": "it", "fieldRef": {"fieldPath": path}}]);
    let direct = |path: &str| json!({"name": "shown", "downwardAPI": {"items": item(path)}});
    let projected = |path: &str| {
        let sources = json!([{"secret": {"name": "a"}}, {"downwardAPI": {"items": item(path)}}]);
        json!({"name": "shown", "projected": {"sources": sources}})
    };
    let mount = json!([{"name": "shown", "mountPath": "/shown"}]);
    for (volume, list, at, step) in [
        (direct("metadata.labels['app']"), "containers", 0, UpdateStep::Replace),
        (projected("metadata.labels['app']"), "containers", 0, UpdateStep::Replace),
        (direct("metadata.labels"), "containers", 0, UpdateStep::Replace),
        (direct("metadata.labels['team']"), "containers", 0, UpdateStep::Relabel),
        (direct("metadata.annotations"), "containers", 0, UpdateStep::Relabel),
        (direct("metadata.labels"), "containers", 1, UpdateStep::Relabel),
        (direct("metadata.labels"), "initContainers", 0, UpdateStep::Replace),
        (direct("metadata.labels"), "initContainers", 1, UpdateStep::Relabel),
    ] {
        let mut actual = template();
        actual["spec"]["volumes"] = json!([volume]);
        actual["spec"][list][at]["volumeMounts"] = mount.clone();
        let mut wanted = actual.clone();
        wanted["metadata"]["labels"]["app"] = json!("metrics");
        assert_eq!(update(&wanted, &actual).step, step, "{list}[{at}] {volume}");
    }
    let mut actual = template();
    actual["spec"]["volumes"] = json!([direct("metadata.annotations")]);
    actual["spec"]["containers"][0]["volumeMounts"] = mount;
    let mut wanted = actual.clone();
    wanted["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = json!("now");
    assert_eq!(update(&wanted, &actual).step, UpdateStep::Restart);
}

#[test]
fn the_order_of_mounts_is_of_no_matter() {
    let mut actual = template();
    let [one, other] = ["/one", "/other"].map(|path| json!({"name": "config", "mountPath": path}));
    actual["spec"]["containers"][0]["volumeMounts"] = json!([one, other]);
    let mut wanted = actual.clone();
    wanted["spec"]["containers"][0]["volumeMounts"] = json!([other, one]);
    assert_eq!(update(&wanted, &actual).step, UpdateStep::None);
    wanted["spec"]["containers"][0]["volumeMounts"][0]["readOnly"] = json!(true);
    let found = update(&wanted, &actual);
    assert_eq!(found.step, UpdateStep::Replace);
    assert!(found.because[0].field.contains("volumeMounts"), "{found:?}");
}

/// A label is written to a living pod only after its engine has been proven: a new container would read
/// the old one.
#[test] // proves UPDATE-58
fn a_variable_of_a_label_needs_another_pod() {
    let mut actual = template();
    actual["spec"]["containers"][0]["env"] = json!([
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}
    ]);
    let mut wanted = actual.clone();
    wanted["metadata"]["labels"]["app"] = json!("metrics");
    let found = update(&wanted, &actual);
    assert_eq!(found.step, UpdateStep::Replace);
    assert_eq!(found.because[0].field, "spec.containers[opensearch].env[APP]");

    // Of an annotation, and of other containers: those that run once, before the engine, and no others.
    let shown = json!([
        {"name": "NOTE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a']"}}}
    ]);
    for (list, at, step) in [
        ("containers", 0, UpdateStep::Replace),
        ("containers", 1, UpdateStep::Relabel),
        ("initContainers", 0, UpdateStep::Replace),
        ("initContainers", 1, UpdateStep::Relabel),
    ] {
        let mut actual = template();
        actual["spec"][list][at]["env"] = shown.clone();
        let mut wanted = actual.clone();
        wanted["metadata"]["annotations"]["a"] = json!("b");
        assert_eq!(update(&wanted, &actual).step, step, "{list}[{at}]");
    }

    // A label that no variable shows, and a size that one shows.
    let mut wanted = actual.clone();
    wanted["metadata"]["labels"]["team"] = json!("a");
    assert_eq!(update(&wanted, &actual).step, UpdateStep::Relabel);
    wanted["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("4Gi");
    let found = update(&wanted, &actual);
    let steps: Vec<UpdateStep> = found.because.iter().map(|each| each.step).collect();
    assert_eq!(steps, [UpdateStep::Resize, UpdateStep::Container, UpdateStep::Relabel]);
}

#[test] // proves UPDATE-57
fn a_variable_of_an_amount_needs_a_new_container_only_if_that_amount_changes() {
    let (engine, other) = ("opensearch", "exporter");
    let shows = |resource: &str, container: Option<&str>| {
        json!({"name": "SHOWN", "valueFrom": {"resourceFieldRef": {
            "resource": resource, "containerName": container,
        }}})
    };
    let rows: [(&str, Value, &str, &str, &str, bool); 7] = [
        ("its limit", shows("limits.memory", None), engine, "limits", "memory", true),
        ("its limit by name", shows("limits.cpu", Some(engine)), engine, "limits", "cpu", true),
        ("its request", shows("requests.cpu", None), engine, "requests", "cpu", true),
        (
            "a request that the limit is",
            shows("requests.memory", None),
            engine,
            "limits",
            "memory",
            true,
        ),
        ("another amount", shows("limits.memory", None), engine, "limits", "cpu", false),
        ("another container's", shows("limits.memory", None), other, "limits", "memory", false),
        (
            "the limit of another",
            shows("limits.memory", Some(other)),
            other,
            "limits",
            "memory",
            true,
        ),
    ];
    for (name, variable, container, kind, amount, makes_one) in rows {
        let mut actual = template();
        actual["spec"]["containers"][0]["env"] = json!([variable]);
        let mut wanted = actual.clone();
        let at = usize::from(container == other);
        wanted["spec"]["containers"][at]["resources"][kind][amount] = json!("3");
        let found = update(&wanted, &actual);
        assert_eq!(found.step, UpdateStep::Resize, "{name}: {found:?}");
        let steps = found.because.iter().map(|each| each.step);
        let makes = steps.filter(|step| *step == UpdateStep::Container).count() == 1;
        assert_eq!(makes, makes_one, "{name}: {found:?}");
    }
}

/// The manager ends for another container, and the kubelet would leave it so.
#[test] // proves UPDATE-58
fn a_container_that_is_not_made_anew_needs_another_pod_unless_its_image_changes() {
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]);
    for (policy, rules, step) in [
        (Value::Null, Value::Null, UpdateStep::Resize),
        (json!("Always"), json!([]), UpdateStep::Resize),
        (json!("Never"), Value::Null, UpdateStep::Replace),
        (json!("OnFailure"), Value::Null, UpdateStep::Replace),
        (json!("Never"), rules.clone(), UpdateStep::Replace),
        (json!("Always"), rules, UpdateStep::Replace),
    ] {
        let mut actual = template();
        let container = &mut actual["spec"]["containers"][0];
        container["restartPolicy"] = policy.clone();
        container["restartPolicyRules"] = rules;
        container["env"] = json!([
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
        ]);
        let mut wanted = actual.clone();
        wanted["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(2);
        assert_eq!(update(&wanted, &actual).step, step, "{policy}");
        wanted["spec"]["containers"][0]["image"] = json!("other");
        assert_eq!(update(&wanted, &actual).step, UpdateStep::Resize, "{policy}");
        // What another one needs is no new container of the engine.
        let mut wanted = actual.clone();
        wanted["spec"]["containers"][1]["image"] = json!("other");
        assert_eq!(update(&wanted, &actual).step, UpdateStep::Restart, "{policy}");
    }
}

#[test] // proves UPDATE-84
fn what_may_be_secret_is_not_shown() {
    let mut wanted = template();
    wanted["spec"]["containers"][0]["env"][0]["value"] = json!("hunter2");
    wanted["spec"]["containers"][0]["args"] = json!(["--password=hunter2"]);
    let with_header =
        json!({"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "hunter2"}]}});
    wanted["spec"]["containers"][0]["readinessProbe"] = with_header.clone();
    wanted["spec"]["containers"][0]["startupProbe"] = with_header;
    let with_command = json!({"exec": {"command": ["curl", "-u", "elastic:hunter2"]}});
    wanted["spec"]["containers"][1]["livenessProbe"] = with_command.clone();
    wanted["spec"]["initContainers"][1]["lifecycle"] = json!({"postStart": with_command});
    let update = update(&wanted, &template());
    assert!(update.because.len() >= 6, "{update:?}");
    assert!(!format!("{update:?}").contains("hunter2"), "{update:?}");
}

/// Of a container that is added or removed, or of another order, only names and images are shown.
#[test] // proves UPDATE-84
fn nothing_that_may_be_secret_of_a_whole_container_is_shown() {
    let secret = json!({
        "name": "logs", "image": "fluent:1", "args": ["--token=hunter2"],
        "command": ["sh", "-c", "hunter2"], "env": [{"name": "A", "value": "hunter2"}],
        "lifecycle": {"preStop": {"exec": {"command": ["hunter2"]}}},
    });
    for list in ["containers", "initContainers"] {
        let mut with = template();
        with["spec"][list].as_array_mut().expect("a list").push(secret.clone());
        let mut reversed = with.clone();
        reversed["spec"][list].as_array_mut().expect("a list").reverse();
        let mut twice = with.clone();
        twice["spec"][list].as_array_mut().expect("a list").push(secret.clone());
        for (wanted, actual) in
            [(&with, &template()), (&template(), &with), (&reversed, &with), (&twice, &with)]
        {
            let update = update(wanted, actual);
            assert!(!format!("{update:?}").contains("hunter2"), "{list}: {update:?}");
        }
        let added = &update(&with, &template()).because[0];
        assert_eq!(added.field, format!("spec.{list}[logs]"));
        assert_eq!((added.from.as_deref(), added.to.as_deref()), (None, Some("fluent:1")));
    }
}

#[test] // proves UPDATE-58
fn a_variable_that_uses_another_one_counts_its_order_in_init_containers_too() {
    for list in ["containers", "initContainers"] {
        let mut actual = template();
        let variables = [json!({"name": "A", "value": "a"}), json!({"name": "B", "value": "$(A)"})];
        actual["spec"][list][0]["env"] = json!(variables);
        let mut wanted = actual.clone();
        wanted["spec"][list][0]["env"].as_array_mut().expect("a list").reverse();
        assert_eq!(update(&wanted, &actual).step, UpdateStep::Replace, "{list}");
    }
}

#[test] // proves UPDATE-58
fn tolerations_are_compared_as_sets() {
    let step = |from: &[&str], to: &[&str]| {
        let list = |keys: &[&str]| -> Vec<Value> {
            keys.iter().map(|key| json!({"key": key, "operator": "Exists"})).collect()
        };
        let (mut actual, mut wanted) = (template(), template());
        actual["spec"]["tolerations"] = json!(list(from));
        wanted["spec"]["tolerations"] = json!(list(to));
        update(&wanted, &actual).step
    };
    assert_eq!(step(&["a", "a"], &["a", "b"]), UpdateStep::Relabel, "b is new");
    assert_eq!(step(&["a", "b"], &["b", "a"]), UpdateStep::None);
    assert_eq!(step(&["a", "a"], &["a"]), UpdateStep::None);
    assert_eq!(step(&["a", "b"], &["b", "b"]), UpdateStep::Replace);
}

#[test]
fn without_resize_another_size_is_another_pod() {
    let mut wanted = template();
    wanted["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("4Gi");
    let content = Content::default();
    let compare = |resize| {
        let wanted = Declaration { template: &wanted, content: &content };
        let actual = Declaration { template: &template(), content: &content };
        compare(wanted, actual, "opensearch", Abilities { resize }).step
    };
    assert_eq!((compare(true), compare(false)), (UpdateStep::Resize, UpdateStep::Replace));
}

#[test]
fn an_empty_object_that_means_something_is_a_change() {
    let mut actual = template();
    let term = |selector| json!({"podAntiAffinity": {"required": [{"topologyKey": "zone", "namespaceSelector": selector}]}});
    actual["spec"]["affinity"] = term(Value::Null);
    let mut wanted = actual.clone();
    wanted["spec"]["affinity"] = term(json!({}));
    assert_eq!(update(&wanted, &actual).step, UpdateStep::Replace);
    assert_eq!(
        with_content(&actual, &Content::default(), &actual, &Content::default()).step,
        UpdateStep::None
    );
}
