//! Addresses of the pages. Pure.

use stayput_kube_access::object_name::is_object_name;

/// The requested page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route<'a> {
    /// The only cluster, or the list.
    First,
    List,
    Cluster(&'a str),
    /// Events with the changes on the page of a cluster.
    Events(&'a str),
    Runbook(&'a str),
    Style,
    Script,
    Unknown,
}

pub(super) fn route(path: &str) -> Route<'_> {
    match path {
        "/" => return Route::First,
        "/clusters" => return Route::List,
        "/style.css" => return Route::Style,
        "/live.js" => return Route::Script,
        _ => {}
    }
    if let Some(code) = path.strip_prefix("/runbook/") {
        return Route::Runbook(code);
    }
    let Some(rest) = path.strip_prefix("/clusters/") else { return Route::Unknown };
    match rest.strip_suffix("/events") {
        Some(name) if is_object_name(name) => Route::Events(name),
        None if is_object_name(rest) => Route::Cluster(rest),
        _ => Route::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves PAGE-2
    fn nothing_but_names_gets_to_the_apiserver() {
        assert_eq!(route("/"), Route::First);
        assert_eq!(route("/clusters/logs"), Route::Cluster("logs"));
        assert_eq!(route("/clusters/logs.eu-1/events"), Route::Events("logs.eu-1"));
        assert_eq!(route("/runbook/quorum"), Route::Runbook("quorum"));
        for path in [
            "/clusters/",
            "/clusters/..",
            "/clusters/../secrets",
            "/clusters/logs/status",
            "/clusters/a%2Fb",
            "/clusters/logs?x",
            "/clusters/..%2f/events",
            "/clusters//events",
            "/clusters/-a",
            "/clusters/A",
            "//",
            "/live.js/",
        ] {
            assert_eq!(route(path), Route::Unknown, "{path}");
        }
    }
}
