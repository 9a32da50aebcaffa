//! Errors of calls and watches, and what to do about them.

use kube::core::Status;
use kube::core::response::StatusCause;
use kube::runtime::watcher;
use stayput_restart::foreign_text;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// Another client wrote first: read again.
    #[error("{call} of {object}: {}", message(.source))]
    Conflict {
        call: &'static str,
        object: String,
        #[source]
        source: kube::Error,
    },
    /// There is no such object.
    #[error("{call} of {object}: {}", message(.source))]
    NotFound {
        call: &'static str,
        object: String,
        #[source]
        source: kube::Error,
    },
    /// A role is missing. What admission refuses is [`Self::Refused`].
    #[error(
        "{call} of {object}: {}; give the reconciler's service account the roles of {}",
        message(.source),
        folder_of(call)
    )]
    Forbidden {
        call: &'static str,
        object: String,
        #[source]
        source: kube::Error,
    },
    /// The apiserver refused for another reason.
    #[error("{call} of {object}: {}", message(.source))]
    Refused {
        call: &'static str,
        object: String,
        #[source]
        source: kube::Error,
    },
    /// The apiserver has no time for us, or cannot answer now; the call may have had its effect.
    #[error("{call} of {object}: {}", message(.source))]
    Overloaded {
        call: &'static str,
        object: String,
        #[source]
        source: kube::Error,
    },
    /// No answer, or none that can be read; the call may have had its effect.
    #[error("cannot reach the apiserver for {call} of {object}: {source}")]
    Unreachable {
        call: &'static str,
        object: String,
        #[source]
        source: kube::Error,
    },
    /// No answer in time; the call may have had its effect.
    #[error("no answer of the apiserver to {call} of {object} within {seconds} s")]
    Timeout { call: &'static str, object: String, seconds: u64 },
    /// A request for a token was answered without one.
    #[error("the apiserver returned no token of {object}")]
    EmptyToken { object: String },
}

impl ApiError {
    /// The error of a call, by the code and the message of the answer.
    pub(super) fn of(call: &'static str, object: &str, source: kube::Error) -> Self {
        let object = object.to_owned();
        let kube::Error::Api(status) = &source else {
            return Self::Unreachable { call, object, source };
        };
        match status.code {
            409 | 410 => Self::Conflict { call, object, source },
            // A JSON patch with a failed `test`; the message about an invalid object names that object.
            422 if is_patch(call) && !names_an_object(status) && !is_of_admission(status) => {
                Self::Conflict { call, object, source }
            }
            404 => Self::NotFound { call, object, source },
            403 if is_about_roles(status) => Self::Forbidden { call, object, source },
            429 | 503 | 504 => Self::Overloaded { call, object, source },
            _ => Self::Refused { call, object, source },
        }
    }

    /// Status code of an ordinary refusal.
    fn code_of_refusal(&self) -> Option<u16> {
        match self {
            Self::Refused { source: kube::Error::Api(status), .. } => Some(status.code),
            _ => None,
        }
    }

    pub(crate) const fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// True if the apiserver cannot be reached, or has no time; any other refusal is an answer.
    pub(crate) const fn is_no_answer(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Timeout { .. } | Self::Overloaded { .. })
    }

    /// True if the apiserver failed itself, which says nothing about the object.
    pub(crate) fn is_server_error(&self) -> bool {
        self.code_of_refusal().is_some_and(|code| code >= 500)
    }

    /// True if the apiserver does not accept our credentials.
    pub(crate) fn is_unauthorized(&self) -> bool {
        self.code_of_refusal() == Some(401)
    }

    /// True if the apiserver's own rules let nobody give an existing pod this size. Admission may answer with
    /// the same code: policies do, unless they name another, and so may webhooks. They would refuse another
    /// pod of this size as well.
    pub(crate) fn is_size_of_no_living_pod(&self) -> bool {
        let Self::Refused { source: kube::Error::Api(status), .. } = self else { return false };
        let causes = status.details.as_ref().map(|details| details.causes.as_slice());
        let causes = causes.unwrap_or_default();
        status.code == 422
            && !is_of_admission(status)
            && !causes.is_empty()
            && causes.iter().all(is_of_size)
    }

    pub(crate) const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden { .. })
    }

    pub(crate) const fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// True if the call may have sent a JSON patch; `write_status` also writes the status as a whole.
fn is_patch(call: &str) -> bool {
    call.contains("patch_") || call == "write_status"
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

/// Directory with the roles for a call; deleting pods has one of its own.
fn folder_of(call: &str) -> &'static str {
    match call {
        "delete_pod" | "try_to_delete_pod" | "try_to_create_pod" | "get_claim" | "get_volume"
        | "get_node" | "list_pods_on_node" => {
            "deploy/replace (spec.update.allow has replace, which deletes pods)"
        }
        "list_claims" => "deploy/declared.yaml in this namespace, as `kubectl stayput init` does",
        "renew" => "`kubectl stayput init`, for these objects alone",
        _ => "deploy/ in this namespace, as `kubectl stayput init` does",
    }
}

/// The message of the apiserver, or of a webhook that it called.
fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => foreign_text(&status.message),
        other => other.to_string(),
    }
}

/// The message for a watch of `what` that fails: why, and what to do about it.
pub(crate) fn watch_error(what: &str, namespace: Option<&str>, error: &watcher::Error) -> String {
    let of = namespace.map_or("all namespaces".to_owned(), |name| format!("namespace {name}"));
    let (watcher::Error::InitialListFailed(cause)
    | watcher::Error::WatchStartFailed(cause)
    | watcher::Error::WatchFailed(cause)) = error
    else {
        return format!("cannot watch the {what} of {of}: {error}");
    };
    match cause {
        kube::Error::Api(status) if status.code == 403 => format!(
            "not allowed to list and watch the {what} of {of}: {}; give the reconciler's service \
             account the roles of deploy/ there, as `kubectl stayput init` does in one namespace",
            status.message
        ),
        _ => format!("cannot watch the {what} of {of}: {error}"),
    }
}
