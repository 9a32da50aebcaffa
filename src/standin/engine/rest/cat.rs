//! `/_cat`: the same data for people, as columns, or as JSON with only strings.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Answer, Answered, Node, Request, nodes};
use crate::engine::cluster::{CopyState, Failure, NodeInfo};
use crate::engine::config::Distribution;

/// Columns with their other names; without a header parameter only the first ones are shown.
struct Table {
    columns: Vec<(&'static str, &'static [&'static str])>,
    shown: usize,
    rows: Vec<Vec<Option<String>>>,
}

impl Table {
    fn answer(&self, request: &Request) -> Answer {
        let wanted: Vec<(usize, &str)> = match request.query.get("h") {
            None => (0..self.shown).map(|at| (at, self.columns[at].0)).collect(),
            // Unknown columns are left out, as in the real engines.
            Some(names) => names
                .split(',')
                .filter_map(|name| {
                    let is = |(column, others): &(&str, &[&str])| {
                        *column == name || others.contains(&name)
                    };
                    Some((self.columns.iter().position(is)?, name))
                })
                .collect(),
        };
        let cells = self.rows.iter().map(|row| wanted.iter().map(|(at, name)| (*name, &row[*at])));
        if request.query.get("format").is_some_and(|format| format == "json") {
            let rows = cells.map(|row| {
                let cell = |(name, cell): (&str, &Option<String>)| {
                    (name.to_owned(), cell.clone().map_or(Value::Null, Value::String))
                };
                Value::Object(row.map(cell).collect::<Map<_, _>>())
            });
            return Answer::json(200, Value::Array(rows.collect()));
        }
        let head = request.flag("v").then(|| wanted.iter().map(|(_, name)| (*name).to_owned()));
        let mut lines: Vec<Vec<String>> = head.into_iter().map(Iterator::collect).collect();
        lines.extend(
            cells.map(|row| row.map(|(_, cell)| cell.clone().unwrap_or_default()).collect()),
        );
        let width = |at: usize| lines.iter().map(|line| line[at].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..wanted.len()).map(width).collect();
        let text = lines.iter().map(|line| {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join(" ") + "\n"
        });
        Answer::text(200, text.collect())
    }
}

impl Node {
    pub(super) fn cat_nodes(&self, request: &Request) -> Answered {
        let state = self.state(request)?;
        let id_length = if request.flag("full_id") { usize::MAX } else { 4 };
        let roles = |node: &NodeInfo| node.roles.iter().cloned().collect::<Vec<_>>().join(",");
        let rows = state.nodes.values().map(|node| {
            let is_master = state.master.as_ref() == Some(&node.id);
            let cells = [
                nodes::host(&node.transport).to_owned(),
                letters(&node.roles),
                roles(node),
                if is_master { "*" } else { "-" }.to_owned(),
                node.name.clone(),
                node.id.chars().take(id_length).collect(),
                node.version.clone(),
                node.pid.to_string(),
                node.http.clone(),
            ];
            cells.map(Some).into()
        });
        let master: (&'static str, &'static [&'static str]) =
            match self.config.behaviour.distribution {
                Distribution::OpenSearch => ("cluster_manager", &["master", "m"]),
                Distribution::Elasticsearch => ("master", &["m"]),
            };
        let table = Table {
            columns: vec![
                ("ip", &["i"]),
                ("node.role", &["r", "role"]),
                ("node.roles", &["rs", "all roles"]),
                master,
                ("name", &["n"]),
                ("id", &["nodeId"]),
                ("version", &["v"]),
                ("pid", &["p"]),
                ("http_address", &["http"]),
            ],
            shown: 5,
            rows: rows.collect(),
        };
        Ok(table.answer(request))
    }

    pub(super) fn cat_shards(&self, request: &Request, only: Option<&str>) -> Answered {
        let state = self.state(request)?;
        if let Some(name) = only.filter(|name| !state.indices.contains_key(*name)) {
            return Err(Failure::no_such_index(name));
        }
        let sizes = self.cluster.sizes(&state);
        let mut rows = Vec::new();
        for (name, index) in
            state.indices.iter().filter(|(name, _)| only.is_none_or(|it| it == *name))
        {
            for (number, shard) in index.shards.iter().enumerate() {
                for copy in &shard.copies {
                    let node = copy.node().and_then(|id| state.nodes.get(id));
                    let key = format!("{}/{number}", index.uuid);
                    let size = copy.started_on().and_then(|id| sizes.get(id)?.get(&key));
                    let (doing, reason) = match &copy.place {
                        CopyState::Started { .. } => ("STARTED", None),
                        CopyState::Initializing { .. } => ("INITIALIZING", None),
                        CopyState::Unassigned { reason, .. } => {
                            ("UNASSIGNED", Some(reason.clone()))
                        }
                    };
                    rows.push(vec![
                        Some(name.clone()),
                        Some(number.to_string()),
                        Some(if copy.primary { "p" } else { "r" }.to_owned()),
                        Some(doing.to_owned()),
                        size.map(|(documents, _)| documents.to_string()),
                        size.map(|(_, bytes)| format!("{bytes}b")),
                        node.map(|node| nodes::host(&node.transport).to_owned()),
                        node.map(|node| node.name.clone()),
                        node.map(|node| node.id.clone()),
                        reason,
                    ]);
                }
            }
        }
        let table = Table {
            columns: vec![
                ("index", &["i", "idx"]),
                ("shard", &["s", "sh"]),
                ("prirep", &["p", "pr", "primaryOrReplica"]),
                ("state", &["st"]),
                ("docs", &["d", "dc"]),
                ("store", &["sto"]),
                ("ip", &[]),
                ("node", &["n"]),
                ("id", &[]),
                ("unassigned.reason", &["ur"]),
            ],
            shown: 8,
            rows,
        };
        Ok(table.answer(request))
    }

    pub(super) fn cat_indices(&self, request: &Request) -> Answered {
        let state = self.state(request)?;
        let rows = state.indices.iter().map(|(name, index)| {
            let cells = [
                Self::index_status(&state, name).to_owned(),
                "open".to_owned(),
                name.clone(),
                index.uuid.clone(),
                index.shards.len().to_string(),
                index.replicas().to_string(),
            ];
            cells.map(Some).into()
        });
        let table = Table {
            columns: vec![
                ("health", &["h"]),
                ("status", &["s"]),
                ("index", &["i", "idx"]),
                ("uuid", &["id"]),
                ("pri", &["p", "shards.primary"]),
                ("rep", &["r", "shards.replica"]),
            ],
            shown: 6,
            rows: rows.collect(),
        };
        Ok(table.answer(request))
    }
}

/// The first letters of the roles, as the engines abbreviate them: `dimr`.
fn letters(roles: &BTreeSet<String>) -> String {
    let letter = |role: &String| match role.as_str() {
        "cluster_manager" => Some('m'),
        "data_cold" => Some('c'),
        "data_frozen" => Some('f'),
        "data_hot" => Some('h'),
        "data_warm" => Some('w'),
        "data_content" => Some('s'),
        "ml" => Some('l'),
        "transform" => Some('t'),
        "voting_only" => Some('v'),
        other => other.chars().next(),
    };
    let letters: BTreeSet<char> = roles.iter().filter_map(letter).collect();
    if letters.is_empty() { "-".to_owned() } else { letters.into_iter().collect() }
}
