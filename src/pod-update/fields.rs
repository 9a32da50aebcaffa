//! Every field of a pod template, and the rule for its changes.
//!
//! Source: validation of updates and of `pods/resize` of Kubernetes 1.34
//! (`pkg/apis/core/validation/validation.go`), and `GetPodFromTemplate` for what the owner copies.

use serde_json::Value;
use stayput_pod_spec::ENVIRONMENT;

use crate::difference::{Leaf, Path, Segment};
use crate::operators::annotation_step;
use crate::update::UpdateStep;

/// Rule for changes of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The owner does not copy the field to the pod.
    NotCopied,
    /// The field may be changed in a living pod, and no process reads it.
    Patched,
    /// An annotation that tells of another change, which needs this step.
    Marker(UpdateStep),
    /// A patch of the image makes a new container of this one alone.
    Image,
    /// CPU and memory of a container.
    Resources,
    /// More tolerations may be added to a living pod.
    Tolerations,
    /// No living pod can be given the new value.
    Fixed,
}

use Rule::{Fixed, Image, Marker, NotCopied, Patched, Resources, Tolerations};

const METADATA: [(&str, Rule); 15] = [
    ("annotations", Patched),
    ("creationTimestamp", NotCopied),
    ("deletionGracePeriodSeconds", NotCopied),
    ("deletionTimestamp", NotCopied),
    // A patch could change them, but they keep a pod from going: they are their owner's alone.
    ("finalizers", Fixed),
    ("generateName", NotCopied),
    ("generation", NotCopied),
    ("labels", Patched),
    ("managedFields", NotCopied),
    ("name", NotCopied),
    ("namespace", NotCopied),
    ("ownerReferences", NotCopied),
    ("resourceVersion", NotCopied),
    ("selfLink", NotCopied),
    ("uid", NotCopied),
];

const SPEC: [(&str, Rule); 41] = [
    ("activeDeadlineSeconds", Fixed),
    ("affinity", Fixed),
    ("automountServiceAccountToken", Fixed),
    ("containers", Fixed),
    ("dnsConfig", Fixed),
    ("dnsPolicy", Fixed),
    ("enableServiceLinks", Fixed),
    ("ephemeralContainers", Fixed),
    ("hostAliases", Fixed),
    ("hostIPC", Fixed),
    ("hostNetwork", Fixed),
    ("hostPID", Fixed),
    ("hostUsers", Fixed),
    ("hostname", Fixed),
    ("hostnameOverride", Fixed),
    ("imagePullSecrets", Fixed),
    // Their order, and whether one is there.
    ("initContainers", Fixed),
    ("nodeName", Fixed),
    ("nodeSelector", Fixed),
    ("os", Fixed),
    ("overhead", Fixed),
    ("preemptionPolicy", Fixed),
    ("priority", Fixed),
    ("priorityClassName", Fixed),
    ("readinessGates", Fixed),
    ("resourceClaims", Fixed),
    // The apiserver resizes no pod that has them.
    ("resources", Fixed),
    ("restartPolicy", Fixed),
    ("runtimeClassName", Fixed),
    ("schedulerName", Fixed),
    // Only a pod that is not scheduled yet may lose one.
    ("schedulingGates", Fixed),
    ("securityContext", Fixed),
    ("serviceAccount", Fixed),
    ("serviceAccountName", Fixed),
    ("setHostnameAsFQDN", Fixed),
    ("shareProcessNamespace", Fixed),
    ("subdomain", Fixed),
    ("terminationGracePeriodSeconds", Fixed),
    ("tolerations", Tolerations),
    ("topologySpreadConstraints", Fixed),
    ("volumes", Fixed),
];

const CONTAINER: [(&str, Rule); 25] = [
    ("args", Fixed),
    ("command", Fixed),
    ("env", Fixed),
    ("envFrom", Fixed),
    ("image", Image),
    ("imagePullPolicy", Fixed),
    ("lifecycle", Fixed),
    ("livenessProbe", Fixed),
    ("name", Fixed),
    ("ports", Fixed),
    ("readinessProbe", Fixed),
    ("resizePolicy", Fixed),
    ("resources", Resources),
    ("restartPolicy", Fixed),
    ("restartPolicyRules", Fixed),
    ("securityContext", Fixed),
    ("startupProbe", Fixed),
    ("stdin", Fixed),
    ("stdinOnce", Fixed),
    ("terminationMessagePath", Fixed),
    ("terminationMessagePolicy", Fixed),
    ("tty", Fixed),
    ("volumeDevices", Fixed),
    ("volumeMounts", Fixed),
    ("workingDir", Fixed),
];

/// Annotations that no living pod takes, by the beginnings of their names: `ValidatePodSpecificAnnotationUpdates`
/// there. And the one that is written by us, which a template can have only for a new pod.
const FIXED_ANNOTATIONS: [&str; 3] =
    ["container.apparmor.security.beta.kubernetes.io/", "kubernetes.io/config.mirror", ENVIRONMENT];

/// Labels and annotations that are read only when a pod is made, by the beginnings of their names: a living pod takes
/// them, and nothing comes of it. Who reads them:
/// * CRI-O, the bandwidth plugin, Multus (and the plugins for its networks) and Calico, when a pod is set up;
/// * the mutating webhooks of Vault's agent, Istio, Linkerd, Kuma, Consul, Dapr, OpenTelemetry, Datadog, Kueue and Azure's
///   workload identity, when a pod is created.
const MADE_WITH_POD: [&str; 24] = [
    "admission.datadoghq.com/",
    "azure.workload.identity/",
    "cni.projectcalico.org/",
    "config.alpha.linkerd.io/",
    "config.linkerd.io/",
    "consul.hashicorp.com/",
    "dapr.io/",
    "inject.istio.io/",
    "instrumentation.opentelemetry.io/",
    "io.kubernetes.cri-o.",
    "istio.io/rev",
    "k8s.v1.cni.cncf.io/",
    "kubernetes.io/egress-bandwidth",
    "kubernetes.io/ingress-bandwidth",
    "kueue.x-k8s.io/",
    "kuma.io/",
    "linkerd.io/inject",
    "proxy.istio.io/",
    "resource.opentelemetry.io/",
    "sidecar.istio.io/",
    "sidecar.opentelemetry.io/",
    "traffic.sidecar.istio.io/",
    "v1.multus-cni.io/",
    "vault.hashicorp.com/",
];

/// True for a label or an annotation that is read only when a pod is made. Most of those that put a container into a
/// pod say so, whoever reads them.
fn is_made_with_pod(name: &str) -> bool {
    let (_, own) = name.rsplit_once('/').unwrap_or(("", name));
    own.contains("inject") || MADE_WITH_POD.iter().any(|beginning| name.starts_with(beginning))
}

/// The rule for a change at `path`, if the table knows the field.
pub(crate) fn rule(path: &Path) -> Option<Rule> {
    let find = |table: &[(&str, Rule)], field: &str| {
        table.iter().find(|(name, _)| *name == field).map(|(_, rule)| *rule)
    };
    let Segment::Field(top) = path.segments().first()? else { return None };
    let Segment::Field(field) = path.segments().get(1)? else { return None };
    match (top.as_str(), field.as_str(), path.segments().get(2), path.segments().get(3)) {
        ("metadata", "annotations", Some(Segment::Field(name)), _)
            if FIXED_ANNOTATIONS.iter().any(|fixed| name.starts_with(fixed)) =>
        {
            Some(Fixed)
        }
        ("metadata", "annotations" | "labels", Some(Segment::Field(name)), _)
            if is_made_with_pod(name) =>
        {
            Some(Fixed)
        }
        ("metadata", "annotations", Some(Segment::Field(name)), _) => {
            annotation_step(name).map_or(Some(Patched), |step| Some(Marker(step)))
        }
        ("metadata", field, ..) => find(&METADATA, field),
        (
            "spec",
            "containers" | "initContainers",
            Some(Segment::Element(_)),
            Some(Segment::Field(field)),
        ) => find(&CONTAINER, field),
        ("spec", field, ..) => find(&SPEC, field),
        _ => None,
    }
}

/// The step for a change of tolerations: the apiserver takes a patch that only adds tolerations.
pub(crate) fn tolerations_step(leaf: &Leaf) -> UpdateStep {
    let list = |value: &Option<Value>| match value {
        Some(Value::Array(list)) => list.clone(),
        _ => vec![],
    };
    let (from, to) = (list(&leaf.from), list(&leaf.to));
    let has_all =
        |list: &[Value], of: &[Value]| of.iter().all(|toleration| list.contains(toleration));
    if !has_all(&to, &from) {
        UpdateStep::Replace
    } else if !has_all(&from, &to) {
        UpdateStep::Relabel
    } else {
        UpdateStep::None
    }
}
