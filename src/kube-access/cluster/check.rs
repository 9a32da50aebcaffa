//! Checks the spec: reports all problems at once, each with what to write instead.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use glob::Pattern;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::Selector;
use rustls_pki_types::ServerName;
use stayput_api::Span;
use stayput_declare as declare;
use stayput_pod_update::SourceKind;
use stayput_restart::{Disabled, Drain, Policy, Share, UpdateStep, annotation};

use crate::cluster::connect::{Engine, Manager, ManagerAuth, Scheme};
use crate::cluster::declared::SET;
use crate::cluster::restart::{RestartSpec, WindowSpec, Windows};
use crate::cluster::sources::{Auth, Live, Part, Sources};
use crate::cluster::spec::{
    Config, Item, Pods, SearchCluster, SearchClusterSpec, Source, UpdateMode, UpdateSpec,
};

/// A problem of one field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Invalid {
    /// Path of the field, such as `spec.restart.drain`.
    pub field: String,
    /// The problem, and what to write instead.
    pub problem: String,
}

/// A valid spec.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Rules of restarts and updates.
    pub policy: Policy,
    /// Finds the pods; never empty.
    pub pods: Selector,
    /// How we authenticate to the managers.
    pub auth: Auth,
    /// Sources of the engine's config; empty if `spec.config.sources` is.
    pub sources: Sources,
}

impl SearchCluster {
    /// The usable part of an invalid spec, to finish restarts under way, if it defines the pods and their
    /// managers. An invalid field has its default; invalid sources count as not known.
    pub fn salvage(&self) -> Option<Checked> {
        let spec = self.completed_spec();
        let mut problems = Problems::default();
        let pods = problems.pods(&spec.pods)?;
        let auth = problems.manager(&spec.manager)?;
        let mut faults = Problems::default();
        let sources = Some(faults.config(&spec.config)).filter(|_| faults.0.is_empty());
        let sources = sources.unwrap_or_default();
        let mut faults = Problems::default();
        let policy = Some(self.restart(&mut faults, &spec));
        let policy = policy.filter(|_| faults.0.is_empty()).unwrap_or_default();
        Some(Checked { policy, pods, auth, sources })
    }

    /// Names of predicates that an annotation disables.
    pub fn disabled_by_annotation(&self) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(annotation::DISABLE).map(String::as_str)
    }

    fn restart(&self, problems: &mut Problems, spec: &SearchClusterSpec) -> Policy {
        let mut policy = problems.restart(&spec.restart);
        policy.update = problems.update(&spec.update);
        let disabled = self.disabled_by_annotation().map(Disabled::by_annotation);
        policy.disabled = disabled.unwrap_or_default();
        policy
    }

    /// Checks what the schema cannot check, and repeats what it can: an object may be older than the schema.
    ///
    /// # Errors
    /// All problems of the spec.
    pub fn check(&self) -> Result<Checked, Vec<Invalid>> {
        let mut problems = Problems::default();
        problems.declared(self);
        let spec = self.completed_spec();
        let pods = problems.pods(&spec.pods);
        problems.engine(&spec.engine);
        let auth = problems.manager(&spec.manager);
        let sources = problems.config(&spec.config);
        let policy = self.restart(&mut problems, &spec);
        match (pods, auth) {
            (Some(pods), Some(auth)) if problems.0.is_empty() => {
                Ok(Checked { policy, pods, auth, sources })
            }
            _ => Err(problems.0),
        }
    }
}

#[derive(Default)]
struct Problems(Vec<Invalid>);

impl Problems {
    fn add(&mut self, field: impl std::fmt::Display, problem: impl Into<String>) {
        self.0.push(Invalid { field: format!("spec.{field}"), problem: problem.into() });
    }

    fn pods(&mut self, pods: &Pods) -> Option<Selector> {
        let field = "pods.selector";
        let labels = pods.selector.match_labels.iter().flatten().count();
        let expressions = pods.selector.match_expressions.iter().flatten().count();
        if labels + expressions == 0 {
            self.add(
                field,
                "is empty and would find every pod of the namespace: write a label under matchLabels",
            );
            return None;
        }
        Selector::try_from(pods.selector.clone())
            .map_err(|error| {
                self.add(
                    field,
                    format!("{error}: use the operators In, NotIn, Exists and DoesNotExist"),
                );
            })
            .ok()
    }

    fn engine(&mut self, engine: &Engine) {
        if engine.scheme == Scheme::Https && engine.ca_secret.is_none() {
            self.add(
                "engine.caSecret",
                "is missing: name the Secret whose ca.crt is the CA of the engine's certificates, or \
                 set engine.scheme to http",
            );
        }
        if engine.scheme == Scheme::Http
            && engine.credentials_secret.is_some()
            && engine.ca_secret.is_none()
            && !engine.allow_plain_credentials
        {
            self.add(
                "engine.credentialsSecret",
                "would be sent over plain http, where it can be read on the network: set engine.scheme to \
                 https, or engine.allowPlainCredentials to true",
            );
        }
        if let Some(name) = &engine.server_name {
            self.server_name("engine.serverName", name);
        }
    }

    fn manager(&mut self, manager: &Manager) -> Option<Auth> {
        self.server_name("manager.serverName", &manager.server_name);
        if manager.ca_secret.is_empty() {
            self.add(
                "manager.caSecret",
                "is missing: name the Secret whose ca.crt is the CA of the managers' certificates",
            );
        }
        let ManagerAuth { service_account_token, jwt_key_secret, client_certificate_secret } =
            &manager.auth;
        match (service_account_token, jwt_key_secret, client_certificate_secret) {
            (Some(_), None, None) => Some(Auth::ServiceAccountToken),
            (None, Some(secret), None) => Some(Auth::JwtKey { secret: secret.clone() }),
            (None, None, Some(secret)) => Some(Auth::ClientCertificate { secret: secret.clone() }),
            _ => {
                self.add(
                    "manager.auth",
                    "needs exactly one of serviceAccountToken, jwtKeySecret and \
                     clientCertificateSecret: write serviceAccountToken: {} if in doubt",
                );
                None
            }
        }
    }

    fn server_name(&mut self, field: &str, name: &str) {
        if ServerName::try_from(name).is_err() {
            self.add(
                field,
                format!("{name:?} is no name of a server: write the DNS name in its certificate"),
            );
        }
    }

    fn config(&mut self, config: &Config) -> Sources {
        let mut parts: Vec<Part> = Vec::new();
        for (at, source) in config.sources.iter().enumerate() {
            let field = format!("config.sources[{at}]");
            if let Some(part) = self.source(&field, source) {
                if parts.contains(&part) {
                    self.add(&field, "is there twice: remove it");
                }
                parts.push(part);
            }
        }
        let named = parts.iter().any(|part| !part.directory.is_empty());
        if named && parts.iter().any(|part| part.directory.is_empty()) {
            self.add(
                "config.sources",
                "some have a directory and some have none: a manager with several config \
                 directories has a name for each, so write the names of its --config NAME=DIR",
            );
        }
        let mut live = Vec::new();
        for (at, glob) in config.live.iter().enumerate() {
            match Pattern::new(glob) {
                Ok(pattern) => live.push(pattern),
                Err(error) => self.add(
                    format!("config.live[{at}]"),
                    format!("{glob:?} is no pattern: {} at character {}", error.msg, error.pos),
                ),
            }
        }
        Sources { parts, live: Live(live) }
    }

    fn source(&mut self, field: &str, source: &Source) -> Option<Part> {
        for (at, item) in source.items.iter().enumerate() {
            self.item(&format!("{field}.items[{at}]"), item);
        }
        let (kind, template) = match (&source.secret, &source.config_map) {
            (Some(secret), None) => (SourceKind::Secret, secret),
            (None, Some(config_map)) => (SourceKind::ConfigMap, config_map),
            _ => {
                self.add(field, "needs exactly one of secret and configMap");
                return None;
            }
        };
        let rest = template.replace("{pod}", "").replace(SET, "");
        if rest.contains(['{', '}']) {
            self.add(
                field,
                format!(
                    "{template:?} has a brace that is no {{pod}}: only the pod's name can be put in"
                ),
            );
        }
        let items = source.items.iter().map(|item| (item.key.clone(), item.path.clone())).collect();
        let directory = source.directory.clone();
        if directory.starts_with('.') || directory.contains('/') {
            self.add(
                format!("{field}.directory"),
                format!(
                    "{directory:?} is no name of a config directory: write the NAME of the \
                         manager's --config NAME=DIR"
                ),
            );
        }
        Some(Part { kind, template: template.clone(), items, directory, optional: false })
    }

    fn item(&mut self, field: &str, item: &Item) {
        let odd = |part: &str| part.is_empty() || part == "." || part.starts_with("..");
        if item.path.split('/').any(odd) {
            self.add(
                format!("{field}.path"),
                format!(
                    "{:?} is no path below the directory: write one such as \"certs/node.crt\"",
                    item.path
                ),
            );
        }
    }
}

impl Problems {
    pub(crate) fn restart(&mut self, restart: &RestartSpec) -> Policy {
        let max_unavailable = self.share("restart.maxUnavailable", &restart.max_unavailable);
        let mut max_unavailable_of_role = BTreeMap::new();
        for (role, share) in &restart.max_unavailable_of_role {
            let field = format!("restart.maxUnavailableOfRole.{role}");
            if role.is_empty() || role.trim() != role {
                self.add(&field, format!("{role:?} is no role: write one such as data_hot"));
            }
            if let Some(share) = self.share(&field, share) {
                max_unavailable_of_role.insert(role.clone(), share);
            }
        }
        let phase_timeout = self.duration("restart.phaseTimeout", &restart.phase_timeout);
        let drain = match restart.drain.as_str() {
            "auto" => Some(Drain::Auto),
            span => self.duration("restart.drain", span).map(Drain::Fixed),
        };
        if let (Some(timeout), Some(drain)) = (phase_timeout, drain)
            && drain.longest() >= timeout
        {
            self.add(
                "restart.drain",
                format!(
                    "{} leaves nothing of restart.phaseTimeout, {}: make it shorter",
                    humantime::format_duration(Duration::from_millis(drain.longest())),
                    restart.phase_timeout
                ),
            );
        }
        self.windows(&restart.windows);
        Policy {
            max_unavailable: max_unavailable.unwrap_or(Share::Nodes(1)),
            max_unavailable_of_role,
            zone_attribute: restart.zone_attribute.clone(),
            allow_outage: restart.allow_outage,
            phase_timeout: phase_timeout.unwrap_or_default(),
            drain: drain.unwrap_or(Drain::Auto),
            on_config_change: restart.on_config_change,
            rollback: restart.rollback,
            ..Policy::default()
        }
    }

    fn windows(&mut self, all: &[WindowSpec]) {
        for (index, written) in all.iter().enumerate() {
            if let Err(invalid) = Windows::default().add(written) {
                let field = format!("restart.windows[{index}].{}", invalid.field);
                self.add(field, invalid.problem);
            }
        }
    }

    fn share(&mut self, field: &str, written: &IntOrString) -> Option<Share> {
        let share = match written {
            IntOrString::Int(nodes) => Share::nodes(i64::from(*nodes)),
            IntOrString::String(text) => Share::percent(text),
        };
        share.map_err(|problem| self.add(field, problem.to_string())).ok()
    }

    fn duration(&mut self, field: &str, text: &str) -> Option<u64> {
        Span::parse(text)
            .map(|span| span.0)
            .map_err(|problem| self.add(field, problem.to_string()))
            .ok()
    }
}

impl Problems {
    /// The steps that are carried out; empty if the mode is off.
    pub(crate) fn update(&mut self, update: &UpdateSpec) -> BTreeSet<UpdateStep> {
        match update.mode {
            UpdateMode::Off => return BTreeSet::new(),
            UpdateMode::InPlace if update.allow.is_empty() => self.add(
                "update.allow",
                "is empty, so that nothing could ever be carried out: name steps such as relabel \
                 and container, or set update.mode to off",
            ),
            UpdateMode::InPlace => {}
        }
        update.allow.iter().map(|step| (*step).into()).collect()
    }
}

impl Problems {
    /// Checks the fields of a declared cluster, in the spec as it is written.
    pub(crate) fn declared(&mut self, cluster: &SearchCluster) {
        let spec = &cluster.spec;
        if !cluster.is_declared() {
            let engine = &spec.engine;
            let declared = [
                ("distribution", engine.distribution.is_some()),
                ("version", engine.version.is_some()),
                ("image", engine.image.is_some()),
            ];
            for (field, _) in declared.into_iter().filter(|(_, is_written)| *is_written) {
                self.add(
                    format!("engine.{field}"),
                    "is for spec.nodeSets: without them it is read from the engine. Take it out",
                );
            }
            if engine.warm {
                self.add(
                    "engine.warm",
                    "is for spec.nodeSets: into pods that are made elsewhere, kubectl stayput inject \
                     --warm writes what makes the archive. Take it out",
                );
            }
            return;
        }
        // The pods of the completed spec are ours, and so no mistake.
        if !spec.pods.is_unset() && spec.pods != cluster.completed_spec().pods {
            self.add("pods", "is for nodes that are made elsewhere: take it or nodeSets out");
        }
        match cluster.declaration("") {
            Some(declaration) => {
                for refusal in declare::check(&declaration) {
                    self.0.push(Invalid { field: refusal.field, problem: refusal.problem });
                }
            }
            None => self.add(
                "engine",
                "does not say what to run: write distribution (elasticsearch or opensearch) and \
                 version (such as 2.19.3)",
            ),
        }
    }
}
