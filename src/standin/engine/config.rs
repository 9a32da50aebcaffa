//! `elasticsearch.yml` or `opensearch.yml`: the settings, and the refusal of everything else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::Refusal;

/// The settings of one start.
pub(super) struct Config {
    /// `cluster.name`, default `standin`.
    pub(super) cluster_name: String,
    /// `node.name`, default `standin-0`.
    pub(super) node_name: String,
    /// `node.roles`, default what a data and master node has.
    pub(super) roles: BTreeSet<String>,
    /// `node.attr.*`.
    pub(super) attributes: BTreeMap<String, String>,
    /// `path.data`, which must be set.
    pub(super) data: PathBuf,
    /// `http.host`, default `network.host`, default loopback.
    pub(super) http_host: String,
    /// `http.port`, default 9200; 0 takes a free one, which the log names.
    pub(super) http_port: u16,
    /// How it finds the other nodes of its cluster: none unless `discovery.seed_hosts` is set.
    pub(super) transport: Option<Transport>,
    /// Neither seeds nor `single-node` are set; then its name is also its id.
    pub(super) alone: bool,
    /// `cluster.routing.allocation.enable`, which the API overrides.
    pub(super) allocation: String,
    /// Where this config was read from.
    pub(super) directory: PathBuf,
    /// `standin.*`.
    pub(super) behaviour: Behaviour,
}

/// How nodes of one cluster find each other.
#[derive(Clone)]
pub(super) struct Transport {
    /// `discovery.seed_hosts`: `host` or `host:port`.
    pub(super) seeds: Vec<String>,
    /// `cluster.initial_master_nodes` or `cluster.initial_cluster_manager_nodes`: node names.
    pub(super) initial_masters: BTreeSet<String>,
    /// `transport.host`, default `network.host`, default loopback.
    pub(super) host: String,
    /// `network.publish_host`: its address for other nodes, if that is not where it listens.
    pub(super) publish_host: Option<String>,
    /// `transport.port`, default 9300.
    pub(super) port: u16,
    /// `transport.encrypted`, or OpenSearch's setting of TLS between nodes: nodes with different values cannot work together.
    pub(super) encrypted: bool,
}

/// The engine whose answers it gives.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Distribution {
    /// OpenSearch 2.
    #[default]
    OpenSearch,
    /// Elasticsearch 8, with the node-shutdown routes.
    Elasticsearch,
}

/// How this engine misbehaves; real ones do all of this without a setting.
#[derive(Default)]
pub(super) struct Behaviour {
    /// `standin.start_delay_ms`: from the HTTP port being open to being ready.
    pub(super) start_delay: Duration,
    /// `standin.stop_delay_ms`: from the stop signal to the exit.
    pub(super) stop_delay: Duration,
    /// `standin.recovery_ms`: how long a replica initialises.
    pub(super) recovery: Duration,
    /// `standin.fault_detection_ms`: how long a silent node stays a member, default 10 s.
    pub(super) fault_detection: Option<Duration>,
    /// `standin.distribution`: `opensearch` or `elasticsearch`.
    pub(super) distribution: Distribution,
    /// `standin.version`: the version that it reports.
    pub(super) version: Option<String>,
    /// `standin.ignore_term`: TERM has no effect on any process of the engine.
    pub(super) ignore_term: bool,
    /// `standin.orphans`: processes that outlive their parent and then exit by themselves.
    pub(super) orphans: u32,
    /// `standin.setsid_children`: children in sessions of their own that ignore TERM.
    pub(super) setsid_children: u32,
    /// `standin.helper`: the entrypoint starts a process that outlives the engine.
    pub(super) helper: bool,
    /// `standin.launcher`: two JVMs, as Elasticsearch from 8.4.
    pub(super) launcher: bool,
    /// `standin.keystore`: write `elasticsearch.keystore` beside the config if it is missing.
    pub(super) keystore: bool,
    /// `standin.exit_code`: exit at once with this code, or later with `crash_after`.
    pub(super) exit_code: Option<u8>,
    /// `standin.crash_after_ms`: exit by itself after that long, with `exit_code` or 1.
    pub(super) crash_after: Option<Duration>,
}

impl Config {
    /// Reads `directory/elasticsearch.yml`, or `opensearch.yml` if that is what is there.
    pub(super) fn read(directory: &Path) -> Result<Self, Refusal> {
        let opensearch = directory.join("opensearch.yml");
        let file =
            if opensearch.exists() { opensearch } else { directory.join("elasticsearch.yml") };
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Refusal::config(format!("cannot read {}: {error}", file.display())))?;
        let mut config = Self {
            cluster_name: "standin".to_owned(),
            node_name: "standin-0".to_owned(),
            roles: BTreeSet::new(),
            attributes: BTreeMap::new(),
            data: PathBuf::new(),
            http_host: String::new(),
            http_port: 9200,
            transport: None,
            alone: false,
            allocation: "all".to_owned(),
            directory: directory.to_owned(),
            behaviour: Behaviour::default(),
        };
        let mut draft = Draft::default();
        for (key, value) in yaml_settings(&text)? {
            config.set(&mut draft, &key, &value)?;
        }
        if config.data.as_os_str().is_empty() {
            return Err(Refusal::config(format!("path.data is not set in {}", file.display())));
        }
        config.settle(draft);
        Ok(config)
    }

    /// Derives values that depend on several settings.
    fn settle(&mut self, draft: Draft) {
        let network = draft.network_host.unwrap_or_else(|| "127.0.0.1".to_owned());
        if self.http_host.is_empty() {
            self.http_host.clone_from(&network);
        }
        if !draft.roles_set {
            let master = match self.behaviour.distribution {
                Distribution::OpenSearch => "cluster_manager",
                Distribution::Elasticsearch => "master",
            };
            let roles = [master, "data", "ingest", "remote_cluster_client"];
            self.roles = roles.map(str::to_owned).into();
        }
        self.alone = draft.seeds.is_none() && !draft.single_node;
        self.transport = draft.seeds.filter(|_| !draft.single_node).map(|seeds| Transport {
            seeds,
            initial_masters: draft.initial_masters,
            host: draft.transport_host.unwrap_or(network),
            publish_host: draft.publish_host,
            port: draft.transport_port.unwrap_or(9300),
            encrypted: draft.encrypted,
        });
    }

    fn set(&mut self, draft: &mut Draft, key: &str, value: &str) -> Result<(), Refusal> {
        let behaviour = &mut self.behaviour;
        match key {
            "cluster.name" => value.clone_into(&mut self.cluster_name),
            "cluster.routing.allocation.enable" => value.clone_into(&mut self.allocation),
            // The stand-in has no disk watermarks.
            "cluster.routing.allocation.disk.threshold_enabled" => drop(parse::<bool>(key, value)?),
            "cluster.initial_master_nodes" | "cluster.initial_cluster_manager_nodes" => {
                draft.initial_masters = yaml_list(value).collect();
            }
            "node.name" => value.clone_into(&mut self.node_name),
            "node.roles" => {
                self.roles = yaml_list(value).collect();
                draft.roles_set = true;
            }
            "path.data" => self.data = PathBuf::from(value),
            "network.host" => draft.network_host = Some(value.to_owned()),
            "network.publish_host" => draft.publish_host = Some(value.to_owned()),
            "http.host" => value.clone_into(&mut self.http_host),
            "http.port" => self.http_port = parse(key, value)?,
            "transport.host" => draft.transport_host = Some(value.to_owned()),
            "transport.port" => draft.transport_port = Some(parse(key, value)?),
            "transport.encrypted" | "plugins.security.ssl.transport.enabled" => {
                draft.encrypted = parse(key, value)?;
            }
            "discovery.seed_hosts" => draft.seeds = Some(yaml_list(value).collect()),
            "discovery.type" => draft.single_node = value == "single-node",
            "standin.refuse" => return Err(Refusal::config(value)),
            "standin.start_delay_ms" => behaviour.start_delay = milliseconds(key, value)?,
            "standin.stop_delay_ms" => behaviour.stop_delay = milliseconds(key, value)?,
            "standin.recovery_ms" => behaviour.recovery = milliseconds(key, value)?,
            "standin.fault_detection_ms" => {
                behaviour.fault_detection = Some(milliseconds(key, value)?);
            }
            "standin.distribution" => behaviour.distribution = parse(key, value)?,
            "standin.version" => behaviour.version = Some(value.to_owned()),
            "standin.ignore_term" => behaviour.ignore_term = parse(key, value)?,
            "standin.orphans" => behaviour.orphans = parse(key, value)?,
            "standin.setsid_children" => behaviour.setsid_children = parse(key, value)?,
            "standin.helper" => behaviour.helper = parse(key, value)?,
            "standin.launcher" => behaviour.launcher = parse(key, value)?,
            "standin.keystore" => behaviour.keystore = parse(key, value)?,
            "standin.exit_code" => behaviour.exit_code = Some(parse(key, value)?),
            "standin.crash_after_ms" => behaviour.crash_after = Some(milliseconds(key, value)?),
            _ => match key.strip_prefix("node.attr.") {
                Some(name) => drop(self.attributes.insert(name.to_owned(), value.to_owned())),
                // The same text as the real engines print.
                None => {
                    return Err(Refusal::config(format!(
                        "unknown setting [{key}] please check that any required plugins are \
                         installed, or check the breaking changes documentation for removed \
                         settings"
                    )));
                }
            },
        }
        Ok(())
    }
}

/// Settings whose meaning depends on others.
#[derive(Default)]
struct Draft {
    network_host: Option<String>,
    publish_host: Option<String>,
    transport_host: Option<String>,
    transport_port: Option<u16>,
    encrypted: bool,
    seeds: Option<Vec<String>>,
    single_node: bool,
    initial_masters: BTreeSet<String>,
    roles_set: bool,
}

impl FromStr for Distribution {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "opensearch" => Ok(Self::OpenSearch),
            "elasticsearch" => Ok(Self::Elasticsearch),
            _ => Err(()),
        }
    }
}

fn parse<T: FromStr>(key: &str, value: &str) -> Result<T, Refusal> {
    value.parse().map_err(|_| {
        Refusal::config(format!("failed to parse value [{value}] for setting [{key}]"))
    })
}

fn milliseconds(key: &str, value: &str) -> Result<Duration, Refusal> {
    parse(key, value).map(Duration::from_millis)
}

// The part of YAML that engine configs are written in: one `key: value` a line, lists.

/// The settings in `text`, in their order. A list becomes its items joined by commas; `${NAME}` is
/// replaced by the environment's value, as in the real engines.
fn yaml_settings(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let (Some(item), Some((_, value))) = (line.strip_prefix("- "), settings.last_mut()) {
            if !value.is_empty() {
                value.push(',');
            }
            value.push_str(&substituted(unquoted(item))?);
            continue;
        }
        let (key, value) = line
            .split_once(':')
            .ok_or_else(|| Refusal::config(format!("malformed line [{line}]: no colon")))?;
        settings.push((key.trim().to_owned(), substituted(unquoted(value))?));
    }
    Ok(settings)
}

/// The items of a value that is a list: `[a, "b"]` or `a,b`.
fn yaml_list(value: &str) -> impl Iterator<Item = String> {
    let items = value.trim().trim_start_matches('[').trim_end_matches(']').split(',');
    items.map(unquoted).filter(|item| !item.is_empty()).map(str::to_owned)
}

fn unquoted(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

fn substituted(value: &str) -> Result<String, Refusal> {
    let mut done = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| Refusal::config(format!("malformed value [{value}]: no }}")))?;
        let found = std::env::var(name)
            .map_err(|_| Refusal::config(format!("Could not resolve placeholder '{name}'")))?;
        done.push_str(before);
        done.push_str(&found);
        rest = after;
    }
    done.push_str(rest);
    Ok(done)
}
