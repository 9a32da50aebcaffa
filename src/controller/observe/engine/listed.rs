//! Reads only the list of nodes of a cluster.

use std::collections::BTreeSet;
use std::slice;

use futures_util::future::join_all;

use super::{ENGINE_ANSWER_TIMEOUT, EngineView, ViewError};
use crate::credentials::{CredentialsError, Reach};
use crate::metrics::{Metrics, Side};
use stayput_engine::{Endpoint, EngineClient, EngineError, Members};

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

#[cfg(test)]
mod tests {
    use super::*;
    use stayput_engine::Member;

    fn cluster(uuid: &str, names: &[&str]) -> Members {
        let member = |name: &&str| Member {
            id: format!("id-{name}"),
            name: (*name).to_owned(),
            ephemeral_id: format!("e-{name}"),
        };
        Members {
            cluster_uuid: Some(uuid.to_owned()),
            elected_master: None,
            nodes: names.iter().map(member).collect(),
        }
    }

    #[test] // proves RESTART-113
    fn the_cluster_of_the_pods_is_the_one_of_before_or_lists_most_of_them() {
        let ours = |cluster_uuid| Ours { cluster_uuid, nodes: ["a", "b", "c"].into() };
        let (most, own) = (cluster("1", &["b", "c"]), cluster("2", &["a"]));
        assert!(ours(None).is_of(&most) && !ours(None).is_of(&own));
        assert!(ours(Some("1")).is_of(&most) && !ours(Some("1")).is_of(&own));
        assert!(!ours(Some("2")).is_of(&most) && ours(Some("2")).is_of(&own));
        assert!(!ours(Some("1")).is_of(&cluster("1", &["x", "y"])), "other names than the pods");
        assert_eq!(ours(None).not_in(&most), ["a".to_owned()].into());
    }
}
