//! `diff`: for each pod the cheapest step that brings it to the wanted template, and the fields that
//! need it.

use stayput_pod_update::Difference;

use crate::diff::{Diff, Wanted};
use crate::format::or_dash;
use crate::options::into_commands;
use crate::page::{Page, Paint};

pub(crate) fn diff(diff: &Diff) -> String {
    let mut page = Page::new(Paint::default());
    let head = ["POD", "STEP", "KEPT", "FIELD", "FROM", "TO"];
    let mut rows = vec![head.map(str::to_owned)];
    for pod in &diff.pods {
        match &pod.wanted {
            Wanted::Removed(_) => {
                rows.push(row([pod.pod.clone(), "removed".into(), "-".into()], None))
            }
            Wanted::Unknown(_) => {
                rows.push(row([pod.pod.clone(), "unknown".into(), "-".into()], None))
            }
            Wanted::Update(update) => {
                let kept = update.step.keeps().to_owned();
                let name = update.step.name().to_owned();
                let mut because = update.because.iter();
                rows.push(row([pod.pod.clone(), name, kept], because.next()));
                rows.extend(because.map(|each| {
                    // A lower step, which the highest one does with it.
                    row(
                        [String::new(), format!("({})", each.step.name()), String::new()],
                        Some(each),
                    )
                }));
            }
        }
    }
    if diff.pods.is_empty() {
        page.line("the SearchCluster has no pods");
    } else {
        page.table(&rows);
    }
    for pod in &diff.pods {
        match &pod.wanted {
            Wanted::Update(_) => {}
            Wanted::Removed(why) => page.line(format!("{}: {why}", pod.pod)),
            Wanted::Unknown(reason) => page.line(format!("{}: {reason}", pod.pod)),
        }
    }
    if diff.pods.iter().any(|pod| pod.is_outdated) {
        for set in &diff.rolling {
            let command = into_commands(&set.on_delete_command(&diff.namespace), &diff.options);
            page.line(format!(
                "StatefulSet {} replaces its pods by itself. To keep them: {command}",
                set.name
            ));
        }
    }
    page.into_text()
}

fn row(start: [String; 3], difference: Option<&Difference>) -> [String; 6] {
    let [pod, step, kept] = start;
    let shown = |value: Option<&String>| or_dash(value.map_or("", String::as_str)).to_owned();
    let field = shown(difference.map(|each| &each.field));
    let from = shown(difference.and_then(|each| each.from.as_ref()));
    let to = shown(difference.and_then(|each| each.to.as_ref()));
    [pod, step, kept, field, from, to]
}
