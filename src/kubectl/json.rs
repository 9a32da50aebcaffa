//! Types of `--output json`: `proto/kubectl-stayput.schema.json` is made from them. Fields are added,
//! never renamed or removed.

mod action;
mod diff;
mod doctor;
mod forecast;
mod init;
mod inject;
mod node;
mod plan;
mod progress;
mod restart;
mod status;
mod ui;

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

pub(super) use action::{ActionOutput, ActionResult};
pub(super) use diff::DiffOutput;
pub(super) use doctor::DoctorOutput;
pub(super) use forecast::ForecastOutput;
pub(super) use init::{InitObject, InitOutput, InitResult};
pub(super) use inject::InjectOutput;
pub(super) use node::NodeOutput;
pub(super) use plan::PlanOutput;
pub(super) use progress::ProgressOutput;
pub(super) use status::{AllOutput, HistoryOutput, StatusOutput};
pub(super) use ui::UiOutput;

/// The JSON schema of everything that `--output json` prints.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::from(SchemaSettings::draft2020_12().for_serialize());
    let commands = [
        ("status", generator.subschema_for::<StatusOutput>()),
        ("plan", generator.subschema_for::<PlanOutput>()),
        ("why", generator.subschema_for::<NodeOutput>()),
        ("diff", generator.subschema_for::<DiffOutput>()),
        ("doctor", generator.subschema_for::<DoctorOutput<'_>>()),
        ("history", generator.subschema_for::<HistoryOutput>()),
        ("status -A", generator.subschema_for::<AllOutput<StatusOutput>>()),
        ("history -A", generator.subschema_for::<AllOutput<HistoryOutput>>()),
        ("init", generator.subschema_for::<InitOutput>()),
        ("inject --check", generator.subschema_for::<InjectOutput<'_>>()),
        ("ui", generator.subschema_for::<UiOutput>()),
        (
            "restart, cancel, pause, resume, stop, start, detach",
            generator.subschema_for::<ActionOutput>(),
        ),
        ("a line of watch and of restart --watch", generator.subschema_for::<ProgressOutput<'_>>()),
    ];
    let any: Vec<Value> = commands
        .into_iter()
        .map(|(title, schema)| json!({"title": title, "$ref": schema.get("$ref")}))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What kubectl stayput prints with --output json",
        "anyOf": any,
        "$defs": generator.take_definitions(true),
    })
}
