//! Writes transitions to the log and the metrics.

use super::Transition;
use crate::metrics::Metrics;

/// Logs and counts transitions of one SearchCluster.
pub(crate) fn record(transitions: &[Transition], cluster: &str, metrics: &Metrics) {
    for transition in transitions {
        match transition {
            Transition::Step { restart, node, step, stop, start } => {
                tracing::info!(cluster, restart, node, step, stop, start, "ledger written");
            }
            Transition::Stopped { strategy, seconds } => {
                metrics.observe_phase("stop", strategy, *seconds);
            }
            Transition::Finished { restart, node, strategy, seconds, start } => {
                metrics.observe_phase("start", strategy, *start);
                tracing::info!(cluster, restart, node, seconds, "node finished");
            }
            Transition::Ended(entry) => {
                metrics.count_restart(entry.outcome.as_str(), entry.strategy.as_str());
                for (step, nodes) in &entry.steps {
                    metrics.count_nodes(step, *nodes);
                }
                tracing::info!(
                    cluster,
                    restart = entry.id,
                    outcome = entry.outcome.as_str(),
                    seconds = entry.seconds,
                    nodes = entry.nodes,
                    "restart ended: {}",
                    entry.reason
                );
            }
        }
    }
}
