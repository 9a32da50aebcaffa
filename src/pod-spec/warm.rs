//! An archive of the engine's classes, made in the pod before the engine's first start.

use serde_json::{Value, json};

use crate::manager::{NAME as MANAGER, PROGRAM};

/// Name of the volume with the archive, and of the init container that creates it.
pub const WARM_CONTAINER: &str = "stayput-warm";
/// How long the pod waits for the archive. An engine that starts slower does not need one.
const LIMIT: &str = "5m";

/// The variable with options of OpenSearch's JVM.
pub const JVM_OPTIONS: &str = "OPENSEARCH_JAVA_OPTS";
/// Variables with the JVM, and with its heap, which has to fit into the container.
const VARIABLES: [&str; 3] = [JVM_OPTIONS, "OPENSEARCH_JAVA_HOME", "JAVA_HOME"];

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
    let mount = json!({ "name": WARM_CONTAINER, "mountPath": directory });
    let variables = variables(engine, command);
    let archive = format!("{directory}/warm.jsa");
    let options = format!("{directory}/warm.options");
    let warm = [
        PROGRAM,
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
    let program = json!({ "name": MANAGER, "mountPath": "/stayput", "readOnly": true });
    let mut init = json!({
        "name": WARM_CONTAINER,
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
    Warming {
        init_container: init,
        mount,
        volume: json!({ "name": WARM_CONTAINER, "emptyDir": {} }),
    }
}

/// True if the engine of the archive may lack variables that the engine's container gets by `envFrom`: Secrets
/// and settings of the cluster can be among them, so the init container does not get those.
pub fn lacks_variables(engine: &Value, command: &[String]) -> bool {
    let has_some = engine["envFrom"].as_array().is_some_and(|all| !all.is_empty());
    let own = || engine["env"].as_array().into_iter().flatten();
    let is_there = |name: &str| own().any(|variable| variable["name"] == name);
    let all = variables(engine, command);
    let mut values = all.iter().map(value).chain(command.iter().map(String::as_str));
    let mut refers_elsewhere =
        || values.any(|text| !references(text).iter().all(|name| is_there(name)));
    has_some && (!is_there(JVM_OPTIONS) || refers_elsewhere())
}

/// The variables of the engine's container that the engine of the archive gets, with those that they refer to, in
/// the order of the container.
fn variables(engine: &Value, command: &[String]) -> Vec<Value> {
    let named = VARIABLES.map(str::to_owned).into_iter();
    let mut wanted: Vec<String> =
        command.iter().flat_map(|word| references(word)).chain(named).collect();
    let mut kept = Vec::new();
    // A value gets only what is before it.
    for variable in engine["env"].as_array().into_iter().flatten().rev() {
        let name = variable["name"].as_str().unwrap_or_default();
        if wanted.iter().any(|one| one == name) {
            wanted.extend(references(value(variable)));
            kept.push(variable.clone());
        }
    }
    kept.reverse();
    kept
}

fn value(variable: &Value) -> &str {
    variable["value"].as_str().unwrap_or_default()
}

/// The names in `$(NAME)`. Kubernetes turns `$$` into `$`.
fn references(text: &str) -> Vec<String> {
    let text = text.replace("$$", "");
    let names = text.split("$(").skip(1).filter_map(|rest| rest.split_once(')'));
    names.map(|(name, _)| name.to_owned()).collect()
}
