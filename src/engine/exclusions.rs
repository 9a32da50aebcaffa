//! Voting exclusions: an excluded node has no vote. They stay until they are removed, all at the same time.

use super::answer::Answer;
use super::transport::{Call, MASTER_TIMEOUT};
use super::{Distribution, Engine, EngineClient, EngineError, Version};

const PATH: &str = "/_cluster/voting_config_exclusions";

impl EngineClient {
    /// Excludes the node of this name from voting. The answer comes once neither voting
    /// configuration contains it, or after the engine's timeout; the exclusion is in force in both
    /// cases. A repeated request changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] for an engine without voting configurations, and for a name that
    /// could be taken for more than one node; otherwise see [`EngineError`].
    pub async fn exclude_voter(&self, engine: &Engine, node: &str) -> Result<(), EngineError> {
        let call = exclude_call(engine, node)?;
        parse(&self.transport.send(&call).await?)
    }

    /// Removes every exclusion, also those of other clients. The nodes may still be in the cluster.
    ///
    /// # Errors
    /// [`EngineError::Unusable`] for an engine without voting configurations; otherwise see
    /// [`EngineError`].
    pub async fn clear_voting_exclusions(&self, engine: &Engine) -> Result<(), EngineError> {
        parse(&self.transport.send(&clear_call(engine)?).await?)
    }
}

/// The request that excludes a node from voting. Elasticsearch before 7.8 has the name in the path. Most
/// versions refuse `master_timeout` here.
pub(super) fn exclude_call(engine: &Engine, node: &str) -> Result<Call, EngineError> {
    has_configurations(engine)?;
    // A comma, a star or a leading `_` would reach other nodes.
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if node.is_empty() || node.starts_with('_') || !node.chars().all(fits) {
        return Err(EngineError::Unusable(format!(
            "a node named {node:?} cannot be excluded from voting: the engine could take the name \
             for several nodes"
        ).into()));
    }
    let Engine { distribution, version, .. } = engine;
    let in_path = *distribution == Distribution::Elasticsearch && *version < Version::new(7, 8, 0);
    Ok(Call::post(if in_path {
        format!("{PATH}/{node}?timeout={MASTER_TIMEOUT}")
    } else {
        format!("{PATH}?node_names={node}&timeout={MASTER_TIMEOUT}")
    }))
}

pub(super) fn clear_call(engine: &Engine) -> Result<Call, EngineError> {
    has_configurations(engine)?;
    Ok(Call::delete(format!("{PATH}?wait_for_removal=false")))
}

fn has_configurations(engine: &Engine) -> Result<(), EngineError> {
    if engine.has_minimum_master_nodes() {
        return Err(EngineError::Unusable(
            format!(
                "{} {} has no voting configurations, but discovery.zen.minimum_master_nodes",
                engine.distribution, engine.version
            )
            .into(),
        ));
    }
    Ok(())
}

/// Checks that an exclusion, or its removal, is in force. The body is empty, and `{}` in some versions. An
/// exclusion that is in force but late is an error of the engine's: 500, or 429 from Elasticsearch 9.0 on.
pub(super) fn parse(answer: &Answer) -> Result<(), EngineError> {
    let is_in_force =
        || answer.reason().starts_with("timed out waiting for voting config exclusions");
    if answer.status == 200 || is_in_force() { Ok(()) } else { Err(answer.refusal()) }
}
