//! An archive of the engine's classes, made in the pod before the engine's first start.

use serde_json::{Value, json};

use super::command::Command;
use super::config::mounts;
use super::reachability::variable;
use super::variables::{refer_elsewhere, references, with_references};
use super::{Pod, exact_items};
use crate::edit::{Change, Path};
use crate::engine::Engine;
use crate::finding::ObjectIssue;

/// Name of the volume with the archive, and of the init container that creates it.
const NAME: &str = "stayput-warm";
/// How long the pod waits for the archive. An engine that starts slower does not need one.
const LIMIT: &str = "5m";

/// Variables with the JVM, and with its heap, which has to fit into the container.
const VARIABLES: [&str; 3] = [OPTIONS, "OPENSEARCH_JAVA_HOME", "JAVA_HOME"];
const OPTIONS: &str = "OPENSEARCH_JAVA_OPTS";

/// The changes for `--warm`.
pub(super) fn changes(
    pod: Pod<'_>,
    at: &Path,
    container: &Value,
    command: &Command,
    found: &mut Vec<ObjectIssue>,
) -> Result<Vec<Change>, ObjectIssue> {
    let image = container["image"].as_str().unwrap_or_default();
    let name = container["name"].as_str().unwrap_or_default();
    let engine = Engine::of_image(image).or_else(|| Engine::named(name));
    let Some(engine) = engine.filter(Engine::keeps_classes) else {
        return Err(ObjectIssue::error(
            format!("{at}.image"),
            "an archive of classes can be made for OpenSearch only, and not in Bitnami's image",
            "Leave out --warm",
        ));
    };
    if command.has_script() {
        return Err(ObjectIssue::error(
            format!("{at}.command"),
            "what a shell starts does not get the arguments with which the archive is made",
            "Start the engine without a shell, or leave out --warm",
        ));
    }
    // The server JVM reads its options from here, and only it.
    let directory = format!("{}/jvm.options.d", engine.config);
    if mounts(container).iter().any(|mount| mount.path == directory) {
        return Err(ObjectIssue::error(
            format!("{at}.volumeMounts[mountPath={directory}]"),
            "the volume of the archive is to be mounted there",
            "Mount its files one by one (subPath), or leave out --warm",
        ));
    }
    let variables = variables(container, &command.engine);
    found.extend(by_env_from(at, container, &variables, &command.engine));
    let Warming { init_container, mount, volume } =
        warming(container, &command.engine, engine.config);
    found.extend(super::claimed(pod.claims, std::slice::from_ref(&volume)));
    let mut all = exact_items(pod.at, "initContainers", pod.spec, vec![init_container], found);
    all.extend(exact_items(at, "volumeMounts", container, vec![mount], found));
    all.extend(exact_items(pod.at, "volumes", pod.spec, vec![volume], found));
    Ok(all)
}

/// The variables of the engine's container that the engine of the archive gets.
fn variables(container: &Value, command: &[String]) -> Vec<Value> {
    let wanted = command.iter().flat_map(|word| references(word));
    with_references(container, wanted.chain(VARIABLES.map(str::to_owned)).collect())
}

/// A note about variables from `envFrom`, which the init container does not get: Secrets and settings of
/// the cluster can be among them.
fn by_env_from(
    at: &Path,
    container: &Value,
    variables: &[Value],
    command: &[String],
) -> Option<ObjectIssue> {
    let has_some = container["envFrom"].as_array().is_some_and(|all| !all.is_empty());
    let may_miss =
        variable(container, OPTIONS).is_none() || refer_elsewhere(container, variables, command);
    (has_some && may_miss).then(|| {
        ObjectIssue::note(
            format!("{at}.envFrom"),
            "the init container that makes the archive gets no variables by envFrom",
            format!("If one of them is {OPTIONS}, or is referred to by it or the command, write it into env"),
        )
    })
}

/// Additions to a pod that create and keep the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warming {
    /// Init container; goes behind the one that brings the manager's program.
    pub init_container: Value,
    /// Volume mount of the engine's container.
    pub mount: Value,
    /// Volume of the pod.
    pub volume: Value,
}

/// Additions to a pod with this engine's container, `command` behind the manager, and its config in the
/// directory `config`. The init container runs the engine with the image's own config: with that of the
/// cluster it would look for the other nodes.
pub fn warming(engine: &Value, command: &[String], config: &str) -> Warming {
    let directory = format!("{config}/jvm.options.d");
    let mount = json!({ "name": NAME, "mountPath": directory });
    let variables = variables(engine, command);
    let archive = format!("{directory}/warm.jsa");
    let options = format!("{directory}/warm.options");
    let warm = [
        super::PROGRAM,
        "warm",
        "--best-effort",
        LIMIT,
        "--archive",
        &archive,
        "--options",
        &options,
        "--",
    ];
    let command: Vec<&str> = warm.into_iter().chain(command.iter().map(String::as_str)).collect();
    let mut env = vec![
        json!({ "name": "DISABLE_INSTALL_DEMO_CONFIG", "value": "true" }),
        json!({ "name": "DISABLE_SECURITY_PLUGIN", "value": "true" }),
    ];
    env.extend(variables);
    let program = json!({ "name": "stayput", "mountPath": "/stayput", "readOnly": true });
    let mut init = json!({
        "name": NAME,
        "image": engine["image"],
        "command": command,
        "env": env,
        "volumeMounts": [program, mount],
    });
    for field in ["imagePullPolicy", "resources", "securityContext", "workingDir"] {
        if !engine[field].is_null() {
            init[field] = engine[field].clone();
        }
    }
    // Its engine writes a keystore and logs to the directories of the image, where it has no volumes.
    if engine["securityContext"]["readOnlyRootFilesystem"] == true {
        init["securityContext"]["readOnlyRootFilesystem"] = json!(false);
    }
    Warming { init_container: init, mount, volume: json!({ "name": NAME, "emptyDir": {} }) }
}
