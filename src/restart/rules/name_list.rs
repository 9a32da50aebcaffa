//! A number of nodes and the names of the first few, for messages.

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct NameList<'a> {
    pub(super) count: usize,
    /// The first [`NAMED`] names, sorted.
    names: Vec<&'a str>,
}

/// Number of names that a list keeps.
const NAMED: usize = 3;

impl<'a> NameList<'a> {
    pub(crate) fn add(&mut self, name: &'a str) {
        self.count += 1;
        self.name(name);
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.count += other.count;
        other.names.iter().for_each(|name| self.name(name));
    }

    fn name(&mut self, name: &'a str) {
        let at = self.names.partition_point(|known| *known < name);
        if at < NAMED {
            self.names.insert(at, name);
            self.names.truncate(NAMED);
        }
    }

    /// `one` if the list has one name, else `many`.
    pub(super) const fn or<'w>(&self, one: &'w str, many: &'w str) -> &'w str {
        if self.count == 1 { one } else { many }
    }
}

/// Writes the names as in `a`, `a and b`, `a, b, c and 4 more`.
impl std::fmt::Display for NameList<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.names.as_slice(), self.count.saturating_sub(self.names.len())) {
            ([], 0) => formatter.write_str("no node"),
            ([], 1) => formatter.write_str("1 node"),
            ([], many) => write!(formatter, "{many} nodes"),
            ([one], 0) => formatter.write_str(one),
            ([first @ .., last], 0) => write!(formatter, "{} and {last}", first.join(", ")),
            (named, more) => write!(formatter, "{} and {more} more", named.join(", ")),
        }
    }
}
