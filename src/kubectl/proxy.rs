//! The proxy on the way to the apiserver, as kubectl chooses it. `kube` compares `NO_PROXY` with the
//! proxy's own host; what counts is the apiserver's.

use std::net::IpAddr;

use http::Uri;
use http::uri::InvalidUri;
use ipnet::IpNet;

/// Why the proxy cannot be used. Its address may contain a password and is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("the address of the proxy is no URL: {0}")]
    Address(#[from] InvalidUri),
    #[error("the URL of the proxy begins with none of http://, https:// and socks5://")]
    Protocol,
}

/// The proxy for this apiserver: that of the kubeconfig, else that of the environment.
pub(crate) fn proxy(
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
