//! What a scrape has, and what a query asks for: names of metrics, with the names of their labels.

use std::collections::{BTreeMap, BTreeSet};

/// Labels by the name of the metric.
pub(crate) type Series = BTreeMap<String, BTreeSet<String>>;

/// The series of a scrape.
pub(crate) fn served(scrape: &str) -> Series {
    let mut series = Series::new();
    for line in scrape.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = selector(line);
        series.entry(name).or_default().extend(labels);
    }
    series
}

/// The series that a query names: `stayput_x` and `stayput_x{label="…"}`.
pub(crate) fn asked(query: &str) -> Series {
    let mut series = Series::new();
    let mut rest = query;
    while let Some(at) = rest.find("stayput_") {
        rest = &rest[at..];
        let (name, labels) = selector(rest);
        rest = &rest[name.len()..];
        series.entry(name).or_default().extend(labels);
    }
    series
}

/// Name and labels at the beginning of a text.
fn selector(text: &str) -> (String, BTreeSet<String>) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let inner = rest.strip_prefix('{').and_then(|rest| Some(rest.split_once('}')?.0));
    // No value has a comma or an equals sign.
    let labels = inner.unwrap_or_default().split(',').filter_map(|one| one.split_once('='));
    let labels = labels.map(|(label, _)| label.trim_end_matches('!').trim().to_owned());
    (name.to_owned(), labels.collect())
}

#[test]
fn selectors_are_read() {
    let labels = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let asked = asked("max by (a) (stayput_x{b!=\"1\",c=~\"$d\"}) - rate(stayput_y_total[5m])");
    assert_eq!(asked["stayput_x"], labels(&["b", "c"]));
    assert_eq!(asked["stayput_y_total"], labels(&[]));
    assert_eq!(asked.len(), 2);
    let served = served("# TYPE stayput_x gauge\nstayput_x{b=\"1\"} 1\nstayput_x{c=\"2\"} 1\n");
    assert_eq!(served["stayput_x"], labels(&["b", "c"]));
}
