//! What the pod's spec and status show.

use std::collections::BTreeMap;

use super::{Living, json, revision};
use crate::{ContainerWaiting, LivePod, NotStarted, ResizeState};

/// What the scheduler says of a pod that no node takes.
const UNSCHEDULABLE: &str = "0/3 nodes are available: 3 Insufficient memory.";

impl Living {
    /// What keeps its first container from running.
    pub(crate) fn not_started(&self) -> Option<NotStarted> {
        let (container, reason, message) = if self.is_pending {
            (None, "Unschedulable", UNSCHEDULABLE.to_owned())
        } else if self.containers == 0 {
            let message = format!("Back-off pulling image \"{}\"", self.image);
            (Some("engine".to_owned()), "ImagePullBackOff", message)
        } else {
            return None;
        };
        Some(NotStarted { container, reason: reason.to_owned(), message })
    }

    pub(crate) fn observe(&self, has_exited: bool) -> Option<Box<LivePod>> {
        let waits = |reason: &str, message: &str| ContainerWaiting {
            reason: reason.into(),
            message: message.into(),
        };
        let is_delayed = self.limits.delayed_images.contains(&self.image)
            || self.limits.ending_images.contains(&self.image);
        let waiting = if self.is_pending {
            None
        } else if self.is_down && is_delayed && self.kubelet_at.is_none() {
            Some(waits("CrashLoopBackOff", "back-off 20s restarting failed container"))
        } else if self.is_down && self.back_at.is_none() && self.kubelet_at.is_none() {
            let message = format!("Back-off pulling image \"{}\"", self.image);
            Some(waits("ImagePullBackOff", &message))
        } else if has_exited && self.limits.lacks_secret {
            Some(waits("CreateContainerConfigError", "secret \"search\" not found"))
        } else if self.is_down || has_exited {
            Some(waits("ContainerCreating", ""))
        } else {
            None
        };
        let is_in_effect = self.memory == self.memory_in_effect;
        let resize = if self.limits.infeasible.contains(&self.memory) && !is_in_effect {
            Some(ResizeState::Infeasible("Node didn't have enough capacity: memory".into()))
        } else if !is_in_effect && self.limits.low.contains(&self.memory) {
            let message = "Error: the memory usage is above the new limit";
            Some(ResizeState::InProgress(message.into()))
        } else if !is_in_effect {
            Some(ResizeState::Pending("Deferred: not enough memory now".into()))
        } else {
            None
        };
        self.reads().then(|| {
            Box::new(LivePod {
                revision: revision(&self.actual),
                images: BTreeMap::from([
                    ("engine".into(), self.image.clone()),
                    ("sidecar".into(), self.sidecar.image.clone()),
                ]),
                resources: BTreeMap::from([("engine".into(), json(&self.memory))]),
                resized: is_in_effect.then(|| "engine".to_owned()).into_iter().collect(),
                resize,
                container_id: waiting
                    .is_none()
                    .then(|| format!("container-{}", self.containers))
                    .filter(|_| !self.is_pending),
                ended_id: self.ended.map(|number| format!("container-{number}")),
                waiting,
                others: BTreeMap::from([(
                    "sidecar".to_owned(),
                    self.sidecar.observe(&self.limits),
                )]),
                claims: (!self.limits.has_no_claim)
                    .then(|| "data".to_owned())
                    .into_iter()
                    .collect(),
                data: if self.limits.has_no_claim {
                    crate::DataPlace::OtherVolume
                } else {
                    crate::DataPlace::Claim
                },
                unschedulable: self.is_pending.then(|| UNSCHEDULABLE.to_owned()),
            })
        })
    }
}
