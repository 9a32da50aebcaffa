//! The JSON of `plan`.

use schemars::JsonSchema;
use serde::Serialize;

use super::forecast::ForecastOutput;
use super::node::NodeOutput;
use super::restart::RestartOutput;
use crate::cluster_view::ClusterView;
use crate::forecast::DatedForecast;
use stayput_restart::{MemberStep, Request};

/// `plan`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanOutput {
    cluster: String,
    namespace: String,
    /// Code of the rule or fault that blocks the cluster as a whole.
    blocked: Option<String>,
    /// The reason for waiting, and the remedy, for people.
    message: Option<String>,
    /// The restart under way.
    restart: Option<RestartOutput>,
    /// Nodes that are being restarted, or started again because the restart aborts.
    restarting: Vec<NodeOutput>,
    /// Nodes that wait for their turn, in the order of the restart as far as that is known without
    /// the engine.
    scheduled: Vec<NodeOutput>,
    /// The request that waits for the restart under way to end.
    queued: Option<Request>,
    /// The request that the reconciler has not accepted yet.
    requested: Option<Request>,
    /// The dry run, if the reconciler gave a snapshot.
    forecast: Option<ForecastOutput>,
    /// Why there is no dry run; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_forecast: Option<String>,
}

impl PlanOutput {
    /// The output without a forecast, with the reason for that.
    pub(crate) fn new(view: &ClusterView, forecast: Result<&DatedForecast, &String>) -> Self {
        let report = view.status.clone().unwrap_or_default().report;
        let members = view.restart().map_or(&[][..], |restart| &restart.members);
        let restarting = members.iter().filter(|member| member.is_under_way());
        let is_scheduled = |uid: &str| {
            members
                .iter()
                .any(|member| member.pod_uid == uid && member.step == MemberStep::Scheduled)
        };
        let order = view.restart_order();
        let scheduled = order.iter().filter(|pod| is_scheduled(&pod.uid));
        Self {
            cluster: view.name.clone(),
            namespace: view.namespace.clone(),
            blocked: report.blocked,
            message: report.message,
            restart: view.restart().map(RestartOutput::new),
            restarting: restarting.map(|member| NodeOutput::new(view, &member.node)).collect(),
            scheduled: scheduled.map(|pod| NodeOutput::new(view, &pod.node)).collect(),
            queued: view.queued().cloned(),
            requested: view.requested().and_then(Result::ok),
            forecast: forecast.ok().map(ForecastOutput::new),
            no_forecast: forecast.err().cloned(),
        }
    }
}
