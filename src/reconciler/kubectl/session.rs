//! The connection to the apiserver, with kubeconfig, context and namespace as kubectl finds them.

use std::ffi::OsString;
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::args::CommonArgs;
use super::exit::Exit;
use super::format::root_cause;
use super::options;

/// A client for the apiserver, its namespace and its user.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) namespace: String,
    /// The user's name in the kubeconfig. It is shown with a request and proves nothing.
    pub(super) user: Option<String>,
    /// The options with which kubectl finds the same apiserver and user.
    kubectl_options: Vec<OsString>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error(
        "no usable kubeconfig: {}; choose one with --kubeconfig or KUBECONFIG, and a context with \
         --context",
        cause(.0)
    )]
    Kubeconfig(#[source] KubeconfigError),
    #[error(
        "the credentials in the kubeconfig cannot be used: {}; check with `kubectl cluster-info`",
        root_cause(&**.0)
    )]
    Credentials(#[source] Box<kube::Error>),
}

/// Why, with the file's path where it is about a file.
fn cause(error: &KubeconfigError) -> String {
    let cause = root_cause(error);
    if let KubeconfigError::ReadConfig(_, path) = error {
        return format!("{}: {cause}", path.display());
    }
    cause
}

impl SessionError {
    pub(super) const fn exit(&self) -> Exit {
        match self {
            Self::Kubeconfig(_) | Self::Credentials(_) => Exit::Usage,
        }
    }
}

impl Session {
    /// Reads the kubeconfig. Without one, the pod's own service account is used.
    pub(super) async fn new(common: &CommonArgs) -> Result<Self, SessionError> {
        let chosen = KubeConfigOptions { context: common.context.clone(), ..Default::default() };
        let (mut config, user) = match kubeconfig(common.kubeconfig.as_deref()) {
            Ok(kubeconfig) => {
                let user = user(&kubeconfig, common.context.as_deref());
                let config = Config::from_custom_kubeconfig(kubeconfig, &chosen).await;
                (config.map_err(SessionError::Kubeconfig)?, user)
            }
            Err(error) => match Config::incluster() {
                Ok(config) if common.kubeconfig.is_none() && common.context.is_none() => {
                    (config, None)
                }
                Ok(_) | Err(_) => return Err(SessionError::Kubeconfig(error)),
            },
        };
        if let Some(namespace) = &common.namespace {
            config.default_namespace.clone_from(namespace);
        }
        let namespace = config.default_namespace.clone();
        let client =
            Client::try_from(config).map_err(|error| SessionError::Credentials(Box::new(error)))?;
        Ok(Self { client, namespace, user, kubectl_options: options::given(common) })
    }

    pub(super) fn kubectl_options(&self) -> &[OsString] {
        &self.kubectl_options
    }

    /// The same, for commands that a person types.
    pub(super) fn options_in_shell(&self) -> String {
        options::in_shell(&self.kubectl_options)
    }
}

fn kubeconfig(file: Option<&Path>) -> Result<Kubeconfig, KubeconfigError> {
    file.map_or_else(Kubeconfig::read, Kubeconfig::read_from)
}

fn user(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|named| named.name == name)?;
    named.context.as_ref()?.user.clone()
}
