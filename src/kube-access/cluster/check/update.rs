//! Checks `spec.update`.

use std::collections::BTreeSet;

use super::Problems;
use crate::cluster::{UpdateMode, UpdateSpec};
use stayput_restart::UpdateStep;

impl Problems {
    /// The steps that are carried out; empty if the mode is off.
    pub(super) fn update(&mut self, update: &UpdateSpec) -> BTreeSet<UpdateStep> {
        match update.mode {
            UpdateMode::Off => return BTreeSet::new(),
            UpdateMode::InPlace if update.allow.is_empty() => self.add(
                "update.allow",
                "is empty, so that nothing could ever be carried out: name steps such as relabel \
                 and container, or set update.mode to off",
            ),
            UpdateMode::InPlace => {}
        }
        update.allow.iter().map(|step| (*step).into()).collect()
    }
}
