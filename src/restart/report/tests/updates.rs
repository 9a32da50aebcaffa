//! Pods whose owner wants another template.

use super::{manager, shown, three, waits};
use crate::{Code, PodPatch, PodUpdate, Report, Snapshot};
use stayput_pod_update::UpdateStep;

/// Three nodes, of which these pods have an outdated template by this step.
fn pending(pods: &[usize], step: UpdateStep) -> Snapshot {
    let mut snapshot = three();
    for at in pods {
        snapshot.pods[*at].update = Ok(Some(PodUpdate {
            from: "logs-1".into(),
            to: "logs-2".into(),
            step,
            because: vec!["image e:1 → e:2".into()],
            new_container: false,
            data_elsewhere: false,
            settings: None,
            patch: PodPatch::default(),
        }));
    }
    snapshot
}

fn facts(report: &Report) -> (&str, u32, &str) {
    let message = report.message.as_deref().unwrap_or_default();
    (&report.phase, report.counts.pending_update, message)
}

#[test]
fn a_template_that_waits_is_counted_and_named_whether_its_step_is_allowed_or_not() {
    let all = [UpdateStep::Relabel, UpdateStep::Container, UpdateStep::Replace, UpdateStep::Move];
    for step in all {
        let report = shown(&pending(&[1, 2], step), &[]);
        let message = "2 pods have an outdated template; logs-1: image e:1 → e:2";
        assert_eq!(facts(&report), ("PendingRestart", 2, message));
        assert_eq!(report.counts.pending_restart, 0);
    }
    assert_eq!(facts(&shown(&three(), &[])), ("Idle", 0, ""));
    let nothing_differs = pending(&[1], UpdateStep::None);
    assert_eq!(facts(&shown(&nothing_differs, &[])), ("Idle", 0, ""));
}

#[test]
fn the_first_says_what_to_do() {
    let why = "needs the step replace, which spec.update.allow does not have (image e:1 → e:2)";
    for code in [Code::UpdateNotAllowed, Code::UpdateTried] {
        let waiting = [waits(Some("logs-2"), code, why), waits(Some("logs-1"), Code::Idle, "-")];
        let report = shown(&pending(&[2], UpdateStep::Replace), &waiting);
        let message = format!("1 pod has an outdated template; logs-2: {why}");
        assert_eq!(facts(&report), ("PendingRestart", 1, message.as_str()));
    }
}

#[test]
fn a_config_that_waits_too_is_named_first() {
    let mut snapshot = pending(&[0], UpdateStep::Container);
    manager(&mut snapshot, 2).run.as_mut().unwrap().checksum = Some(super::OLD.into());
    let report = shown(&snapshot, &[]);
    let message = "1 node runs on another config than its sources have: request a restart; \
                   1 pod has an outdated template; logs-0: image e:1 → e:2";
    assert_eq!(facts(&report), ("PendingRestart", 1, message));
    assert_eq!(report.counts.pending_restart, 1);
}

/// The row of `logs-1`: its step, and what makes it so.
fn row(snapshot: &Snapshot) -> (Option<UpdateStep>, String) {
    let report = shown(snapshot, &[]);
    let row = report.nodes.iter().find(|row| row.name == "logs-1");
    row.map_or((None, String::new()), |row| (row.step, row.because.join("; ")))
}

#[test] // proves UPDATE-31
fn a_node_whose_config_has_changed_needs_a_restart_at_least_whatever_its_template_asks_for() {
    use UpdateStep::{Container, None, Relabel, Restart};
    let drifts = |mut snapshot: Snapshot| {
        manager(&mut snapshot, 1).run.as_mut().unwrap().checksum = Some(super::OLD.into());
        snapshot
    };
    assert_eq!(row(&three()), (Option::None, String::new()));
    assert_eq!(row(&drifts(three())), (Some(Restart), String::new()));
    let image = "image e:1 → e:2".to_owned();
    assert_eq!(row(&pending(&[1], Relabel)), (Some(Relabel), image.clone()));
    for step in [None, Relabel] {
        let row = row(&drifts(pending(&[1], step)));
        assert_eq!(row, (Some(Restart), format!("the config; {image}")));
    }
    assert_eq!(row(&drifts(pending(&[1], Container))), (Some(Container), image));
    // The note of what its container was started with is no field of the template.
    let mut note = drifts(pending(&[1], Relabel));
    note.pods[1].update.as_mut().unwrap().as_mut().unwrap().because.clear();
    assert_eq!(row(&note), (Some(Restart), String::new()));
}

#[test] // proves UPDATE-31
fn a_node_that_leaves_is_moved_whatever_it_lacks() {
    let mut snapshot = pending(&[1], UpdateStep::Container);
    snapshot.pods[1].leaving = Some("4 shards are still on it".into());
    assert_eq!(row(&snapshot), (Some(UpdateStep::Move), "spec.nodeSets".to_owned()));
}
