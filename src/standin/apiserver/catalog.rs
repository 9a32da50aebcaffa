//! The kinds of object that are served: those built in, and those that stored CRDs declare.

use std::collections::BTreeMap;
use std::sync::Arc;

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
use serde_json::{Value, json};

use super::kinds::{from_core, to_core};
use super::object::through;

pub(super) mod discovery;

/// One kind of object at one version of its API.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) singular: String,
    pub(super) kind: String,
    pub(super) list_kind: String,
    pub(super) short_names: Vec<String>,
    pub(super) namespaced: bool,
    /// Whether `status` is written through a subresource only.
    pub(super) status: bool,
    /// The name under which its objects are stored: versions or groups may share it.
    pub(super) storage: String,
    pub(super) nature: Nature,
}

/// Where a kind comes from, and how it behaves.
#[derive(Debug, Clone)]
pub(super) enum Nature {
    Builtin(&'static Rules),
    /// The structural schema of this version.
    Custom(std::sync::Arc<Value>),
}

impl Resource {
    /// `pods`, or `searchclusters.stayput.dev`: its name in messages.
    pub(super) fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The `apiVersion` of its objects.
    pub(super) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The schema, if a CRD declares it.
    pub(super) fn schema(&self) -> Option<&Value> {
        match &self.nature {
            Nature::Builtin(_) => None,
            Nature::Custom(schema) => Some(schema),
        }
    }

    /// A PUT without `resourceVersion` overwrites the object.
    pub(super) fn unconditional_update(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(rules) if rules.unconditional_update)
    }

    /// A PUT of an object that does not exist creates it.
    pub(super) fn create_on_update(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(rules) if rules.create_on_update)
    }

    /// DELETE answers the object and not a `Status`.
    pub(super) fn returns_deleted(&self) -> bool {
        matches!(&self.nature, Nature::Builtin(rules) if rules.returns_deleted)
    }

    /// Whether `metadata.generation` counts changes of the spec.
    pub(super) fn has_generation(&self) -> bool {
        match &self.nature {
            Nature::Builtin(rules) => rules.generation,
            Nature::Custom(_) => true,
        }
    }

    /// The object as stored: checked, and without fields the kind does not have.
    pub(super) fn decode(&self, object: Value) -> Result<Value, String> {
        match &self.nature {
            Nature::Builtin(rules) => (rules.decode)(object),
            Nature::Custom(_) => Ok(object),
        }
    }

    /// The object as this version shows it.
    pub(super) fn encode(&self, object: &Value) -> Value {
        match &self.nature {
            Nature::Builtin(rules) => (rules.encode)(object),
            Nature::Custom(_) => {
                let mut object = object.clone();
                object["apiVersion"] = json!(self.api_version());
                object
            }
        }
    }
}

/// All kinds that are served.
#[derive(Debug)]
pub(super) struct Catalog {
    builtin: Vec<Resource>,
    /// Those of CRDs, by the CRD's name.
    custom: BTreeMap<String, Vec<Resource>>,
}

impl Catalog {
    pub(super) fn new() -> Self {
        Self { builtin: builtin_resources(), custom: BTreeMap::new() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Resource> {
        self.builtin.iter().chain(self.custom.values().flatten())
    }

    pub(super) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.all().find(|resource| {
            resource.group == group && resource.version == version && resource.plural == plural
        })
    }

    /// Whether the group is built in; for these the real server gives more details in errors.
    pub(super) fn is_builtin(&self, group: &str) -> bool {
        self.builtin.iter().any(|resource| resource.group == group)
    }

    /// Serves what the CRD `name` declares; with `None`, nothing any more.
    pub(super) fn declare(&mut self, name: &str, definition: Option<&Value>) {
        match definition {
            Some(definition) => self.custom.insert(name.to_owned(), custom_resources(definition)),
            None => self.custom.remove(name),
        };
    }

    /// The kinds whose objects live in the namespace that contains them.
    pub(super) fn namespaced_storages(&self) -> Vec<String> {
        self.all()
            .filter(|resource| resource.namespaced)
            .map(|resource| resource.storage.clone())
            .collect()
    }
}

// The kinds that are served without a CRD.

/// How the strategies of the real server differ by kind.
#[derive(Debug)]
pub(super) struct Rules {
    unconditional_update: bool,
    create_on_update: bool,
    returns_deleted: bool,
    generation: bool,
    decode: fn(Value) -> Result<Value, String>,
    encode: fn(&Value) -> Value,
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
fn builtin_resources() -> Vec<Resource> {
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

// The kinds that a `CustomResourceDefinition` declares.

/// One kind for every version that is served.
fn custom_resources(definition: &Value) -> Vec<Resource> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&names["kind"]);
    let (group, plural) = (text(&spec["group"]), text(&names["plural"]));
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == json!(true));
    served
        .map(|version| Resource {
            version: text(&version["name"]),
            singular: names["singular"].as_str().map_or_else(|| kind.to_lowercase(), str::to_owned),
            list_kind: names["listKind"].as_str().map_or(format!("{kind}List"), str::to_owned),
            kind: kind.clone(),
            short_names: names["shortNames"].as_array().into_iter().flatten().map(text).collect(),
            namespaced: spec["scope"] == json!("Namespaced"),
            status: version["subresources"]["status"].is_object(),
            storage: format!("{plural}.{group}"),
            nature: Nature::Custom(Arc::new(version["schema"]["openAPIV3Schema"].clone())),
            group: group.clone(),
            plural: plural.clone(),
        })
        .collect()
}
