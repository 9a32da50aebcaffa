//! Where two pod templates differ, whatever their fields mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// A value that is not the same in both; as small as names of fields and elements allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) path: Path,
    /// Value that the pod was made from, if there is one.
    pub(crate) from: Option<Value>,
    /// Wanted value, if there is one.
    pub(crate) to: Option<Value>,
}

/// Objects that mean the same when they are empty and when they are absent. Elsewhere an empty
/// object is a value: `emptyDir: {}`, `namespaceSelector: {}`.
const EMPTY_IS_ABSENT: [&str; 15] = [
    "metadata",
    "metadata.annotations",
    "metadata.labels",
    "spec.affinity",
    "spec.nodeSelector",
    "spec.securityContext",
    "spec.containers[].resources",
    "spec.containers[].resources.limits",
    "spec.containers[].resources.requests",
    "spec.containers[].securityContext",
    "spec.initContainers[].resources",
    "spec.initContainers[].resources.limits",
    "spec.initContainers[].resources.requests",
    "spec.initContainers[].securityContext",
    "spec.resources",
];

/// The fields by which Kubernetes tells the elements of a list apart.
const NAMES: [&str; 3] = ["name", "mountPath", "devicePath"];

/// All values that are not the same in `from` and `to`.
pub(crate) fn differences(from: &Value, to: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    descend(&Path::default(), Some(from), Some(to), &mut found);
    found
}

fn descend(path: &Path, from: Option<&Value>, to: Option<&Value>, found: &mut Vec<Leaf>) {
    let from = from.filter(|value| !value.is_null());
    let to = to.filter(|value| !value.is_null());
    let empty = Value::Object(serde_json::Map::new());
    let (from, to) = match (from, to) {
        (None, Some(Value::Object(_))) if empty_is_absent(path) => (Some(&empty), to),
        (Some(Value::Object(_)), None) if empty_is_absent(path) => (from, Some(&empty)),
        both => both,
    };
    match (from, to) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                descend(&path.field(name), old.get(name), new.get(name), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => match named([old, new]) {
            Some([by_name_old, by_name_new]) if !order_counts(path, old, new) => {
                let names: BTreeSet<&str> =
                    by_name_old.keys().chain(by_name_new.keys()).copied().collect();
                for name in names {
                    let pair = (by_name_old.get(name).copied(), by_name_new.get(name).copied());
                    descend(&path.element(name), pair.0, pair.1, found);
                }
            }
            _ if old == new => {}
            _ => found.push(leaf(path, from, to)),
        },
        _ if from == to => {}
        _ => found.push(leaf(path, from, to)),
    }
}

fn leaf(path: &Path, from: Option<&Value>, to: Option<&Value>) -> Leaf {
    Leaf { path: path.clone(), from: from.cloned(), to: to.cloned() }
}

fn empty_is_absent(path: &Path) -> bool {
    let depth = path.segments().len();
    EMPTY_IS_ABSENT.iter().any(|pattern| {
        path.is_in(pattern) && pattern.split('.').count() + pattern.matches("[]").count() == depth
    })
}

/// The elements of both lists by the first field that tells them apart: two mounts of one volume
/// have its name. `None` without such a field.
fn named(lists: [&[Value]; 2]) -> Option<[BTreeMap<&str, &Value>; 2]> {
    NAMES.into_iter().find_map(|field| {
        let [old, new] = lists.map(|list| by_name(field, list));
        Some([old?, new?])
    })
}

/// The elements by this field; `None` if one of them does not have it, or two have the same.
fn by_name<'a>(field: &str, list: &'a [Value]) -> Option<BTreeMap<&'a str, &'a Value>> {
    let named = list.iter().map(|element| Some((element.get(field)?.as_str()?, element)));
    let by_name: BTreeMap<&str, &Value> = named.collect::<Option<_>>()?;
    (by_name.len() == list.len()).then_some(by_name)
}

/// True if the order counts: init containers run in their order, and a variable may use those before it.
fn order_counts(path: &Path, old: &[Value], new: &[Value]) -> bool {
    let names = |list: &[Value]| -> Vec<Option<Value>> {
        list.iter().map(|element| element.get("name").cloned()).collect()
    };
    let uses_another = |list: &[Value]| {
        list.iter().any(|element| {
            element.get("value").and_then(Value::as_str).is_some_and(|value| value.contains("$("))
        })
    };
    let is_env = path.is_in("spec.containers[].env") || path.is_in("spec.initContainers[].env");
    let ordered = path.is_in("spec.initContainers") && path.segments().len() == 2
        || is_env && (uses_another(old) || uses_another(new));
    let (mut old, mut new) = (names(old), names(new));
    // Only of the elements in both: what is added or removed is told by its name.
    let all = old.clone();
    old.retain(|name| new.contains(name));
    new.retain(|name| all.contains(name));
    ordered && old != new
}

/// One step down into a template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    /// A field of an object, or a key of a map.
    Field(String),
    /// The element of a list with this name.
    Element(String),
}

/// Where a value is in a pod template; `spec.containers[opensearch].image` for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Path(Vec<Segment>);

impl Path {
    pub(crate) fn field(&self, name: &str) -> Self {
        self.with(Segment::Field(name.to_owned()))
    }

    pub(crate) fn element(&self, name: &str) -> Self {
        self.with(Segment::Element(name.to_owned()))
    }

    fn with(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// The name of the container that this is a part of.
    pub(crate) fn container(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Segment::Field(_), Segment::Field(list), Segment::Element(name), ..]
                if matches!(list.as_str(), "containers" | "initContainers") =>
            {
                Some(name)
            }
            _ => None,
        }
    }

    /// True if this path is in `pattern`: fields by dots, any element of a list as `[]`.
    pub(crate) fn is_in(&self, pattern: &str) -> bool {
        let mut segments = self.0.iter();
        pattern.split('.').all(|wanted| {
            let (name, any_element) = match wanted.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (wanted, false),
            };
            let named = matches!(segments.next(), Some(Segment::Field(field)) if field == name);
            named && (!any_element || matches!(segments.next(), Some(Segment::Element(_))))
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Element(name) => write!(to, "[{name}]")?,
                Segment::Field(name) if name.contains(['.', '/']) => write!(to, "[{name:?}]")?,
                Segment::Field(name) if position == 0 => write!(to, "{name}")?,
                Segment::Field(name) => write!(to, ".{name}")?,
            }
        }
        Ok(())
    }
}
