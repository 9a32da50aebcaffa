//! What the user of the engine needs is the same in the document and in the message.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;
use stayput_engine::{Access, EngineError};

use super::{ENGINE_ANSWER_TIMEOUT, answering, client, wait};

fn in_backticks(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test] // proves RESTART-161
fn the_document_has_those_that_the_message_names() {
    let (_fake, port) = answering(403, json!({ "error": "no" }));
    let client = client(&[port], &Access::Plain, ENGINE_ANSWER_TIMEOUT);
    let Err(EngineError::Unauthorized(message)) = wait(client.health()) else { panic!("a health") };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operators.md");
    let document = fs::read_to_string(path).expect(path);
    let (_, section) =
        document.split_once("## What the user of the engine needs").expect("it is there");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let table: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(in_backticks(&table.join("\n")), in_backticks(&message));
}
