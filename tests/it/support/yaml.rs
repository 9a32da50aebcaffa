//! Manifests as JSON.

use serde_json::{Map, Number, Value};
use yaml_rust2::{Yaml, YamlLoader};

/// The objects of a manifest.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    YamlLoader::load_from_str(text).expect("YAML").iter().map(json).collect()
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::String(text) => Value::String(text.clone()),
        Yaml::Integer(number) => Value::Number(Number::from(*number)),
        Yaml::Boolean(truth) => Value::Bool(*truth),
        Yaml::Array(items) => items.iter().map(json).collect(),
        Yaml::Hash(fields) => {
            let name = |key: &Yaml| key.as_str().expect("keys are strings").to_owned();
            let fields = fields.iter().map(|(key, value)| (name(key), json(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Yaml::Null => Value::Null,
        other => panic!("no manifest has {other:?}"),
    }
}
