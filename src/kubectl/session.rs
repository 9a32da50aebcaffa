//! The connection to the apiserver, with kubeconfig, context and namespace as kubectl finds them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, io};

use kube::config::{Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use stayput_kube_access::read_limits::limited;

use crate::args::CommonArgs;
use crate::exit::Exit;
use crate::format::root_cause;
use crate::options;
use crate::proxy::{ProxyError, proxy};

/// A client for the apiserver, its namespace and its user.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// The user's name in the kubeconfig. It is shown with a request and proves nothing.
    pub(crate) user: Option<String>,
    /// The options with which kubectl finds the same apiserver and user.
    kubectl_options: Vec<OsString>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error(
        "no usable kubeconfig: {}; choose one with --kubeconfig or KUBECONFIG, and a context with \
         --context",
        cause(.0)
    )]
    Kubeconfig(#[source] KubeconfigError),
    #[error(
        "there is no kubeconfig ({}), and no service account as in a pod; choose a kubeconfig with \
         --kubeconfig or KUBECONFIG",
        listed(.0)
    )]
    NoKubeconfig(Vec<PathBuf>),
    #[error("{0}; it is proxy-url in the kubeconfig, or HTTPS_PROXY in the environment")]
    Proxy(#[from] ProxyError),
    #[error(
        "the credentials in the kubeconfig cannot be used: {}; check with `kubectl cluster-info`",
        root_cause(&**.0)
    )]
    Credentials(#[source] Box<kube::Error>),
}

fn listed(files: &[PathBuf]) -> String {
    let files = files.iter().map(|file| file.display().to_string());
    files.collect::<Vec<_>>().join(", ")
}

/// The error's cause, with the file or name that it is about.
fn cause(error: &KubeconfigError) -> String {
    let cause = root_cause(error);
    match error {
        KubeconfigError::ReadConfig(_, path) => format!("{}: {cause}", path.display()),
        KubeconfigError::ParseProxyUrl(_) => format!("proxy-url or HTTPS_PROXY: {cause}"),
        KubeconfigError::ParseNoProxy(_) => format!("NO_PROXY: {cause}"),
        _ => cause,
    }
}

impl SessionError {
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Kubeconfig(_) | Self::NoKubeconfig(_) | Self::Proxy(_) | Self::Credentials(_) => {
                Exit::Usage
            }
        }
    }
}

impl Session {
    /// Reads the kubeconfig. Without any, the pod's own service account is used.
    pub(crate) async fn new(common: &CommonArgs) -> Result<Self, SessionError> {
        let context = common.context.as_deref();
        let files = files(env::var_os("KUBECONFIG"), env::home_dir());
        let read = match &common.kubeconfig {
            Some(file) => Kubeconfig::read_from(file),
            None => merged(&files),
        };
        let read = read.map_err(SessionError::Kubeconfig)?;
        let is_chosen = common.kubeconfig.is_some() || common.context.is_some();
        let (config, user, proxy_url) = if is_chosen || names_clusters(&read) {
            let user = context_of(&read, context).and_then(|context| context.user.clone());
            let proxy_url = cluster_of(&read, context).and_then(|one| one.proxy_url.clone());
            let options =
                KubeConfigOptions { context: common.context.clone(), ..Default::default() };
            let config = Config::from_custom_kubeconfig(read, &options).await;
            (config.map_err(SessionError::Kubeconfig)?, user, proxy_url)
        } else {
            (Config::incluster().map_err(|_| SessionError::NoKubeconfig(files))?, None, None)
        };
        let mut config = limited(config);
        let variable = |name: &str| env::var(name).ok();
        config.proxy_url = proxy(&config.cluster_url, proxy_url.as_deref(), variable)?;
        if let Some(namespace) = &common.namespace {
            config.default_namespace.clone_from(namespace);
        }
        let namespace = config.default_namespace.clone();
        let client =
            Client::try_from(config).map_err(|error| SessionError::Credentials(Box::new(error)))?;
        Ok(Self { client, namespace, user, kubectl_options: options::given(common) })
    }

    pub(crate) fn kubectl_options(&self) -> &[OsString] {
        &self.kubectl_options
    }

    /// The options of kubectl for the same apiserver and user, for commands that a person types.
    pub(crate) fn options_in_shell(&self) -> String {
        options::in_shell(&self.kubectl_options)
    }
}

/// The content of the files, merged as kubectl does it. An absent file counts as empty.
fn merged(files: &[PathBuf]) -> Result<Kubeconfig, KubeconfigError> {
    files.iter().try_fold(Kubeconfig::default(), |merged, file| match Kubeconfig::read_from(file) {
        Ok(next) => merged.merge(next),
        Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(merged)
        }
        Err(error) => Err(error),
    })
}

/// The files in which kubectl looks.
fn files(listed: Option<OsString>, home: Option<PathBuf>) -> Vec<PathBuf> {
    let listed = listed.unwrap_or_default();
    let files = env::split_paths(&listed).filter(|file| !file.as_os_str().is_empty());
    let files: Vec<PathBuf> = files.collect();
    if files.is_empty() {
        home.map(|home| home.join(".kube/config")).into_iter().collect()
    } else {
        files
    }
}

/// True unless all files are absent or empty: then there is no kubeconfig.
fn names_clusters(kubeconfig: &Kubeconfig) -> bool {
    !kubeconfig.clusters.is_empty() || !kubeconfig.contexts.is_empty()
}

fn context_of<'a>(kubeconfig: &'a Kubeconfig, chosen: Option<&str>) -> Option<&'a Context> {
    let name = chosen.or(kubeconfig.current_context.as_deref())?;
    kubeconfig.contexts.iter().find(|named| named.name == name)?.context.as_ref()
}

fn cluster_of<'a>(kubeconfig: &'a Kubeconfig, chosen: Option<&str>) -> Option<&'a Cluster> {
    let name = &context_of(kubeconfig, chosen)?.cluster;
    kubeconfig.clusters.iter().find(|named| named.name == *name)?.cluster.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only where there is no kubeconfig is the pod's own service account used: a wrong one must not lead to
    /// another cluster.
    #[test] // proves UPDATE-45
    fn what_is_absent_has_nothing_and_what_is_wrong_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = directory.path().join(name);
            std::fs::write(&file, text).unwrap();
            file
        };
        let absent = directory.path().join("absent");
        let named =
            file("named", "current-context: a\ncontexts: [{name: a, context: {cluster: b}}]");
        let empty = file("empty", "");
        let wrong = file("wrong", "contexts: {");
        let is_named = |files: &[&PathBuf]| {
            let files: Vec<PathBuf> = files.iter().copied().cloned().collect();
            merged(&files).map(|merged| names_clusters(&merged)).ok()
        };
        assert_eq!(is_named(&[&absent, &named, &absent]), Some(true));
        assert_eq!(is_named(&[&absent, &empty]), Some(false));
        assert_eq!(is_named(&[&named, &wrong]), None);
        assert_eq!(is_named(&[&directory.path().to_owned()]), None);
    }

    #[test]
    fn the_variable_counts_before_the_home() {
        let home = || Some(PathBuf::from("/home/a"));
        assert_eq!(files(Some(":/a::/b".into()), home()), [PathBuf::from("/a"), "/b".into()]);
        assert_eq!(files(Some("".into()), home()), [PathBuf::from("/home/a/.kube/config")]);
        assert!(files(None, None).is_empty());
    }
}
