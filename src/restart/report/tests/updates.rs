//! Pods whose owner wants another template.

use super::{manager, shown, three, waits};
use crate::{Code, PodPatch, PodUpdate, Report, Snapshot};
use stayput_reuse::UpdateStep;

/// Three nodes, of which these pods are to get another template by this step.
fn pending(pods: &[usize], step: UpdateStep) -> Snapshot {
    let mut snapshot = three();
    for at in pods {
        snapshot.pods[*at].update = Ok(Some(PodUpdate {
            from: "logs-1".into(),
            to: "logs-2".into(),
            step,
            because: vec!["image e:1 → e:2".into()],
            new_container: false,
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
        let message = "2 pods are to get another template; logs-1: image e:1 → e:2";
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
        let message = format!("1 pod is to get another template; logs-2: {why}");
        assert_eq!(facts(&report), ("PendingRestart", 1, message.as_str()));
    }
}

#[test]
fn a_config_that_waits_too_is_named_first() {
    let mut snapshot = pending(&[0], UpdateStep::Container);
    manager(&mut snapshot, 2).run.as_mut().unwrap().checksum = Some(super::OLD.into());
    let report = shown(&snapshot, &[]);
    let message = "1 node runs on another config than its sources have: request a restart; \
                   1 pod is to get another template; logs-0: image e:1 → e:2";
    assert_eq!(facts(&report), ("PendingRestart", 1, message));
    assert_eq!(report.counts.pending_restart, 1);
}
