//! Reads the nodes in the cluster: a small read that is repeated while we wait for a node.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::answer::Answer;
use super::limited;
use super::transport::{Call, MASTER_TIMEOUT};
use super::{Distribution, Engine, EngineClient, EngineError, identify};

/// The cluster's node list, as its elected master has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Members {
    /// The cluster's own id.
    pub cluster_uuid: Option<String>,
    /// The id of the elected master.
    pub elected_master: Option<String>,
    /// Nodes in the order of their ids. Two nodes can have the same name.
    pub nodes: Vec<Member>,
}

/// A node in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Id of the node, stored in its data path.
    pub id: String,
    /// The node's name.
    pub name: String,
    /// Id of the process: new at every start.
    pub ephemeral_id: String,
}

impl EngineClient {
    /// Reads the nodes in the cluster.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses.
    pub async fn members(&self) -> Result<Members, EngineError> {
        let (answer, _) = self.transport.send_led(&call()).await?;
        parse(&answer)
    }

    /// The answer of a node that has just named the master that it follows. Elasticsearch answers from the
    /// state of the node that is asked, about cluster settings from 9.0 on and about those of indices from
    /// 9.1 on. A node that has not joined would answer that there are none. In OpenSearch the master answers.
    pub(super) async fn of_a_member(
        &self,
        engine: &Engine,
        call: &Call,
    ) -> Result<Answer, EngineError> {
        if engine.distribution == Distribution::OpenSearch {
            return self.transport.send(call).await;
        }
        let (_, place) = self.transport.send_led(&master_call()).await?;
        self.transport.send_to(place, call).await
    }
}

/// The request for the elected master alone.
fn master_call() -> Call {
    Call::get(format!(
        "/_cluster/state/master_node?master_timeout={MASTER_TIMEOUT}\
         &filter_path=master_node,cluster_manager_node"
    ))
}

pub(super) fn call() -> Call {
    Call::get(format!(
        "/_cluster/state/version,master_node,nodes?master_timeout={MASTER_TIMEOUT}&filter_path=\
         cluster_uuid,master_node,cluster_manager_node,nodes.*.name,nodes.*.ephemeral_id"
    ))
    .of_nodes()
}

pub(super) fn parse(answer: &Answer) -> Result<Members, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        cluster_uuid: Option<String>,
        #[serde(alias = "cluster_manager_node")]
        master_node: Option<String>,
        #[serde(default, deserialize_with = "limited::by_node")]
        nodes: BTreeMap<String, Listed>,
    }
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        ephemeral_id: String,
    }
    let Body { cluster_uuid, master_node, nodes } = answer.read()?;
    let nodes = nodes
        .into_iter()
        .map(|(id, Listed { name, ephemeral_id })| Member { id, name, ephemeral_id })
        .collect();
    let cluster_uuid = cluster_uuid.and_then(identify::known);
    Ok(Members { cluster_uuid, elected_master: master_node, nodes })
}
