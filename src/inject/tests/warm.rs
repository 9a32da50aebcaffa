//! An archive of classes that is made in the pod.

use serde_json::Value;

use super::manifests::manifest;
use crate::{Options, inject, uninject};

const DIRECTORY: &str = "/usr/share/opensearch/config/jvm.options.d";

fn warm() -> Options {
    Options { warm: true, ..Options::default() }
}

/// The pod's spec in the first StatefulSet.
fn spec(text: &str) -> Value {
    let documents = crate::yaml::documents(text).unwrap().into_iter();
    let mut objects = documents.filter_map(|document| Some(document.root?.value()));
    let set = objects.find(|object| object["kind"] == "StatefulSet").unwrap();
    set["spec"]["template"]["spec"].clone()
}

fn named<'a>(list: &'a Value, field: &str, name: &str) -> &'a Value {
    let mut items = list.as_array().unwrap().iter();
    items.find(|item| item[field] == name).unwrap_or(&Value::Null)
}

#[test] // proves STOP-29
fn the_engines_own_image_makes_it_before_the_first_start() {
    let text = manifest("opensearch-chart.yaml").replace(
        "- name: node.name",
        "- {name: OPENSEARCH_JAVA_OPTS, value: -Xmx512M}\n        - name: node.name",
    );
    let spec = spec(&inject(&text, &warm()).unwrap().text);
    let names: Vec<_> =
        spec["initContainers"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["fsgroup-volume", "stayput", "stayput-warm"], "after the program is there");
    let (init, engine) = (
        named(&spec["initContainers"], "name", "stayput-warm"),
        named(&spec["containers"], "name", "opensearch"),
    );
    for field in ["image", "imagePullPolicy", "securityContext"] {
        assert_eq!(init[field], engine[field], "{field}");
    }
    let command: Vec<_> =
        init["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(
        command.join(" "),
        format!(
            "/stayput/stayput warm --best-effort 5m --archive {DIRECTORY}/warm.jsa \
             --options {DIRECTORY}/warm.options -- ./opensearch-docker-entrypoint.sh opensearch"
        )
    );
    let variables: Vec<_> =
        init["env"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(
        variables,
        ["DISABLE_INSTALL_DEMO_CONFIG", "DISABLE_SECURITY_PLUGIN", "OPENSEARCH_JAVA_OPTS"],
        "the heap, and nothing of the cluster"
    );
    for container in [init, engine] {
        assert_eq!(
            named(&container["volumeMounts"], "mountPath", DIRECTORY)["name"],
            "stayput-warm"
        );
    }
    assert!(named(&spec["volumes"], "name", "stayput-warm")["emptyDir"].is_object());
}

/// Kubernetes puts only variables into a value that are written before it.
#[test] // proves MANIFEST-27
fn what_the_options_refer_to_comes_along() {
    let with = |env: &str, more: &str| {
        let text = manifest("hand-written.yaml");
        let text = text.replace("            - {name: A, value: b}\n", env);
        text.replace("args: [opensearch]   # as always", &format!("args: [opensearch{more}]"))
    };
    let variables = |text: &str| {
        let outcome = inject(text, &warm()).unwrap();
        let spec = spec(&outcome.text);
        let init = named(&spec["initContainers"], "name", "stayput-warm").clone();
        let all = init["env"].as_array().unwrap()[2..].iter();
        let names: Vec<String> = all.map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        (names, outcome.notes)
    };
    let heap = "            - {name: UNIT, value: m}\n            - {name: OTHER, value: x}\n            - {name: HEAP, value: 512$(UNIT)}\n";
    let options = "            - {name: OPENSEARCH_JAVA_OPTS, value: -Xms$(HEAP) -Xmx$(HEAP) -Da=$$(OTHER) -Db=$(LATER)}\n            - {name: LATER, value: x}\n";
    let text = with(&format!("{heap}{options}"), "");
    assert_eq!(
        variables(&text),
        (["UNIT", "HEAP", "OPENSEARCH_JAVA_OPTS"].map(str::to_owned).into(), vec![])
    );
    // Kubernetes resolves words of a command, too.
    let text = with(heap, ", '-Enode.attr.heap=$(HEAP)'");
    assert_eq!(variables(&text).0, ["UNIT", "HEAP"]);
    // All of envFrom would be too much: Secrets, and settings of the cluster.
    let from = "          envFrom: [{configMapRef: {name: jvm}}]\n          env:\n";
    let brought = |env: &str| {
        let text = with(env, "").replace("          env:\n", from);
        let notes = variables(&text).1.into_iter();
        let notes = notes.filter(|note| note.field.as_deref().unwrap().ends_with(".envFrom"));
        notes.map(|note| note.remedy).collect::<Vec<_>>()
    };
    assert_eq!(brought(&format!("{heap}{options}")), Vec::<String>::new());
    for env in [heap, &options.replace("HEAP", "BROUGHT")] {
        let [remedy] = &brought(env)[..] else { panic!("{env}") };
        assert!(remedy.contains("OPENSEARCH_JAVA_OPTS"), "{remedy}");
    }
}

/// The engine writes its keystore and logs to where its image has them.
#[test] // proves MANIFEST-27
fn the_container_that_makes_it_may_write_to_its_own_root() {
    let text = manifest("opensearch-chart.yaml");
    let text = text.replace(
        "          runAsNonRoot: true\n",
        "          runAsNonRoot: true\n          readOnlyRootFilesystem: true\n",
    );
    let mounts = "        volumeMounts:\n        - {name: own, mountPath: /usr/share/opensearch/config}\n        - {name: own, mountPath: /tmp, subPath: tmp}\n        - name: \"search-master\"\n          mountPath: /usr/share/opensearch/data\n        - name: config\n";
    let before = "        volumeMounts:\n        - name: \"search-master\"\n          mountPath: /usr/share/opensearch/data\n        - name: config\n";
    assert!(text.contains(before), "{text}");
    let text = text.replace(before, mounts);
    let text =
        text.replace("      volumes:\n", "      volumes:\n      - {name: own, emptyDir: {}}\n");
    let spec = spec(&inject(&text, &warm()).unwrap().text);
    let engine = named(&spec["containers"], "name", "opensearch");
    assert_eq!(engine["securityContext"]["readOnlyRootFilesystem"], true);
    let init = named(&spec["initContainers"], "name", "stayput-warm");
    let mut expected = engine["securityContext"].clone();
    expected["readOnlyRootFilesystem"] = false.into();
    assert_eq!(init["securityContext"], expected, "the rest stays");
    let paths: Vec<_> =
        init["volumeMounts"].as_array().unwrap().iter().map(|one| &one["mountPath"]).collect();
    assert_eq!(paths, ["/stayput", DIRECTORY], "nothing of the engine's volumes");
}

#[test] // proves STOP-29
fn it_comes_and_goes_with_the_option() {
    for name in ["hand-written.yaml", "opensearch-chart.yaml", "list.json"] {
        let text = manifest(name);
        let once = inject(&text, &warm()).unwrap().text;
        assert_eq!(inject(&once, &warm()).unwrap().text, once, "{name}");
        assert_eq!(uninject(&once).unwrap().text, text, "{name}");
        let without = inject(&once, &Options::default()).unwrap().text;
        assert_eq!(without, inject(&text, &Options::default()).unwrap().text, "{name}");
    }
}

#[test] // proves STOP-29
fn where_it_cannot_be_made_nothing_is_written() {
    let own = manifest("hand-written.yaml");
    let mounted = format!(
        "mountPath: {DIRECTORY}\n            - name: config\n              mountPath: /usr/share/opensearch/config/opensearch.yml"
    );
    for (text, message) in [
        (
            own.replace("args: [opensearch]", "command: [bash, -c, exec ./start]"),
            "what a shell starts",
        ),
        (
            own.replace("mountPath: /usr/share/opensearch/config/opensearch.yml", &mounted),
            "is to be mounted there",
        ),
        (manifest("elasticsearch-chart.yaml"), "for OpenSearch only, and not"),
        (manifest("eck.yaml"), "in the pods of a StatefulSet only"),
        (manifest("opensearch-cluster.yaml"), "in the pods of a StatefulSet only"),
    ] {
        let found = inject(&text, &warm()).expect_err(message);
        let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(messages.iter().any(|one| one.contains(message)), "{message}: {messages:#?}");
    }
}
