//! The nodes in the cluster: a small read that is repeated while we wait for a node.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::answer::Answer;
use super::transport::Call;
use super::{EngineClient, EngineError, identify};

/// The cluster's node list, as its elected master has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Members {
    /// The cluster's own id.
    pub cluster_uuid: Option<String>,
    /// The id of the elected master; none while there is none.
    pub elected_master: Option<String>,
    /// By id. Two nodes can have the same name.
    pub nodes: Vec<Member>,
}

/// A node in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// Stored in the data path.
    pub id: String,
    /// The node's name.
    pub name: String,
    /// New at every start of the process.
    pub ephemeral_id: String,
}

impl EngineClient {
    /// Reads which nodes are in the cluster.
    ///
    /// # Errors
    /// See [`EngineError`]; a cluster without a master refuses with 503.
    pub async fn members(&self) -> Result<Members, EngineError> {
        parse(&self.transport.send(&call(&self.transport.master_timeout())).await?)
    }
}

pub(super) fn call(timeout: &str) -> Call {
    Call::get(format!(
        "/_cluster/state/version,master_node,nodes?master_timeout={timeout}&filter_path=\
         cluster_uuid,master_node,cluster_manager_node,nodes.*.name,nodes.*.ephemeral_id"
    ))
    .large()
}

pub(super) fn parse(answer: &Answer) -> Result<Members, EngineError> {
    #[derive(Deserialize)]
    struct Body {
        cluster_uuid: Option<String>,
        #[serde(alias = "cluster_manager_node")]
        master_node: Option<String>,
        #[serde(default)]
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
