//! From kubeconfig, context and namespace to a client, as kubectl finds them.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::apiserver::root_cause;
use super::args::Common;
use super::failure::Failure;

/// A client, and who and where we are.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) namespace: String,
    /// The kubeconfig's name for us: for people who read requests.
    pub(super) user: Option<String>,
}

impl Session {
    /// Reads the kubeconfig; without one, a pod's own service account is taken.
    pub(super) async fn new(common: &Common) -> Result<Self, Failure> {
        let options = KubeConfigOptions { context: common.context.clone(), ..Default::default() };
        let (mut config, user) = match kubeconfig(common.kubeconfig.as_deref()) {
            Ok(kubeconfig) => {
                let user = user(&kubeconfig, common.context.as_deref());
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                let config = config.map_err(|error| unusable(&error))?;
                (config, user)
            }
            Err(error) => match Config::incluster() {
                Ok(config) if common.kubeconfig.is_none() && common.context.is_none() => {
                    (config, None)
                }
                Ok(_) | Err(_) => return Err(unusable(&error)),
            },
        };
        if let Some(namespace) = &common.namespace {
            config.default_namespace.clone_from(namespace);
        }
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).map_err(|error| {
            Failure::Usage(format!(
                "the kubeconfig's credentials cannot be used: {}; try `kubectl cluster-info`",
                root_cause(&error)
            ))
        })?;
        Ok(Self { client, namespace, user })
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

fn unusable(error: &KubeconfigError) -> Failure {
    Failure::Usage(format!(
        "no usable kubeconfig: {}; name one with --kubeconfig or KUBECONFIG, and a context with \
         --context",
        root_cause(error)
    ))
}
