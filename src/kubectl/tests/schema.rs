//! The schema that is handed out is that of the code.

use std::fs;
use std::path::Path;

#[test]
fn the_file_is_what_the_types_say() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/kubectl-stayput.schema.json");
    let wanted = format!("{:#}\n", crate::kubectl::schema());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == wanted,
        "proto/kubectl-stayput.schema.json is out of date: `UPDATE_DOCS=1 cargo test --lib \
         kubectl::tests::schema`, and only ever add to it"
    );
}
