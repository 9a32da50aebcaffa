//! `/_cluster/voting_config_exclusions`.

use super::{Answer, Answered, DEFAULT_TIMEOUT, Node, Request};
use crate::engine::cluster::Command;

impl Node {
    /// Answers once the nodes of these names are excluded.
    pub(super) fn exclude_votes(&self, request: &Request) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        let names = request.query.get("node_names").map(String::as_str).unwrap_or_default();
        let names = names.split(',').map(str::to_owned).collect();
        Ok(Answer::json(200, self.cluster.command(Command::ExcludeVotes { names })?))
    }

    /// Removes every exclusion.
    pub(super) fn clear_votes(&self, request: &Request) -> Answered {
        self.cluster.state(request.master_timeout(DEFAULT_TIMEOUT)?)?;
        Ok(Answer::json(200, self.cluster.command(Command::ClearVotes)?))
    }
}
