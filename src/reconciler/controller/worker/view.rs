//! A look for somebody outside: at everything, by the same means as a pass, and nothing is done.

use std::collections::BTreeSet;

use super::Worker;
use crate::controller::fresh_id::fresh_id;
use crate::controller::observe::Scene;
use crate::controller::window::{Shown, Viewer};
use stayput_restart::Saved;

impl Worker {
    /// Shows what is seen now.
    pub(super) async fn show_to(&mut self, viewer: Viewer) {
        let shown = Box::pin(self.view()).await;
        // Whoever does not wait any more has no need of it.
        let _ = viewer.send(shown);
    }

    async fn view(&mut self) -> Shown {
        let cluster = self.newest().ok_or("the SearchCluster is gone")?;
        let checked = self.charter.judge(&cluster);
        let faults = || format!("its spec is invalid: {}", self.charter.faults.join("; "));
        let checked = checked.ok_or_else(faults)?;
        let cluster = self.charter.apply(cluster);
        if !self.eyes.pods.is_complete() {
            let why = self.blind.clone();
            return Err(why.unwrap_or_else(|| "its pods are not listed yet: try again".into()));
        }
        let others = self.others();
        let (cluster, checked) = (&*cluster, &checked);
        let insist = BTreeSet::new();
        let scene = Scene { cluster, checked, others: &others, insist: &insist, whole: true };
        let snapshot = Box::pin(self.eyes.look(&scene, fresh_id()?)).await;
        Ok(Box::new(Saved::new(snapshot, checked.policy.clone())))
    }
}
