//! Where a value is in a pod template.

use std::fmt;

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
