//! Every proof that `SPECIFICATION.md` names exists.

use std::fs;
use std::path::{Path, PathBuf};

fn rust_text(below: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &rust_text(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &fs::read_to_string(&path).unwrap();
        }
    }
    text
}

/// Everything in backticks.
fn quoted(document: &str) -> impl Iterator<Item = &str> {
    document.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn every_proof_exists() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("SPECIFICATION.md")).unwrap();
    let code = rust_text(&root.join("src")) + &rust_text(&root.join("tests"));
    let mut missing = Vec::new();
    let mut found = 0;
    for proof in quoted(&document) {
        let exists = if let Some(page) = proof.strip_prefix("restart::tests::scenario::") {
            // A macro makes a test of each of these pages.
            root.join("src/restart/tests/scenarios").join(page).with_extension("txt").exists()
        } else if let Some((_, test)) = proof.rsplit_once("::") {
            code.contains(&format!("fn {test}("))
        } else if let Some(figure) = proof.strip_prefix("bench/").filter(|figure| *figure != "…")
        {
            root.join("bench").join(figure.split(' ').next().unwrap()).exists()
        } else {
            continue;
        };
        found += 1;
        if !exists {
            missing.push(proof);
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(found > 50, "only {found} proofs were found: is the document read right?");
}
