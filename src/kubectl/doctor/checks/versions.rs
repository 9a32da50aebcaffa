//! Checks that all parts of stayput have the same version, and that the clocks agree: this machine's and the
//! reconciler's with the apiserver's, the managers' with the reconciler's. Tokens and Leases have times in them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;
use serde_json::{Value, json};
use stayput_http::jwt::LEEWAY;
use stayput_kube_access::cluster::{FieldsOfOneSide, missing_fields, unknown_fields};
use stayput_kube_access::pod::{Containers, Owner};
use stayput_kube_access::stateful_set::Set;
use stayput_restart::Time;

use crate::doctor::checks::{OURS, reinstall};
use crate::doctor::{ApiserverTime, Facts, Finding, Taken};

/// The init container of `kubectl stayput inject`.
const INJECTED: &str = "stayput";
const DEFINITION: &str = "CustomResourceDefinition/searchclusters.stayput.dev";

/// A part in the cluster that is newer than this program.
#[derive(Debug)]
pub(crate) enum Newer {
    /// The reconciler, with its version.
    Reconciler(String),
    /// The definition, with the fields that this program does not know.
    Definition(FieldsOfOneSide),
}

/// The part that is newer than this program, if any. A definition that both has and lacks fields is of
/// another version: the reconciler's version, if it is known, decides which one is newer.
pub(crate) fn newer(facts: &Facts) -> Option<Newer> {
    let reconciler = facts.snapshot.as_ref().ok().map(|taken| taken.saved.version());
    if let Some(version) = reconciler
        && is_newer(version, OURS)
    {
        return Some(Newer::Reconciler(version.to_owned()));
    }
    let schemas = schemas(facts)?;
    let is_older = reconciler.is_some() && missing_fields(&schemas).is_some();
    unknown_fields(&schemas).filter(|_| !is_older).map(Newer::Definition)
}

/// The advice if a part of the cluster is newer than this program.
pub(crate) fn upgrade_this_program(newer: &Newer) -> String {
    let version = match newer {
        Newer::Reconciler(version) => version,
        Newer::Definition(_) => "the version of the reconciler",
    };
    format!(
        "upgrade kubectl stayput on this machine to {version}, then run doctor again; apply nothing of {OURS}: \
         with its older CRD Kubernetes would drop fields of every SearchCluster"
    )
}

/// Compares the numbers of two versions; another form counts as newer.
fn is_newer(one: &str, other: &str) -> bool {
    let numbers = |version: &str| -> Option<Vec<u64>> {
        let (release, _) = version.split_once(['-', '+']).unwrap_or((version, ""));
        release.split('.').map(|number| number.parse().ok()).collect()
    };
    one != other && numbers(one).is_none_or(|one| Some(one) >= numbers(other))
}

pub(crate) fn check_versions(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = definition(facts).into_iter().collect();
    let Ok(taken) = &facts.snapshot else { return found };
    let reconciler = taken.saved.version();
    if reconciler != OURS {
        found.push(Finding::warning(
            "version",
            "Deployment/stayput-reconciler",
            format!("the reconciler has version {reconciler}, and kubectl stayput {OURS}"),
            reinstall(facts),
        ));
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
        Finding::warning(
            "version",
            format!("Pod/{}", pods[0]),
            format!(
                "the managers of {} have version {version}, and the reconciler {reconciler}",
                pods.join(", ")
            ),
            format!("kubectl stayput -n {namespace} diff {}", facts.name()),
        )
    }));
    found.extend(facts.known_pods().iter().filter_map(|pod| upgraded_in_place(facts, taken, pod)));
    found
}

/// A note about a manager that has taken over from another version while the engine ran on, and whose
/// StatefulSet still has the image of the pod's creation. The version of an image is not known.
fn upgraded_in_place(facts: &Facts, taken: &Taken, pod: &Pod) -> Option<Finding> {
    let mut seen = taken.saved.snapshot.pods.iter();
    let manager = seen.find(|seen| Some(&seen.uid) == pod.metadata.uid.as_ref())?.manager.as_ref();
    let manager = manager.ok()?;
    let before = manager.upgraded_from.as_ref()?;
    let set = facts.sets.get(&Owner::of(pod)?.name)?.as_ref().ok()?.as_ref()?;
    let container = manager_container(facts, pod);
    let image = image_of(pod.spec.as_ref()?, &container)?;
    if image_of(set.spec.as_ref()?.template.spec.as_ref()?, &container)? != image {
        return None;
    }
    let (set, version) = (Set::of(set), &manager.version);
    let mut message = format!(
        "its manager was upgraded in place from version {before} to {version}, and its StatefulSet has the \
         image that the pod was made with: a new pod comes with the manager of {image} again"
    );
    if set.replaced_from.is_some() {
        message += "; for another image Kubernetes replaces the set's pods by itself, without the rules of a \
                    restart, unless its strategy is OnDelete first";
    }
    // By the tag: which version any other image has is not known.
    let newer = image.strip_suffix(before).filter(|rest| rest.ends_with(':'));
    let newer = newer.map(|repository| format!("{container}={repository}{version}"));
    let remedy = to_newer_image(facts, &set, newer);
    Some(Finding::warning("version", format!("Pod/{}", pod.name_any()), message, remedy))
}

/// The commands that bring another image into the template; an editor is opened where its name is not known.
fn to_newer_image(facts: &Facts, set: &Set, newer: Option<String>) -> String {
    let (namespace, name) = (facts.namespace(), &set.name);
    if let Some(operator) = &set.operator {
        return format!("change the image in {operator}: its operator makes the StatefulSet");
    }
    if set.node_set.is_some() {
        return format!("kubectl -n {namespace} edit searchcluster/{}", facts.name());
    }
    let change = match newer {
        Some(newer) => format!("kubectl -n {namespace} set image statefulset/{name} {newer}"),
        None => format!("kubectl -n {namespace} edit statefulset/{name}"),
    };
    let first = set.replaced_from.map(|_| set.on_delete_command(namespace) + "\n");
    first.unwrap_or_default() + &change
}

/// The container whose image has the manager: the init container of `inject`, or the engine's own.
fn manager_container(facts: &Facts, pod: &Pod) -> String {
    let mut init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    if init.any(|container| container.name == INJECTED) {
        return INJECTED.to_owned();
    }
    let port = facts.cluster.completed_spec().manager.port;
    Containers::of(pod).engine(port).to_owned()
}

fn image_of<'a>(spec: &'a PodSpec, container: &str) -> Option<&'a str> {
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    all.find(|one| one.name == container)?.image.as_deref()
}

/// The schemas of the installed definition, if one was read.
fn schemas(facts: &Facts) -> Option<Vec<Value>> {
    let theirs = facts.installation.definition.as_ref().ok()?.as_ref()?;
    let schemas = theirs.spec.versions.iter().filter_map(|version| version.schema.as_ref());
    Some(schemas.map(|schema| json!(schema.open_api_v3_schema)).collect())
}

/// A finding if the definition and this program know different fields: Kubernetes silently drops fields
/// that the definition does not have.
fn definition(facts: &Facts) -> Option<Finding> {
    if let Err(unknown) = &facts.installation.definition {
        let look = "kubectl get customresourcedefinition searchclusters.stayput.dev";
        return Some(Finding::unknown("definition", DEFINITION, &unknown.message, look));
    }
    let newer = newer(facts);
    if let Some(Newer::Definition(unknown)) = &newer {
        let message =
            format!("it is newer than kubectl stayput {OURS}, which does not know {unknown}");
        let remedy = newer.as_ref().map(upgrade_this_program).unwrap_or_default();
        return Some(Finding::warning("definition", DEFINITION, message, remedy));
    }
    let missing = missing_fields(&schemas(facts)?)?;
    let message = format!(
        "it is older than kubectl stayput: it has no {missing}; Kubernetes drops or refuses what is written there"
    );
    let apply = "kubectl stayput crd | kubectl apply --server-side --force-conflicts -f -";
    let remedy = newer.map_or_else(|| apply.to_owned(), |newer| upgrade_this_program(&newer));
    Some(Finding::error("definition", DEFINITION, message, remedy))
}

/// A difference that is worth a finding, in milliseconds.
const LARGE: i64 = 5_000;
/// A difference that makes the finding an error, in milliseconds. Managers accept tokens of clocks that
/// are ten minutes wrong at most.
const TOO_LARGE: i64 = 5 * 60_000;

const RECONCILER: &str = "Deployment/stayput-reconciler";
const REMEDY: &str = "kubectl get nodes -o wide; on the nodes: timedatectl status";

/// How far a clock is ahead of this machine's, at least and at most, in milliseconds.
type Ahead = [i64; 2];

pub(crate) fn check_clock(facts: &Facts) -> Vec<Finding> {
    let taken = facts.snapshot.as_ref().ok();
    let mut found: Vec<Finding> = match &facts.installation.apiserver_time {
        Err(unknown) => {
            vec![Finding::unknown("clock", RECONCILER, &unknown.message, REMEDY)]
        }
        Ok(time) => {
            let reconciler = taken.and_then(|taken| reconciler(time, taken));
            machine(time).into_iter().chain(reconciler).collect()
        }
    };
    found.extend(taken.into_iter().flat_map(|taken| managers(facts, taken)));
    found
}

/// Compares this machine's clock with the apiserver's.
fn machine(time: &ApiserverTime) -> Option<Finding> {
    let difference = apart([0, 0], of_apiserver(time));
    let message = format!(
        "this machine's clock is {} the apiserver's: times and ages are shown wrong by as much",
        in_words(difference)
    );
    (difference.abs() >= LARGE)
        .then(|| Finding::warning("clock", "this machine", message, "timedatectl status"))
}

/// Compares the reconciler's clock with the apiserver's.
fn reconciler(time: &ApiserverTime, taken: &Taken) -> Option<Finding> {
    let reconciler = ahead_of_us(taken.saved.snapshot.now, taken.asked, taken.answered);
    let difference = apart(reconciler, of_apiserver(time));
    // The apiserver's time has no fractions of a second.
    if difference.abs() < LARGE {
        return None;
    }
    let message = format!("the reconciler's clock is {} the apiserver's", in_words(difference));
    Some(if difference.abs() < TOO_LARGE {
        Finding::warning("clock", RECONCILER, message, REMEDY)
    } else {
        Finding::error("clock", RECONCILER, message, REMEDY)
    })
}

/// Compares the managers' clocks with the reconciler's.
fn managers(facts: &Facts, taken: &Taken) -> Vec<Finding> {
    let sends_tokens = facts.cluster.spec.manager.auth.client_certificate_secret.is_none();
    let of_pod = |pod: &stayput_restart::Pod| {
        let difference = pod.manager.as_ref().ok()?.clock_ahead.saturating_mul(1000);
        if difference.abs() < LARGE {
            return None;
        }
        let object = format!("Pod/{}", pod.name);
        let message = format!("its manager's clock is {} the reconciler's", in_words(difference));
        if sends_tokens && difference.unsigned_abs() >= LEEWAY * 1000 {
            let message = format!("{message}: it may refuse tokens, {LEEWAY} s are allowed");
            return Some(Finding::error("clock", object, message, REMEDY));
        }
        Some(Finding::warning("clock", object, message, REMEDY))
    };
    taken.saved.snapshot.pods.iter().filter_map(of_pod).collect()
}

/// A difference in words; a negative one is behind.
fn in_words(milliseconds: i64) -> String {
    let direction = if milliseconds > 0 { "ahead of" } else { "behind" };
    format!("{} s {direction}", milliseconds.unsigned_abs() / 1000)
}

fn of_apiserver(time: &ApiserverTime) -> Ahead {
    ahead_of_us(time.server, time.asked, time.answered)
}

/// The range for a clock that was read at some time between these two times of this machine.
fn ahead_of_us(there: Time, asked: Time, answered: Time) -> Ahead {
    [answered, asked].map(|here| {
        let since = |one: Time, other: Time| i64::try_from(one.since(other)).unwrap_or(i64::MAX);
        if there >= here { since(there, here) } else { -since(here, there) }
    })
}

/// How far the first clock is ahead of the other one for certain.
fn apart([least, most]: Ahead, other: Ahead) -> i64 {
    if least > other[1] { least - other[1] } else { (most - other[0]).min(0) }
}

#[cfg(test)]
mod tests {
    use super::is_newer;

    #[test] // proves DOCTOR-2
    fn versions_are_compared_by_their_numbers() {
        for (one, other, expected) in [
            ("0.10.0", "0.9.1", true),
            ("0.9.1", "0.10.0", false),
            ("0.1.0", "0.1.0", false),
            ("0.0.9", "0.1.0", false),
            ("0.1.0-rc.1", "0.1.0", true),
            ("main", "0.1.0", true),
        ] {
            assert_eq!(is_newer(one, other), expected, "{one} {other}");
        }
    }
}
