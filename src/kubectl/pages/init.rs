//! `init`: the created objects, and the commands to type next.

use crate::json::{InitOutput, InitResult};
use crate::page::{Page, Paint};

pub(crate) fn init(output: &InitOutput) -> String {
    let mut page = Page::new(Paint::default());
    let mut rows = vec![["OBJECT", "RESULT", "MESSAGE"].map(str::to_owned)];
    for object in &output.objects {
        let name = format!("{} {}", object.kind, object.name);
        rows.push([name, word(object.result, output.dry_run).to_owned(), object.message.clone()]);
    }
    page.table(&rows);
    for note in &output.notes {
        page.line(format!("note: {note}"));
    }
    for command in &output.next {
        page.line(format!("next: {command}"));
    }
    page.into_text()
}

const fn word(result: InitResult, dry_run: bool) -> &'static str {
    match (result, dry_run) {
        (InitResult::Made, false) => "made",
        (InitResult::Made, true) => "would be made",
        (InitResult::Changed, false) => "changed",
        (InitResult::Changed, true) => "would be changed",
        (InitResult::Unchanged, _) => "unchanged",
        (InitResult::Left, _) => "left as it is",
        (InitResult::Missing, _) => "missing",
    }
}
