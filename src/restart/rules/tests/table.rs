//! Reads tables of cases: a cluster in text, which nodes are restarted, and which rule blocks the
//! others.
//!
//! Cases are apart by an empty line; `#` begins a remark; a line is `key: text`. The keys are the
//! arms of [`Case::line`] here, the states of a node those of [`cluster`].

mod cluster;

use super::{engine, shards, unknown};
use crate::{
    Allocation, AllocationBefore, Cluster, Disabled, Engine, Ledger, Policy, Share, Snapshot,
    Strategy, Time, Unknown, UpdateStep, Voting,
};

/// One case.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) snapshot: Snapshot,
    pub(super) policy: Policy,
    pub(super) strategy: Strategy,
    /// Nodes whose restart is requested and did not begin, in order of the table.
    pub(super) asked: Vec<String>,
    /// Nodes that go together.
    pub(super) together: Vec<String>,
    /// Nodes that took a slot earlier in the evaluation.
    pub(super) picked: Vec<String>,
    pub(super) goes: Vec<String>,
    /// Name and rule.
    pub(super) waits: Vec<(String, String)>,
    /// Name and text of the message.
    pub(super) says: Vec<(String, String)>,
}

/// All cases of a table.
pub(super) fn cases(table: &str) -> Vec<Case> {
    let lines: Vec<&str> =
        table.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect();
    let blocks = lines.split(|line| line.is_empty()).filter(|block| !block.is_empty());
    blocks.map(Case::read).collect()
}

impl Case {
    fn read(lines: &[&str]) -> Self {
        let mut case = Self {
            name: String::new(),
            snapshot: Snapshot {
                configs: crate::KnownConfigs::default(),
                // 100 hours after the beginning of time.
                now: Time(100 * 60 * 60 * 1000),
                fresh_id: "fresh".into(),
                cluster: Cluster {
                    name: "search/logs".to_owned(),
                    finalizer: true,
                    ..Cluster::default()
                },
                ledger: Ledger::default(),
                pods: Vec::new(),
                engine: Ok(engine("")),
                missing: vec![],
                no_master: false,
                jumped: 0,
                node_sets: None,
                flushed: Default::default(),
            },
            policy: Policy::default(),
            strategy: Strategy::Rolling,
            asked: Vec::new(),
            together: Vec::new(),
            picked: Vec::new(),
            goes: Vec::new(),
            waits: Vec::new(),
            says: Vec::new(),
        };
        for line in lines {
            let (key, text) = line.split_once(':').unwrap_or_else(|| panic!("no key: {line}"));
            case.line(key.trim(), text.trim());
        }
        case
    }

    fn line(&mut self, key: &str, text: &str) {
        let pairs =
            || text.split(',').map(|one| one.trim().split_once(' ').unwrap_or((one.trim(), "")));
        match (key, text) {
            ("case", _) => self.name = text.to_owned(),
            // Where in place differs from the published answer, and why; for readers.
            ("differs", _) => assert!(text.len() > 20, "{}: say why", self.name),
            ("nodes", _) => self.nodes(text),
            ("health", "unread") => self.engine().health = Err(unknown()),
            ("health", _) => self.health(text),
            ("shards", "unread") => self.engine().shards = Err(unknown()),
            ("shards", _) => {
                let lines: Vec<&str> = text.split(';').map(str::trim).collect();
                self.engine().shards = Ok(shards(&lines));
            }
            ("allocation", "unread") => self.engine().allocation = Err(unknown()),
            ("allocation", _) => {
                let of = |key| pairs().find(|pair| pair.0 == key).map(|pair| pair.1.to_owned());
                let setting =
                    AllocationBefore { persistent: of("persistent"), transient: of("transient") };
                self.engine().allocation = Ok(Allocation { setting, ..Allocation::default() });
            }
            ("voters", "unread") => self.engine().voting = Err(unknown()),
            ("voters", _) => self.vote(&list(text)),
            ("minimum of masters", _) => {
                self.engine().voting = Ok(Voting::MinimumMasterNodes(number(text)));
            }
            ("engine", _) => self.snapshot.engine = Err(Unknown { message: text.to_owned() }),
            ("max", _) => self.policy.max_unavailable = share(text),
            ("searchable snapshots", "unread") => {
                self.engine().searchable_snapshots = Err(unknown());
            }
            ("searchable snapshots", _) => {
                self.engine().searchable_snapshots = Ok(list(text).into_iter().collect());
            }
            ("closed and not moved", _) => {
                self.engine().immovable = list(text).into_iter().collect();
            }
            ("consents to", _) => {
                let restart = self.snapshot.ledger.restart.as_mut().expect("nodes come first");
                restart.request.allow_unreplicated = list(text);
            }
            ("skips", _) => {
                let restart = self.snapshot.ledger.restart.as_mut().expect("nodes come first");
                restart.request.skip_rules = list(text);
            }
            ("outage", "allowed by the request") => {
                let restart = self.snapshot.ledger.restart.as_mut().expect("nodes come first");
                restart.request.allow_outage = true;
            }
            ("outage", "allowed") => self.policy.allow_outage = true,
            ("update", _) => {
                self.policy.update = match text {
                    "replace" => [UpdateStep::Replace].into(),
                    "container" => [UpdateStep::Container].into(),
                    other => panic!("{}: no such step: {other}", self.name),
                };
            }
            ("disabled", _) => self.policy.disabled = Disabled::by_annotation(text),
            ("strategy", "immediate") => self.strategy = Strategy::Immediate,
            ("picked", _) => self.picked = list(text),
            ("goes", "none") => {}
            ("goes", _) => self.goes = list(text),
            ("waits", _) => self.waits.extend(pairs().map(owned)),
            ("says", _) => self.says.push(owned(text.split_once(' ').expect("a name and text"))),
            _ => match key.strip_prefix("max of ") {
                Some(role) => {
                    _ = self.policy.max_unavailable_of_role.insert(role.into(), share(text));
                }
                None => panic!("{}: no such line: {key}: {text}", self.name),
            },
        }
    }

    fn engine(&mut self) -> &mut Engine {
        self.snapshot.engine.as_mut().expect("an engine that answers")
    }
}

fn owned((one, other): (&str, &str)) -> (String, String) {
    (one.trim().to_owned(), other.trim().to_owned())
}

fn list(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

fn share(text: &str) -> Share {
    match text.strip_suffix('%') {
        Some(percent) => Share::Percent(percent.parse().expect("a percentage")),
        None => Share::Nodes(number(text)),
    }
}
