//! Debts: changes to managers and engine that we have made, or may have made, and must undo.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::late_requests::restart_of;
use crate::ledger::{Member, MemberUpdate};
use crate::{Ledger, Record, Time};
use stayput_api::ConfigChoice;

/// Everything owed. Written down before it is done, removed once it is undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Debts {
    /// Engines that must be started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<StartDebt>,
    /// Allocation that must be set back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<AllocationDebt>,
    /// Node-shutdown records that must be deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordDebt>,
    /// The voting exclusion that must be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusion: Option<ExclusionDebt>,
    /// Changes for nodes that leave a declared cluster.
    #[serde(default, skip_serializing_if = "Leaving::is_empty")]
    pub leaving: Leaving,
}

/// An engine that must be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartDebt {
    /// Uid of the pod; once that is gone for good, so is the debt.
    pub pod_uid: String,
    /// Name of the node.
    pub node: String,
    /// Sequence of a stop before the start: only where an engine has failed in a pod that must be set
    /// back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_sequence: Option<u64>,
    /// Sequence of the start.
    pub sequence: u64,
    /// The config it is started on.
    #[schemars(with = "String")]
    pub config: ConfigChoice,
    /// Checksum of the mounted config that the engine was to be started on together with other nodes: on
    /// another one it may not be in one cluster with them. Absent if it is started on any
    /// mounted config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Since when its pod has been absent without another one in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_since: Option<Time>,
    /// Since when it has been owed: other nodes wait for it no longer than for a phase. One that another version
    /// has written has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// The change of its pod, which must be rolled back first, since the container may not run with the
    /// images and the size that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Box<MemberUpdate>>,
}

/// The engine's allocation setting, as it was and as we set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocationDebt {
    /// Id of the restart that set it: part of the marker beside the setting.
    pub restart: String,
    /// The values to restore.
    pub before: AllocationBefore,
    /// Uids of the pods it is held for; it is due once there are none.
    pub holders: Vec<String>,
}

/// A cluster setting about allocation, as it was before us. Unset is a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllocationBefore {
    /// The persistent setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<String>,
    /// The transient setting, which wins over the persistent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient: Option<String>,
}

impl AllocationBefore {
    /// True if neither value is set.
    pub(crate) fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

/// Changes on the engine for nodes that leave. They are undone once a node has left, or stays after
/// all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// Names of the nodes that are excluded from allocation because they leave.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub nodes: BTreeSet<String>,
    /// The persistent exclusion before ours, if ours was added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<ExcludedBefore>,
    /// The transient exclusion before ours, if ours was added to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient: Option<ExcludedBefore>,
    /// The node that is excluded from voting because it leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voter: Option<String>,
}

/// `cluster.routing.allocation.exclude._name` before us. Unset is a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedBefore {
    /// The value as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Leaving {
    /// Nothing is to be undone.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A node-shutdown record of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordDebt {
    /// Id of the engine's node.
    pub node_id: String,
    /// Name of the node.
    pub node: String,
    /// Uid of the pod it is kept for while that is a member under way.
    pub pod_uid: String,
    /// Id of the restart: the end of the record's reason.
    pub restart: String,
}

/// A voting exclusion of ours: the node has handed its vote over for the time of its restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExclusionDebt {
    /// Name of the node.
    pub node: String,
    /// Uid of the pod it is kept for while that is a member under way.
    pub pod_uid: String,
    /// Id of the restart.
    pub restart: String,
}

/// A voting exclusion of ours that was seen gone. The request that set it may have been slow, and
/// an exclusion does not say whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovedExclusion {
    /// Name of the node.
    pub node: String,
    /// When it was found to be removed.
    pub at: Time,
}

impl RemovedExclusion {
    /// For how long an exclusion that comes again is still ours, in milliseconds: far longer than
    /// any request of ours is waited for.
    const LATE: u64 = 5 * 60_000;

    /// True if a late request may still set the exclusion again.
    pub fn may_come_again(&self, now: Time) -> bool {
        now.since(self.at) < Self::LATE
    }
}

impl StartDebt {
    /// The debt of a start that brings a member back on this config, owed from now on.
    pub(crate) fn of(member: &Member, sequence: u64, config: ConfigChoice, now: Time) -> Self {
        Self {
            pod_uid: member.pod_uid.clone(),
            node: member.node.clone(),
            stop_sequence: None,
            sequence,
            config,
            checksum: None,
            absent_since: None,
            since: Some(now),
            update: member.update.clone(),
        }
    }
}

impl RecordDebt {
    /// True if this is the record of this debt, made for the SearchCluster `namespace/name`.
    pub fn is_about(&self, record: &Record, cluster: &str) -> bool {
        record.node_id == self.node_id && restart_of(record, cluster) == self.restart
    }
}

impl Debts {
    /// True if there is no debt.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
            && self.allocation.is_none()
            && self.records.is_empty()
            && self.exclusion.is_none()
            && self.leaving.is_empty()
    }
}

/// Uids of the pods under way.
fn under_way(ledger: &Ledger) -> BTreeSet<&str> {
    ledger.under_way().map(|member| member.pod_uid.as_str()).collect()
}

/// One message for each debt that no node under way is going to settle.
pub fn debts_due(ledger: &Ledger) -> Vec<String> {
    let under_way = under_way(ledger);
    let debts = &ledger.debts;
    let starts = debts.start.iter().filter(|debt| !under_way.contains(debt.pod_uid.as_str()));
    let starts = starts.map(|debt| format!("the engine of {} must be started", debt.node));
    let held = |uid: &String| under_way.contains(uid.as_str());
    let allocation = debts.allocation.iter().filter(|debt| !debt.holders.iter().any(held));
    let allocation = allocation.map(|debt| {
        format!(
            "cluster.routing.allocation.enable must be restored to {} (restart {})",
            setting(&debt.before),
            debt.restart
        )
    });
    let records = debts.records.iter().filter(|debt| !under_way.contains(debt.pod_uid.as_str()));
    let records = records.map(|debt| {
        format!(
            "the node-shutdown record of {} must be deleted (restart {})",
            debt.node, debt.restart
        )
    });
    let exclusion =
        debts.exclusion.iter().filter(|debt| !under_way.contains(debt.pod_uid.as_str()));
    let exclusion = exclusion.map(|debt| {
        format!("the voting exclusion of {} must be removed (restart {})", debt.node, debt.restart)
    });
    starts.chain(allocation).chain(records).chain(exclusion).collect()
}

fn setting(before: &AllocationBefore) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".into());
    match &before.transient {
        None => text(&before.persistent),
        Some(transient) => {
            format!("{} (persistent) and {transient} (transient)", text(&before.persistent))
        }
    }
}
