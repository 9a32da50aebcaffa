//! `doctor`: the findings of each SearchCluster, each with its remedy.

use crate::doctor::{Examined, Severity};
use crate::page::{Page, Paint, Tone};

pub(crate) fn doctor(all: &[Examined], paint: Paint) -> String {
    let mut page = Page::new(paint);
    for examined in all {
        page.fact("cluster", format!("{}/{}", examined.namespace, examined.cluster));
        for finding in &examined.findings {
            let tone = match finding.severity {
                Severity::Error => Tone::Bad,
                Severity::Unknown | Severity::Warning => Tone::Warning,
                Severity::Note => Tone::Neutral,
            };
            let text = format!("{}: {}: {}", finding.code, finding.object, finding.message);
            page.toned(finding.severity.as_str(), tone, text);
            for line in finding.remedy.lines() {
                page.fact("", line);
            }
        }
        let count = |severity: Severity, one: &str, many: &str| {
            let same = examined.findings.iter().filter(|finding| finding.severity == severity);
            let count = same.count();
            format!("{count} {}", if count == 1 { one } else { many })
        };
        if examined.findings.is_empty() {
            page.toned("result", Tone::Good, "nothing is wrong");
        } else {
            let counts = [
                count(Severity::Error, "error", "errors"),
                count(Severity::Unknown, "unknown", "unknown"),
                count(Severity::Warning, "warning", "warnings"),
                count(Severity::Note, "note", "notes"),
            ];
            page.fact("result", counts.join(", "));
        }
    }
    page.into_text()
}
