//! The kinds that are served without a CRD.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret,
    Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::event_versions::{from_core, to_core};
use super::super::object::through;
use super::{Nature, Resource};

/// How the strategies of the real server differ by kind.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(super) unconditional_update: bool,
    pub(super) create_on_update: bool,
    pub(super) returns_deleted: bool,
    pub(super) generation: bool,
    pub(super) decode: fn(Value) -> Result<Value, String>,
    pub(super) encode: fn(&Value) -> Value,
}

const fn plain<T: DeserializeOwned + Serialize>() -> Rules {
    Rules {
        unconditional_update: true,
        create_on_update: false,
        returns_deleted: false,
        generation: false,
        decode: through::<T>,
        encode: Value::clone,
    }
}

static NAMESPACE: Rules = Rules { returns_deleted: true, ..plain::<Namespace>() };
static NODE: Rules = plain::<Node>();
static VOLUME: Rules = Rules { returns_deleted: true, ..plain::<PersistentVolume>() };
static CLAIM: Rules = Rules { returns_deleted: true, ..plain::<PersistentVolumeClaim>() };
static POD: Rules = Rules { returns_deleted: true, generation: true, ..plain::<Pod>() };
static SECRET: Rules = plain::<Secret>();
static CONFIG_MAP: Rules = plain::<ConfigMap>();
static SERVICE_ACCOUNT: Rules = Rules { returns_deleted: true, ..plain::<ServiceAccount>() };
static SERVICE: Rules = Rules { returns_deleted: true, ..plain::<Service>() };
static STATEFUL_SET: Rules = Rules { generation: true, ..plain::<StatefulSet>() };
static CONTROLLER_REVISION: Rules = plain::<ControllerRevision>();
static LEASE: Rules =
    Rules { unconditional_update: false, create_on_update: true, ..plain::<Lease>() };
static ENDPOINT_SLICE: Rules = Rules { generation: true, ..plain::<EndpointSlice>() };
static ROLE: Rules = plain::<Role>();
static ROLE_BINDING: Rules = plain::<RoleBinding>();
static NETWORK_POLICY: Rules = Rules { generation: true, ..plain::<NetworkPolicy>() };
static BUDGET: Rules = Rules { generation: true, ..plain::<PodDisruptionBudget>() };
static DEFINITION: Rules =
    Rules { unconditional_update: false, generation: true, ..plain::<CustomResourceDefinition>() };
static CORE_EVENT: Rules = Rules { create_on_update: true, ..plain::<Event>() };
static NEW_EVENT: Rules =
    Rules { create_on_update: true, decode: to_core, encode: from_core, ..plain::<Event>() };

/// Group, version, plural, kind, short names, namespaced, status subresource, storage, rules.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str], bool, bool);

const ROWS: [(Row, &str, &Rules); 20] = [
    (("", "namespaces", "Namespace", &["ns"], false, true), "namespaces", &NAMESPACE),
    (("", "nodes", "Node", &["no"], false, true), "nodes", &NODE),
    (
        ("", "persistentvolumes", "PersistentVolume", &["pv"], false, true),
        "persistentvolumes",
        &VOLUME,
    ),
    (
        ("", "persistentvolumeclaims", "PersistentVolumeClaim", &["pvc"], true, true),
        "persistentvolumeclaims",
        &CLAIM,
    ),
    (("", "pods", "Pod", &["po"], true, true), "pods", &POD),
    (("", "secrets", "Secret", &[], true, false), "secrets", &SECRET),
    (("", "configmaps", "ConfigMap", &["cm"], true, false), "configmaps", &CONFIG_MAP),
    (("", "services", "Service", &["svc"], true, true), "services", &SERVICE),
    (
        ("", "serviceaccounts", "ServiceAccount", &["sa"], true, false),
        "serviceaccounts",
        &SERVICE_ACCOUNT,
    ),
    (("", "events", "Event", &["ev"], true, false), "events", &CORE_EVENT),
    (("events.k8s.io", "events", "Event", &["ev"], true, false), "events", &NEW_EVENT),
    (("apps", "statefulsets", "StatefulSet", &["sts"], true, true), "statefulsets", &STATEFUL_SET),
    (
        ("apps", "controllerrevisions", "ControllerRevision", &[], true, false),
        "controllerrevisions",
        &CONTROLLER_REVISION,
    ),
    (("coordination.k8s.io", "leases", "Lease", &[], true, false), "leases", &LEASE),
    (
        ("discovery.k8s.io", "endpointslices", "EndpointSlice", &[], true, false),
        "endpointslices",
        &ENDPOINT_SLICE,
    ),
    (("rbac.authorization.k8s.io", "roles", "Role", &[], true, false), "roles", &ROLE),
    (
        ("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", &[], true, false),
        "rolebindings",
        &ROLE_BINDING,
    ),
    (
        ("networking.k8s.io", "networkpolicies", "NetworkPolicy", &["netpol"], true, false),
        "networkpolicies",
        &NETWORK_POLICY,
    ),
    (
        ("policy", "poddisruptionbudgets", "PodDisruptionBudget", &["pdb"], true, true),
        "poddisruptionbudgets",
        &BUDGET,
    ),
    (
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            &["crd", "crds"],
            false,
            true,
        ),
        "customresourcedefinitions",
        &DEFINITION,
    ),
];

/// All built-in kinds; every one of these groups is at `v1`.
pub(super) fn resources() -> Vec<Resource> {
    ROWS.iter()
        .map(|((group, plural, kind, short_names, namespaced, status), storage, rules)| Resource {
            group: (*group).to_owned(),
            version: "v1".to_owned(),
            plural: (*plural).to_owned(),
            singular: kind.to_lowercase(),
            kind: (*kind).to_owned(),
            list_kind: format!("{kind}List"),
            short_names: short_names.iter().map(|&name| name.to_owned()).collect(),
            namespaced: *namespaced,
            status: *status,
            storage: (*storage).to_owned(),
            nature: Nature::Builtin(rules),
        })
        .collect()
}
