//! Whether the parts of stayput are of one version.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{Facts, Finding, REINSTALL};
use crate::cluster::missing_fields;
use crate::kubectl::doctor::facts::Taken;
use crate::workload::{ContainerFacts, DEFAULT_CONTAINER, engine_container, is_stateful_set};

const OURS: &str = env!("CARGO_PKG_VERSION");
/// The init container of `kubectl stayput inject`.
const INJECTED: &str = "stayput";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = definition(facts).into_iter().collect();
    let Ok(taken) = &facts.snapshot else { return found };
    let reconciler = taken.saved.version();
    if reconciler != OURS {
        found.push(
            Finding::error(
                "version",
                "Deployment/stayput-reconciler",
                format!("the reconciler has version {reconciler}, and kubectl stayput {OURS}"),
                REINSTALL,
            )
            .into_warning(),
        );
    }
    let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in &taken.saved.snapshot.pods {
        if let Ok(manager) = &pod.manager
            && manager.version != reconciler
        {
            others.entry(&manager.version).or_default().push(&pod.name);
        }
    }
    let namespace = facts.namespace();
    found.extend(others.into_iter().map(|(version, pods)| {
        Finding::error(
            "version",
            format!("Pod/{}", pods[0]),
            format!(
                "the managers of {} have version {version}, and the reconciler {reconciler}",
                pods.join(", ")
            ),
            format!("kubectl stayput -n {namespace} diff {}", facts.name()),
        )
        .into_warning()
    }));
    found.extend(facts.known_pods().iter().filter_map(|pod| upgraded_in_place(facts, taken, pod)));
    found
}

/// A manager that has taken over from another version while the engine ran on, and whose StatefulSet
/// still has the image that the pod was made with. Which version an image has is not known.
fn upgraded_in_place(facts: &Facts, taken: &Taken, pod: &Pod) -> Option<Finding> {
    let mut seen = taken.saved.snapshot.pods.iter();
    let manager = seen.find(|seen| Some(&seen.uid) == pod.metadata.uid.as_ref())?.manager.as_ref();
    let manager = manager.ok()?;
    let before = manager.upgraded_from.as_ref()?;
    let owner = pod.owner_references().iter().find(|owner| is_stateful_set(owner))?;
    let set = facts.sets.get(&owner.name)?.as_ref().ok()?.as_ref()?;
    let container = manager_container(facts, pod);
    let image = image_of(pod.spec.as_ref()?, &container)?;
    if image_of(set.spec.as_ref()?.template.spec.as_ref()?, &container)? != image {
        return None;
    }
    let (name, namespace) = (pod.name_any(), facts.namespace());
    let finding = Finding::error(
        "version",
        format!("Pod/{name}"),
        format!(
            "its manager was upgraded in place from version {before} to {}, and its StatefulSet has the \
             image that the pod was made with: a new pod comes with the manager of {image} again",
            manager.version
        ),
        format!("kubectl -n {namespace} set image statefulset/{} {container}=IMAGE", owner.name),
    );
    Some(finding.into_warning())
}

/// The container whose image the manager is from: the init container of `inject`, or the engine's own.
fn manager_container(facts: &Facts, pod: &Pod) -> String {
    let mut init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    if init.any(|container| container.name == INJECTED) {
        return INJECTED.to_owned();
    }
    let default = pod.annotations().get(DEFAULT_CONTAINER).map(String::as_str);
    let port = facts.cluster.completed_spec().manager.port;
    engine_container(&ContainerFacts::of(pod), port, default).to_owned()
}

fn image_of<'a>(spec: &'a PodSpec, container: &str) -> Option<&'a str> {
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.find(|one| one.name == container)?.image.as_deref()
}

/// Fields that the definition there does not have: Kubernetes drops them without a word.
fn definition(facts: &Facts) -> Option<Finding> {
    let object = "CustomResourceDefinition/searchclusters.stayput.dev";
    let apply = "kubectl apply --server-side --force-conflicts -f deploy/base/crd.yaml";
    let theirs = match &facts.definition {
        Err(unknown) => {
            return Some(
                Finding::error("definition", object, &unknown.message, apply).into_unknown(),
            );
        }
        Ok(None) => return None,
        Ok(Some(theirs)) => theirs,
    };
    let schemas = theirs.spec.versions.iter().filter_map(|version| version.schema.as_ref());
    let schemas: Vec<Value> = schemas.map(|schema| json!(schema.open_api_v3_schema)).collect();
    let missing = missing_fields(&schemas)?;
    Some(Finding::error(
        "definition",
        object,
        format!(
            "it is older than kubectl stayput: it has no {missing}; Kubernetes drops or refuses what is written there"
        ),
        apply,
    ))
}
