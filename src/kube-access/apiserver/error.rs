//! Errors of calls, and what to do about them.

use kube::core::Status;
use kube::core::response::StatusCause;
use stayput_restart::foreign_text;

use super::{Call, Caller};

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The apiserver, or a webhook that it called, refused.
    #[error("{}", refusal(call, status))]
    Refused { call: Box<Call>, status: Box<Status> },
    /// No answer, or none that can be read; the call may have had its effect.
    #[error("{}", unreachable(call, source))]
    Unreachable { call: Box<Call>, source: Box<kube::Error> },
    /// No answer in time; the call may have had its effect.
    #[error("the apiserver did not answer within {} s: {call}", call.caller.time_limit().as_secs())]
    Timeout { call: Box<Call> },
    /// An answer without something that was asked for.
    #[error("the apiserver's answer has no {0}")]
    Incomplete(String),
    /// The object cannot be encoded.
    #[error("the object cannot be sent: {0}")]
    InvalidObject(#[from] serde_json::Error),
    /// The pods of a SearchCluster are unknown.
    #[error("the spec of SearchCluster {cluster} is invalid: {}", faults.join("; "))]
    InvalidSpec { cluster: String, faults: Vec<String> },
}

impl ApiError {
    /// The error of a call.
    pub fn of(call: &Call, source: kube::Error) -> Self {
        let call = Box::new(call.clone());
        match source {
            kube::Error::Api(status) => Self::Refused { call, status },
            source => Self::Unreachable { call, source: Box::new(source) },
        }
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => Some(status),
            _ => None,
        }
    }

    fn code(&self) -> Option<u16> {
        self.refusal().map(|status| status.code)
    }

    /// True if another client wrote first, so that the object must be read again: also if a `test` of a JSON
    /// patch does not hold. The refusal of an invalid object has the same code, and names that object.
    pub fn is_conflict(&self) -> bool {
        let Self::Refused { call, status } = self else { return false };
        match status.code {
            409 | 410 => true,
            422 => call.verb == "patch" && !names_an_object(status) && !is_of_admission(status),
            _ => false,
        }
    }

    /// True for the answer to a JSON patch whose `test` does not hold, or that would make an object that the
    /// apiserver does not accept.
    pub fn is_unprocessable(&self) -> bool {
        self.code() == Some(422)
    }

    /// True if there is no such object.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// True if a role is missing; false for a refusal by admission.
    pub fn is_forbidden(&self) -> bool {
        self.refusal().is_some_and(|status| status.code == 403 && is_about_roles(status))
    }

    /// True if the apiserver does not accept our credentials.
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401)
    }

    /// True if a retry of a watch would fail in the same way.
    pub fn is_permanent(&self) -> bool {
        matches!(self.code(), Some(401 | 403 | 404))
    }

    /// True if the apiserver cannot be reached, or has no time; any other refusal is an answer.
    pub fn is_no_answer(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            _ => matches!(self.code(), Some(429 | 503 | 504)),
        }
    }

    /// True if the apiserver failed itself, which says nothing about the object.
    pub fn is_server_error(&self) -> bool {
        self.code().is_some_and(|code| code >= 500)
    }

    /// True if the apiserver's own rules let nobody give an existing pod this size. Admission may answer with
    /// the same code: policies do, unless they name another, and so may webhooks. They would refuse another
    /// pod of this size as well.
    pub fn is_size_of_no_living_pod(&self) -> bool {
        let Self::Refused { status, .. } = self else { return false };
        let causes = status.details.as_ref().map(|details| details.causes.as_slice());
        let causes = causes.unwrap_or_default();
        status.code == 422
            && !self.is_conflict()
            && !is_of_admission(status)
            && !causes.is_empty()
            && causes.iter().all(is_of_size)
    }
}

/// True if authorization refused the call. Admission answers with the same code and reason: policies,
/// LimitRanges, ResourceQuotas. Only authorization names the user, and what that user cannot do.
fn is_about_roles(status: &Status) -> bool {
    status.message.contains("User \"") && status.message.contains(" cannot ")
}

/// True if a webhook or a policy has refused: the apiserver says so before their own words.
fn is_of_admission(status: &Status) -> bool {
    ["admission webhook", "AdmissionPolicy"].iter().any(|one| status.message.contains(one))
}

/// True if the cause is the size of a living pod: of one container, or of the pod as a whole
/// (`ValidatePodResize` of `k8s.io/kubernetes/pkg/apis/core/validation`).
fn is_of_size(cause: &StatusCause) -> bool {
    let is_of_container = cause.field.starts_with("spec.") && cause.field.contains(".resources");
    let of_pod = ["QOS Class may not change", "without support for resize", "cannot be resized"];
    is_of_container || of_pod.iter().any(|one| cause.message.contains(one))
}

fn names_an_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

fn unreachable(call: &Call, source: &kube::Error) -> String {
    let cause = root_cause(source);
    let remedy = match call.caller {
        Caller::Reconciler => "",
        Caller::Kubectl => "; check with `kubectl cluster-info`",
    };
    format!("cannot reach the apiserver to {call}: {cause}{remedy}")
}

/// The innermost cause of an error: the outer ones of the HTTP client only say that a request failed.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn refusal(call: &Call, status: &Status) -> String {
    let message = foreign_text(&status.message);
    let told = match call.caller {
        Caller::Reconciler => is_about_roles(status).then(|| {
            let folder = folder_of(call);
            format!(
                "not allowed to {call}: {message}; give the reconciler's service account the roles of \
                 {folder}"
            )
        }),
        Caller::Kubectl => for_a_person(call, status.code, &message),
    };
    told.unwrap_or_else(|| format!("the apiserver refused to {call}: {message}"))
}

/// Directory with the roles for a call of the reconciler; replacing pods has one of its own.
fn folder_of(call: &Call) -> &'static str {
    match (call.verb, call.resource.as_str(), &call.namespace) {
        ("create" | "delete", "pods", _)
        | ("list", "pods", None)
        | ("get", "persistentvolumeclaims" | "persistentvolumes" | "nodes", _) => {
            "deploy/replace (spec.update.allow has replace, which deletes pods)"
        }
        ("list", "persistentvolumeclaims", _) => {
            "deploy/declared.yaml in this namespace, as `kubectl stayput init` does"
        }
        ("patch", "secrets" | "configmaps", _) => "`kubectl stayput init`, for these objects alone",
        _ => "deploy/ in this namespace, as `kubectl stayput init` does",
    }
}

/// The meaning of a refusal for a person, and what to do about it.
fn for_a_person(call: &Call, code: u16, message: &str) -> Option<String> {
    let Call { verb, resource, namespace, .. } = call;
    match code {
        401 => Some(format!(
            "the apiserver does not accept your credentials ({message}): log in again, or choose \
             another --context"
        )),
        403 => {
            let role = if namespace.is_some() { "Role there" } else { "ClusterRole" };
            Some(format!(
                "you may not {call}: ask for a {role} with the verb {verb} on {resource}; the \
                 apiserver says: {message}"
            ))
        }
        // It is the resource that does not exist: a list is empty rather than not found, and an object that
        // may be absent is asked for by `find`.
        404 if ["list", "get"].contains(verb) && resource == "searchclusters.stayput.dev" => Some(
            "this Kubernetes has no resource SearchCluster: install the reconciler first, `kubectl \
             apply -k deploy/`"
                .into(),
        ),
        404 if *verb == "list" => Some(format!("this Kubernetes has no {resource}: {message}")),
        404 => Some(format!("it no longer exists: {message}")),
        _ => None,
    }
}
