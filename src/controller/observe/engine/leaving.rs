//! Questions to the engine beside the look of a restart: why shards stay on nodes that leave; the list of nodes
//! alone; and whether the cluster of a declaration has formed.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use stayput_engine::{Endpoint, EngineClient, EngineError, Members, Shard, ShardState};
use stayput_kube_access::cluster::SearchClusterSpec;
use stayput_restart::{LeavingShards, Ledger};
use tokio::time::timeout;

use crate::credentials::{CredentialsError, Reach};
use crate::metrics::{Metrics, Side};
use crate::observe::Observer;
use crate::observe::engine::{ENGINE_ANSWER_TIMEOUT, EngineView, ViewError};

/// Limit of the nodes for which the engine explains why a shard stays: its answer names every node.
const MAX_EXPLAINED: usize = 3;

impl EngineView {
    /// Shards of these nodes in the last look, with one entry for each that the engine lists. Asks why one
    /// stays, for nodes from which none is being moved.
    pub(crate) async fn leaving_shards(
        &self,
        leaving: &BTreeSet<String>,
        metrics: &Metrics,
    ) -> BTreeMap<String, LeavingShards> {
        let (mut found, mut staying) = (BTreeMap::new(), Vec::new());
        let topology = self.topology.iter();
        let nodes =
            topology.flat_map(|topology| topology.nodes.iter().map(move |node| (topology, node)));
        for (topology, node) in nodes.filter(|(_, node)| leaving.contains(&node.name)) {
            let is_here = |name: &Option<Arc<str>>| name.as_deref() == Some(node.name.as_str());
            // A shard that moves to a node is on it soon.
            let is_coming = |shard: &&Shard| is_here(&shard.relocating_to);
            let here = || topology.shards.iter().filter(|shard| is_here(&shard.node_name));
            let count = here().count() + topology.shards.iter().filter(is_coming).count();
            let is_moving = here().any(|shard| shard.state == ShardState::Relocating);
            let stays = here().find(|shard| shard.state == ShardState::Started);
            staying.extend(stays.filter(|_| !is_moving).map(|shard| (&node.name, shard)));
            found.insert(node.name.clone(), LeavingShards { count, stuck: None });
        }
        let Some((client, _)) = self.client() else { return found };
        let explain = async {
            for (node, shard) in staying.into_iter().take(MAX_EXPLAINED) {
                let why = client.why_it_stays(shard).await;
                metrics.count_request(Side::Engine, "explain", why.is_ok());
                let has_failed = why.is_err();
                let stuck = why
                    .unwrap_or_else(|error| Some(format!("why they stay is not known: {error}")));
                found.entry(node.clone()).and_modify(|shards| shards.stuck = stuck);
                if has_failed {
                    // The next nodes would wait for an answer, too.
                    return;
                }
            }
        };
        // Explanations are for people: a decision does not wait for them longer.
        let _ = timeout(ENGINE_ANSWER_TIMEOUT, explain).await;
        found
    }
}

/// Features by which the cluster of these pods is recognized.
pub(crate) struct Ours<'a> {
    /// Id of the cluster; not known before the first restart.
    pub(crate) cluster_uuid: Option<&'a str>,
    /// Names of the pods' nodes.
    pub(crate) nodes: BTreeSet<&'a str>,
}

impl EngineView {
    /// The nodes of these pods that their cluster does not list. One request; only if another
    /// cluster answers it, the other endpoints are asked as well.
    pub(crate) async fn unlisted(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        ours: &Ours<'_>,
        metrics: &Metrics,
    ) -> Result<BTreeSet<String>, ViewError> {
        let reach = reach?;
        let client = self.connect(&reach, endpoints.clone())?;
        let first = members(&client, metrics).await?;
        if ours.is_of(&first) {
            let unlisted = ours.not_in(&first);
            if unlisted.is_empty() {
                self.elsewhere.clear();
            }
            return Ok(unlisted);
        }
        // The answer shows neither which endpoint gave it nor which others are in that cluster.
        let each = endpoints.iter().map(async |endpoint| {
            let one = slice::from_ref(endpoint);
            let one = EngineClient::new(one, &reach.access, ENGINE_ANSWER_TIMEOUT)?;
            members(&one, metrics).await
        });
        let (mut found, mut elsewhere) = (None, Vec::new());
        for (endpoint, answer) in endpoints.iter().zip(join_all(each).await) {
            match answer {
                Ok(answer) if ours.is_of(&answer) => found = found.or(Some(answer)),
                Ok(_) => elsewhere.push(endpoint.clone()),
                Err(error) => tracing::debug!("{}: {error}", endpoint.host),
            }
        }
        let Some(found) = found else { return Err(ViewError::OtherCluster) };
        if self.elsewhere != elsewhere {
            self.elsewhere = elsewhere;
            // The next client asks those of another cluster last.
            self.client = None;
            self.identity = None;
        }
        Ok(ours.not_in(&found))
    }
}

async fn members(client: &EngineClient, metrics: &Metrics) -> Result<Members, EngineError> {
    let members = client.members().await;
    metrics.count_request(Side::Engine, "members", members.is_ok());
    members
}

impl Ours<'_> {
    /// True if this is the cluster of these pods: by its id, or else because it lists most of their nodes.
    fn is_of(&self, members: &Members) -> bool {
        let listed = self.nodes.len() - self.not_in(members).len();
        match self.cluster_uuid {
            Some(uuid) => members.cluster_uuid.as_deref() == Some(uuid) && listed > 0,
            None => listed * 2 > self.nodes.len(),
        }
    }

    fn not_in(&self, members: &Members) -> BTreeSet<String> {
        let listed: BTreeSet<&str> = members.nodes.iter().map(|node| node.name.as_str()).collect();
        self.nodes.difference(&listed).map(|node| (*node).to_owned()).collect()
    }
}

/// Time limit of all answers together: requests of people wait meanwhile.
const FORMED_TIMEOUT: Duration = Duration::from_secs(5);

impl Observer {
    /// True if the engine has formed a cluster; false if it does not answer.
    pub(crate) async fn has_formed(&mut self, ledger: &Ledger, spec: &SearchClusterSpec) -> bool {
        let endpoints = self.endpoints_of(ledger, spec);
        if endpoints.is_empty() {
            return false;
        }
        let reach = self.credentials.engine(&spec.engine).await;
        let asked = self.facts.engine.has_formed(reach, endpoints, &self.metrics);
        match timeout(FORMED_TIMEOUT, asked).await {
            Ok(Ok(formed)) => formed,
            Ok(Err(error)) => {
                tracing::debug!("the engine cannot be asked whether it has formed: {error}");
                false
            }
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests;
