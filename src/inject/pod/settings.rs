//! Variables of the manager that a manifest has already. They stay as they are, so values that would
//! break the manager are reported before.

use serde_json::Value;
use stayput_pod_spec::{PORT, STATE};

use crate::check;
use crate::finding::ObjectIssue;
use crate::options::{is_in, plain};
use crate::yaml::{Path, Step};

/// Variables that the programs in the container read: the options of `stayput run`, the pod's identity, and the
/// options of the other commands.
pub const VARIABLES: [&str; 44] = [
    "STAYPUT_ALLOW_CLIENT",
    "STAYPUT_ALLOW_SUBJECT",
    "STAYPUT_ALLOW_UID",
    "STAYPUT_CA",
    "STAYPUT_CERT",
    "STAYPUT_CLIENT_CA",
    "STAYPUT_CONFIG",
    "STAYPUT_DRAIN",
    "STAYPUT_ENVIRONMENT",
    "STAYPUT_GRACE",
    "STAYPUT_INSECURE_NO_AUTH",
    "STAYPUT_JWKS",
    "STAYPUT_JWT_AUDIENCE",
    "STAYPUT_JWT_ISSUER",
    "STAYPUT_JWT_KEY",
    "STAYPUT_JWT_PUBLIC_KEY",
    "STAYPUT_KEEP_LAST_GOOD",
    "STAYPUT_KEY",
    "STAYPUT_LISTEN",
    "STAYPUT_LIVE",
    "STAYPUT_LOG_FORMAT",
    "STAYPUT_LOG_LEVEL",
    "STAYPUT_ON_EXIT",
    "STAYPUT_OPEN_METRICS",
    "STAYPUT_PIN_CONFIG",
    "STAYPUT_POD_NAME",
    "STAYPUT_POD_NAMESPACE",
    "STAYPUT_POD_UID",
    "STAYPUT_READY",
    "STAYPUT_READY_AUTH",
    "STAYPUT_READY_CA",
    "STAYPUT_SOCKET",
    "STAYPUT_STAGE",
    "STAYPUT_STATE_DIR",
    "STAYPUT_STOP_SIGNAL",
    "STAYPUT_SUCCESS_EXIT",
    "STAYPUT_TERMINATION_GRACE",
    "STAYPUT_THREAD_DUMP",
    "STAYPUT_TLS_CERT",
    "STAYPUT_TLS_KEY",
    "STAYPUT_TLS_MIN",
    "STAYPUT_TMP_DIR",
    "STAYPUT_TOKEN_FILE",
    "STAYPUT_TREE_GRACE",
];

/// Problems of the manager's variables in `container`, whose `env` is at `env`. `wanted` are the
/// variables that are added if they are absent, `mounts` the mount paths of the manager's volumes, if
/// they are known.
pub(crate) fn problems(
    env: &Path,
    container: &Value,
    wanted: &[Value],
    mounts: Option<&Value>,
) -> Vec<ObjectIssue> {
    let own = Own { container, wanted, mounts };
    let variables = container["env"].as_array().into_iter().flatten();
    let names = variables.filter_map(|variable| variable["name"].as_str());
    let ours = names.filter(|name| name.starts_with("STAYPUT_"));
    ours.filter_map(|name| own.problem(&env.then(Step::named(name)), name)).collect()
}

struct Own<'a> {
    container: &'a Value,
    wanted: &'a [Value],
    mounts: Option<&'a Value>,
}

impl<'a> Own<'a> {
    fn problem(&self, field: &Path, name: &str) -> Option<ObjectIssue> {
        if !VARIABLES.contains(&name) {
            return Some(ObjectIssue::note(
                field,
                "the manager does not know this variable",
                "Correct its name, or leave it out",
            ));
        }
        let value = self.own(name).filter(|value| !value.contains("$("))?;
        let error =
            |message: String, remedy: &str| Some(ObjectIssue::error(field, message, remedy));
        match name {
            "STAYPUT_READY" => {
                let usage = check::ready(value).err()?;
                error(format!("the manager does not take {value:?}"), &usage)
            }
            "STAYPUT_LISTEN" if !is_reached(value) => error(
                format!("the kubelet and the reconciler ask the manager at port {PORT} of the pod"),
                "Leave it out, or write :9199",
            ),
            "STAYPUT_STATE_DIR" if self.is_config(value) => error(
                "the journal would be a part of the engine's config".to_owned(),
                "Leave it out, or write a directory of its own",
            ),
            "STAYPUT_STATE_DIR" if !self.is_mounted(value) => error(
                "it is on no volume, so a stop would be forgotten with the container".to_owned(),
                "Leave it out, or mount an emptyDir there",
            ),
            "STAYPUT_CONFIG" | "STAYPUT_STAGE" if !self.is_staged_from_config() => error(
                "STAYPUT_STAGE would copy from a directory that STAYPUT_CONFIG does not name"
                    .to_owned(),
                "Leave it out, or set both",
            ),
            _ => None,
        }
    }

    /// The value in the manifest. A value that comes from elsewhere is not known.
    fn own(&self, name: &str) -> Option<&'a str> {
        value(self.container["env"].as_array()?, name)
    }

    /// The value that the manager gets.
    fn effective(&self, name: &str) -> Option<&'a str> {
        self.own(name).or_else(|| value(self.wanted, name))
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let items = self.effective(name).into_iter().flat_map(|list| list.split([',', '\n']));
        items.map(str::trim).filter(|item| !item.is_empty())
    }

    fn is_config(&self, directory: &str) -> bool {
        let of_config = self.list("STAYPUT_CONFIG").chain(self.list("STAYPUT_STAGE"));
        let directories = of_config.flat_map(|item| item.split('='));
        directories.map(plain).any(|config| is_in(&plain(directory), &config))
    }

    fn is_mounted(&self, directory: &str) -> bool {
        let Some(mounts) = self.mounts else { return true };
        let mounts = mounts.as_array().into_iter().flatten();
        let paths = mounts.filter_map(|mount| mount["mountPath"].as_str());
        paths.chain([STATE]).any(|path| is_in(&plain(directory), &plain(path)))
    }

    fn is_staged_from_config(&self) -> bool {
        let mut sources = self.list("STAYPUT_STAGE").filter_map(|stage| stage.split('=').next());
        sources.all(|source| {
            let mut configs = self.list("STAYPUT_CONFIG").flat_map(|config| config.split('='));
            configs.any(|config| config == source || plain(config) == plain(source))
        })
    }
}

fn value<'a>(variables: &'a [Value], name: &str) -> Option<&'a str> {
    variables.iter().find(|variable| variable["name"] == name)?["value"].as_str()
}

/// True for an address of all interfaces, or of the pod, with the port of the probes.
fn is_reached(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| {
        let is_loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
        port.parse() == Ok(PORT) && !is_loopback
    })
}
