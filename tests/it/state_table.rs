//! `docs/states.md` describes what the code does. `UPDATE_DOCS=1 cargo test --test it state_table`
//! writes the page again.

mod drive;
mod page;

use std::path::Path;

#[test] // proves REQUEST-5
fn the_page_of_states_is_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/states.md");
    let page = page::page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs/ can be written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/states.md is out of date; write it anew with \
         `UPDATE_DOCS=1 cargo test --test it state_table` and read the difference"
    );
}
