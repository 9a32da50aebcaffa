//! The container beside the manager's, and what the kubelet does with it.

use super::template::{Limits, MADE};
use crate::{ContainerWaiting, OtherContainer};

#[derive(Debug, Clone)]
pub(crate) struct Sidecar {
    /// The image in the pod's spec, and that of its container.
    pub(crate) image: String,
    pub(crate) running_image: String,
    containers: u64,
    ended: Option<u64>,
    is_down: bool,
    /// When the kubelet sees its image, and when it has made the container.
    pub(crate) kubelet_at: Option<u64>,
    pub(crate) back_at: Option<u64>,
}

impl Sidecar {
    pub(crate) fn new(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            running_image: image.to_owned(),
            containers: 1,
            ended: None,
            is_down: false,
            kubelet_at: None,
            back_at: None,
        }
    }

    /// Another image is in the spec.
    pub(crate) fn gets(&mut self, image: String, seen_at: u64) {
        self.image = image;
        self.kubelet_at = Some(seen_at);
    }

    /// What the kubelet does until now; whether that changes the pod.
    pub(crate) fn happen(&mut self, now: u64, limits: &Limits) -> bool {
        let mut has_changed = false;
        if self.kubelet_at.is_some_and(|at| at <= now) {
            self.kubelet_at = None;
            let differs = self.running_image != self.image;
            if differs && !self.is_down {
                self.ended = Some(self.containers);
            }
            self.is_down |= differs;
            let is_made = self.is_down && !limits.bad_images.contains(&self.image);
            self.back_at = is_made.then_some(now + MADE);
            has_changed = true;
        }
        if self.back_at.is_some_and(|at| at <= now) {
            self.back_at = None;
            self.containers += 1;
            self.running_image.clone_from(&self.image);
            self.is_down = limits.ending_images.contains(&self.image);
            if self.is_down {
                self.ended = Some(self.containers);
            }
            has_changed = true;
        }
        has_changed
    }

    /// What its image lacked is there.
    pub(crate) fn is_pulled_after_all(&mut self, image: &str, at: u64) {
        if self.image == image && self.is_down && self.kubelet_at.is_none() {
            self.back_at.get_or_insert(at);
        }
    }

    pub(crate) fn is_ready(&self, limits: &Limits) -> bool {
        !self.is_down && !limits.unready_images.contains(&self.running_image)
    }

    /// It ended in the image that it has.
    pub(crate) fn ends_again(&self) -> bool {
        let is_seen = self.back_at.is_none() && self.kubelet_at.is_none();
        self.is_down && self.running_image == self.image && is_seen
    }

    pub(crate) fn observe(&self, limits: &Limits) -> OtherContainer {
        let waits =
            |reason: &str, message: String| ContainerWaiting { reason: reason.into(), message };
        let waiting = if !self.is_down {
            None
        } else if self.ends_again() {
            let message = "back-off 10s restarting failed container".to_owned();
            Some(waits("CrashLoopBackOff", message))
        } else if self.back_at.is_none() && self.kubelet_at.is_none() {
            let message = format!("Back-off pulling image \"{}\"", self.image);
            Some(waits("ImagePullBackOff", message))
        } else {
            Some(waits("ContainerCreating", String::new()))
        };
        let id = |number: u64| format!("sidecar-{number}");
        OtherContainer {
            id: (!self.is_down).then(|| id(self.containers)),
            ended_id: self.ended.map(id),
            waiting,
            ready: self.is_ready(limits),
        }
    }
}
