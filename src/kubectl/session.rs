//! The connection to the apiserver, with kubeconfig, context and namespace as kubectl finds them.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::{env, io};

use http::Uri;
use http::uri::InvalidUri;
use ipnet::IpNet;
use k8s_openapi::NamespaceResourceScope;
use kube::config::{Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config, Resource};
use stayput_kube_access::apiserver::{Apiserver, Objects, root_cause};
use stayput_kube_access::read_limits::limited;

use crate::args::CommonArgs;
use crate::options;

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

    /// The apiserver.
    pub(crate) fn api(&self) -> Apiserver {
        Apiserver::for_kubectl(self.client.clone())
    }

    /// The objects of a kind in the namespace of the command.
    pub(crate) fn objects<K>(&self) -> Objects<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.api().objects(&self.namespace)
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

/// Why the proxy cannot be used. Its address may contain a password and is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("the address of the proxy is no URL: {0}")]
    Address(#[from] InvalidUri),
    #[error("the URL of the proxy begins with none of http://, https:// and socks5://")]
    Protocol,
}

/// The proxy for this apiserver: that of the kubeconfig, else that of the environment.
fn proxy(
    server: &Uri,
    configured: Option<&str>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, ProxyError> {
    let variable = |name: &str| {
        let values = [name.to_uppercase(), name.to_owned()].map(|name| environment(&name));
        values.into_iter().flatten().find(|value| !value.is_empty())
    };
    if let Some(url) = configured.filter(|url| !url.is_empty()) {
        return usable(url).map(Some);
    }
    let is_https = server.scheme_str() == Some("https");
    let Some(url) = variable(if is_https { "https_proxy" } else { "http_proxy" }) else {
        return Ok(None);
    };
    if is_direct(server, &variable("no_proxy").unwrap_or_default()) {
        return Ok(None);
    }
    // Without a protocol it is HTTP.
    let url = if url.contains("://") { url } else { format!("http://{url}") };
    usable(&url).map(Some)
}

fn usable(url: &str) -> Result<Uri, ProxyError> {
    // Either way it is the proxy that looks the name up.
    let url = url.replacen("socks5h://", "socks5://", 1).parse::<Uri>()?;
    match url.scheme_str() {
        Some("http" | "https" | "socks5") => Ok(url),
        Some(_) | None => Err(ProxyError::Protocol),
    }
}

/// True if this server is reached without the proxy of the environment.
fn is_direct(server: &Uri, exceptions: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    let port = server.port_u16().unwrap_or(match server.scheme_str() {
        Some("http") => 80,
        Some(_) | None => 443,
    });
    exceptions.split(',').any(|exception| {
        let exception = exception.trim().to_lowercase();
        if let (Some(address), Ok(network)) = (&address, exception.parse::<IpNet>()) {
            return network.contains(address);
        }
        let (name, only) = name_and_port(&exception);
        let is_meant = match address {
            Some(address) => name.parse() == Ok(address),
            None => is_of_domain(&host, name),
        };
        exception == "*" || (is_meant && only.is_none_or(|only| only.parse() == Ok(port)))
    })
}

/// Name and port of an exception: `host:443` and `[::1]:443` have a port, `::1` has none.
fn name_and_port(exception: &str) -> (&str, Option<&str>) {
    match exception.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => {
            (host.trim_matches(['[', ']']), Some(port))
        }
        Some(_) | None => (exception, None),
    }
}

/// True if an exception names the host: `example.org` means that host and those below it, `.example.org`
/// and `*.example.org` only those below.
fn is_of_domain(host: &str, name: &str) -> bool {
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match host.strip_suffix(name) {
        Some(below) if !name.is_empty() => {
            name.starts_with('.') || below.is_empty() || below.ends_with('.')
        }
        Some(_) | None => false,
    }
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

    #[track_caller]
    fn chosen(server: &str, configured: Option<&str>, variables: &[(&str, &str)]) -> String {
        let server = server.parse().unwrap();
        let variable = |name: &str| {
            let value = variables.iter().find(|(known, _)| *known == name)?.1;
            Some(value.to_owned())
        };
        let chosen = proxy(&server, configured, variable);
        chosen.unwrap().map_or_else(String::new, |url| url.to_string())
    }

    #[test] // proves UPDATE-45
    fn the_kubeconfig_counts_before_the_environment() {
        let server = "https://10.0.0.1:6443";
        let environment = [("HTTPS_PROXY", "http://b:3128"), ("NO_PROXY", "*")];
        assert_eq!(chosen(server, Some("socks5h://a:1080"), &environment), "socks5://a:1080/");
        assert_eq!(chosen(server, Some(""), &environment[..1]), "http://b:3128/");
        assert_eq!(chosen(server, None, &[("https_proxy", "b:3128")]), "http://b:3128/");
        assert_eq!(chosen(server, None, &[("HTTPS_PROXY", ""), ("https_proxy", "b")]), "http://b/");
        assert_eq!(chosen(server, None, &[("HTTP_PROXY", "b")]), "");
        assert_eq!(chosen("http://10.0.0.1", None, &[("HTTP_PROXY", "b")]), "http://b/");
        let none = |_: &str| None;
        for wrong in ["ftp://a", "a:3128"] {
            let error = proxy(&server.parse().unwrap(), Some(wrong), none).unwrap_err();
            assert!(matches!(error, ProxyError::Protocol), "{wrong}: {error}");
        }
    }

    /// The rows are those of `golang.org/x/net/http/httpproxy`, which kubectl uses.
    #[test] // proves UPDATE-45
    fn no_proxy_is_about_the_apiserver() {
        for (server, no_proxy, is_direct) in [
            ("https://localhost:6443", "", true),
            ("https://127.0.0.1:6443", "", true),
            ("https://[::1]:6443", "", true),
            ("https://10.1.2.3:6443", "", false),
            ("https://10.1.2.3:6443", "proxy.example.org", false),
            ("https://10.1.2.3:6443", "*", true),
            ("https://10.1.2.3:6443", " 10.1.2.3 ,other", true),
            ("https://10.1.2.3:6443", "10.1.2.3:6443", true),
            ("https://10.1.2.3:6443", "10.1.2.3:443", false),
            ("https://10.1.2.3:6443", "192.168.0.0/16,10.0.0.0/8", true),
            ("https://10.1.2.3:6443", "10.1.2.0/30", true),
            ("https://10.1.2.4:6443", "10.1.2.0/30", false),
            ("https://10.1.2.3:6443", "0.0.0.0/0", true),
            ("https://10.1.2.3:6443", "10.0.0.0/33,::/0,10/8,.2.3", false),
            ("https://[fd00::7]:6443", "fd00::/8", true),
            ("https://[fd00::7]:6443", "fd00::7", true),
            ("https://[fd00::7]", "[fd00::7]:443", true),
            ("https://[fd00::7]:6443", "fe80::/10,10.0.0.0/8", false),
            ("https://API.example.org:6443", "api.Example.org", true),
            ("https://api.example.org", "example.org", true),
            ("https://api.example.org", ".example.org,", true),
            ("https://api.example.org", "*.example.org", true),
            ("https://api.example.org", "example.org:443", true),
            ("https://api.example.org", "example.org:6443", false),
            ("https://example.org", ".example.org", false),
            ("https://apiexample.org", "example.org", false),
            ("https://api.example.org", ",,:443,*.", false),
        ] {
            let environment =
                [("HTTPS_PROXY", "http://proxy.example.org:3128"), ("NO_PROXY", no_proxy)];
            let chosen = chosen(server, None, &environment);
            assert_eq!(chosen.is_empty(), is_direct, "{server} {no_proxy}: {chosen}");
        }
    }
}
