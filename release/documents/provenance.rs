//! How the files of a release were made: an in-toto statement with the predicate of SLSA 1. Whoever signs
//! SHA256SUMS signs this, too.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Failure, sha256};

/// Who builds when nobody says anything else: a person, on a machine of their own.
const BY_HAND: &str = "https://stayput.dev/builders/by-hand";

/// About every file in `directory`. Tools are written `NAME=VERSION`.
pub(crate) fn statement(
    version: &str,
    commit: &str,
    directory: &Path,
    tools: &[&str],
) -> Result<Value, Failure> {
    let mut files: Vec<_> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut subjects = Vec::new();
    for file in files {
        let digest = sha256(&fs::read(file.path())?);
        subjects.push(json!({
            "name": file.file_name().to_string_lossy(), "digest": {"sha256": digest},
        }));
    }
    let mut versions = serde_json::Map::new();
    for tool in tools {
        let (name, version) = tool.split_once('=').ok_or_else(|| format!("no version: {tool}"))?;
        versions.insert(name.to_owned(), json!(version));
    }
    let builder = std::env::var("RELEASE_BUILDER").unwrap_or_else(|_| BY_HAND.to_owned());
    let lock = sha256(&fs::read("Cargo.lock")?);
    Ok(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://stayput.dev/release/run/v1",
                "externalParameters": {"version": version},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    {"name": "Cargo.lock", "digest": {"sha256": lock}},
                ],
            },
            "runDetails": {"builder": {"id": builder, "version": versions}},
        },
    }))
}
