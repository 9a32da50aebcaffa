//! `elasticsearch.yml`: the settings, and the refusal of everything else.

use std::collections::BTreeMap;
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
    /// `node.attr.*`.
    pub(super) attributes: BTreeMap<String, String>,
    /// `path.data`, which must be set.
    pub(super) data: PathBuf,
    /// `http.port`, default 9200; 0 takes a free one, which the log tells.
    pub(super) http_port: u16,
    /// Where this config was read from.
    pub(super) directory: PathBuf,
    /// `standin.*`.
    pub(super) behaviour: Behaviour,
}

/// How this engine is to misbehave; the real ones do all of it without being asked.
#[derive(Default)]
pub(super) struct Behaviour {
    /// `standin.start_delay_ms`: from the HTTP port being open to being ready.
    pub(super) start_delay: Duration,
    /// `standin.stop_delay_ms`: from the stop signal to the exit.
    pub(super) stop_delay: Duration,
    /// `standin.ignore_term`: TERM does nothing, in no process of the engine.
    pub(super) ignore_term: bool,
    /// `standin.orphans`: processes that outlive their parent and then exit by themselves.
    pub(super) orphans: u32,
    /// `standin.setsid_children`: children in sessions of their own that ignore TERM.
    pub(super) setsid_children: u32,
    /// `standin.helper`: the entrypoint leaves a process behind that runs on when the engine ends.
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
    /// Reads `directory/elasticsearch.yml`. Settings are lines `key: value`, values may be quoted.
    pub(super) fn read(directory: &Path) -> Result<Self, Refusal> {
        let file = directory.join("elasticsearch.yml");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Refusal::config(format!("cannot read {}: {error}", file.display())))?;
        let mut config = Self {
            cluster_name: "standin".to_owned(),
            node_name: "standin-0".to_owned(),
            attributes: BTreeMap::new(),
            data: PathBuf::new(),
            http_port: 9200,
            directory: directory.to_owned(),
            behaviour: Behaviour::default(),
        };
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line
                .split_once(':')
                .ok_or_else(|| Refusal::config(format!("malformed line [{line}]: no colon")))?;
            config.set(key.trim(), value.trim().trim_matches(['"', '\'']))?;
        }
        if config.data.as_os_str().is_empty() {
            return Err(Refusal::config(format!("path.data is not set in {}", file.display())));
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Refusal> {
        let behaviour = &mut self.behaviour;
        match key {
            "cluster.name" => value.clone_into(&mut self.cluster_name),
            "node.name" => value.clone_into(&mut self.node_name),
            "path.data" => self.data = PathBuf::from(value),
            "http.port" => self.http_port = parse(key, value)?,
            "standin.start_delay_ms" => behaviour.start_delay = milliseconds(key, value)?,
            "standin.stop_delay_ms" => behaviour.stop_delay = milliseconds(key, value)?,
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
                // Word for word what the real engines say.
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

fn parse<T: FromStr>(key: &str, value: &str) -> Result<T, Refusal> {
    value.parse().map_err(|_| {
        Refusal::config(format!("failed to parse value [{value}] for setting [{key}]"))
    })
}

fn milliseconds(key: &str, value: &str) -> Result<Duration, Refusal> {
    parse(key, value).map(Duration::from_millis)
}
