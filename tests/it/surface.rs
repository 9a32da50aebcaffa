//! `tests/surface`: what people and programs see and no other generated file shows. `UPDATE_DOCS=1
//! cargo test --test it surface` writes it anew; each difference in a commit is meant.

mod counts;
mod help;
mod names;

use std::fs;
use std::path::Path;

use crate::support::sources::product;

/// Compares a file of `tests/surface` with what the code has now.
#[track_caller]
pub(crate) fn is_as_written(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/surface").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, text).expect("tests/surface can be written");
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let line = committed.lines().zip(text.lines()).find(|(was, is)| was != is);
    assert!(
        committed == text,
        "tests/surface/{name} is out of date; the first difference is {line:?}. If it is meant: \
         `UPDATE_DOCS=1 cargo test --test it surface`, and a line in CHANGELOG.md"
    );
}

#[test]
fn the_help_of_every_command_is_as_written() {
    for program in help::programs() {
        is_as_written(&format!("{}.help.txt", program.get_name()), &help::text(&program));
    }
}

#[test]
fn every_name_is_as_written() {
    is_as_written("names.txt", &names::text(&names::of(&product())));
}

#[test]
fn the_size_of_the_surface_is_as_written() {
    is_as_written("counts.txt", &counts::text());
}
