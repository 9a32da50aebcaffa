//! The published schemas are those of the code.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::json;

#[track_caller]
fn is_as_written(name: &str, schema: &Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto").join(name);
    let wanted = format!("{schema:#}\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == wanted,
        "proto/{name} is out of date: `UPDATE_DOCS=1 cargo test -p stayput-kubectl schema`, and \
         only ever add to it"
    );
}

#[test] // proves DOCTOR-3
fn the_file_is_what_the_types_say() {
    is_as_written("kubectl-stayput.schema.json", &json::schema());
}
