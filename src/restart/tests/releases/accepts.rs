//! Whether one program reads what another one writes, by the schemas of both.

use std::collections::BTreeSet;

use serde_json::Value;

/// What of an older program's documents the newer one does not take; empty if it takes them all.
pub(super) fn faults(reader: &Value, writer: &Value) -> Vec<String> {
    Pair { reader, writer, all: false }.faults()
}

/// The same of a newer program's documents and the older one, which also needs every field that it
/// knows: one that is left out had a meaning. Fields that it does not know are ignored.
pub(super) fn faults_of_older(reader: &Value, writer: &Value) -> Vec<String> {
    Pair { reader, writer, all: true }.faults()
}

/// Fields that are written and that the reader does not know.
pub(super) fn unknown(reader: &Value, writer: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    Pair { reader, writer, all: false }.list_unknown(reader, writer, "", &mut unknown);
    unknown
}

/// The whole schemas, in which references are looked up.
struct Pair<'a> {
    reader: &'a Value,
    writer: &'a Value,
    /// Every field that is read must be written.
    all: bool,
}

impl Pair<'_> {
    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        self.compare(self.reader, self.writer, "", &mut faults);
        faults
    }

    fn compare(&self, reads: &Value, writes: &Value, at: &str, faults: &mut Vec<String>) {
        let (reads, writes) = (plain(self.reader, reads), plain(self.writer, writes));
        let (takes, makes) = (types(reads), types(writes));
        if !makes.is_subset(&takes) {
            faults.push(format!("{at}: {makes:?} is written, {takes:?} is read"));
        }
        let (known, used) = (values(reads), values(writes));
        for value in used.iter().filter(|value| !known.is_empty() && !known.contains(*value)) {
            faults.push(format!("{at}: {value} is written and cannot be read"));
        }
        let written: BTreeSet<&str> = required(writes).collect();
        for field in required(reads).filter(|field| !written.contains(field)) {
            faults.push(format!("{at}/{field}: is not always written, and must be there"));
        }
        for (field, read) in reads["properties"].as_object().into_iter().flatten() {
            match writes["properties"].get(field) {
                Some(written) => self.compare(read, written, &format!("{at}/{field}"), faults),
                None if self.all => faults.push(format!("{at}/{field}: is not written any more")),
                None => {}
            }
        }
        for inner in INNER {
            if let (Some(read), Some(written)) = (reads.get(inner), writes.get(inner))
                && read.is_object()
            {
                self.compare(read, written, &format!("{at}/*"), faults);
            }
        }
    }

    fn list_unknown(&self, reads: &Value, writes: &Value, at: &str, unknown: &mut Vec<String>) {
        let (reads, writes) = (plain(self.reader, reads), plain(self.writer, writes));
        for (field, written) in writes["properties"].as_object().into_iter().flatten() {
            let path = format!("{at}/{field}");
            match reads["properties"].get(field) {
                Some(read) => self.list_unknown(read, written, &path, unknown),
                None => unknown.push(path),
            }
        }
        for inner in INNER {
            if let (Some(read), Some(written)) = (reads.get(inner), writes.get(inner)) {
                self.list_unknown(read, written, &format!("{at}/*"), unknown);
            }
        }
    }
}

/// The schemas of what is inside, with its part of the path.
const INNER: [&str; 2] = ["items", "additionalProperties"];

/// The schema that is meant: references and optional values are looked through.
fn plain<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#'));
        return plain(root, target.expect("a definition"));
    }
    let is_null = |variant: &&Value| variant["type"] != "null";
    match schema["anyOf"].as_array().map(|all| all.iter().filter(is_null).collect::<Vec<_>>()) {
        Some(one) if one.len() == 1 => plain(root, one[0]),
        _ => schema,
    }
}

fn types(schema: &Value) -> BTreeSet<&str> {
    let several = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
    several.chain(schema["type"].as_str()).filter(|one| *one != "null").collect()
}

/// The values that are listed, in an `enum` or one by one with their descriptions.
fn values(schema: &Value) -> BTreeSet<String> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    let single = schema["oneOf"].as_array().into_iter().flatten();
    let single = single.filter_map(|one| one.get("const"));
    listed.chain(single).map(ToString::to_string).collect()
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[test] // proves RESTART-25
fn each_kind_of_change_is_seen() {
    let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let old = schema(
        r##"{"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "enum": ["x", "y"]},
            "b": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "null"}]},
            "c": {"type": "array", "items": {"type": "integer"}}},
            "$defs": {"B": {"type": "object", "properties": {"d": {"type": "string"}}}}}"##,
    );
    let with = |at: &str, value: Value| {
        let mut new = old.clone();
        let (parent, name) = at.rsplit_once('/').unwrap();
        new.pointer_mut(parent).unwrap()[name] = value;
        (faults_of_older(&old, &new), faults(&new, &old))
    };
    let none = Vec::<String>::new();
    assert_eq!(with("/title", "the same".into()), (none.clone(), none.clone()));
    assert_eq!(
        with("/properties/e", schema(r#"{"type": "string"}"#)),
        (none.clone(), none.clone())
    );
    let mut new = old.clone();
    new["$defs"]["B"]["properties"]["e"] = schema(r#"{"type": "string"}"#);
    assert_eq!((unknown(&old, &new), unknown(&new, &old)), (vec!["/b/e".to_owned()], none.clone()));
    let value = r#"/a: "z" is written and cannot be read"#;
    let more = schema(r#"["x", "y", "z"]"#);
    assert_eq!(with("/properties/a/enum", more), (vec![value.into()], none.clone()));
    let needed = "/c: is not always written, and must be there";
    assert_eq!(with("/required", schema(r#"["a", "c"]"#)), (none.clone(), vec![needed.into()]));
    let missing = "/a: is not always written, and must be there";
    assert_eq!(with("/required", schema("[]")), (vec![missing.into()], none.clone()));
    let (by_old, by_new) = with("/properties", schema(r#"{"a": {"type": "string"}}"#));
    let gone = ["/b: is not written any more", "/c: is not written any more"];
    assert_eq!((by_old, by_new), (gone.map(str::to_owned).to_vec(), none));
    for (at, path) in
        [("/$defs/B/properties/d/type", "/b/d: "), ("/properties/c/items/type", "/c/*: ")]
    {
        let (by_old, by_new) = with(at, "boolean".into());
        assert!(by_old[0].starts_with(path) && by_new[0].starts_with(path), "{by_old:?}");
    }
}
