//! `cluster.initial_master_nodes`: an engine reads it only until its cluster has formed, and ECK takes it out of
//! the config then. Two configs that differ in nothing else need no restart.

/// The setting, nested below `cluster` or by its full name.
const KEYS: [&str; 2] = ["initial_master_nodes:", "cluster.initial_master_nodes:"];
/// Files that engines read their settings from.
const SETTINGS_FILES: [&str; 2] = ["elasticsearch.yml", "opensearch.yml"];

/// True if engines read their settings from a file at this path.
pub fn is_settings_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    SETTINGS_FILES.contains(&name)
}

/// The text of a settings file without `cluster.initial_master_nodes`; `None` if the setting is not in it. Read by
/// lines: where it is written in a way that is not known, it stays.
pub fn without_initial_masters(file: &[u8]) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(file.len());
    let mut has_it = false;
    // How far the line of the setting is indented, while the lines of its value follow.
    let mut inside: Option<usize> = None;
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii();
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        let is_key = KEYS.iter().any(|key| text.starts_with(key.as_bytes()));
        let is_item = text == b"-" || text.starts_with(b"- ");
        if is_key {
            has_it = true;
            inside = Some(indent);
            continue;
        }
        match inside {
            Some(of_key) if indent > of_key || (indent == of_key && is_item) => continue,
            Some(_) | None => inside = None,
        }
        kept.extend_from_slice(line);
    }
    has_it.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str) -> Option<String> {
        without_initial_masters(text.as_bytes()).map(|kept| String::from_utf8(kept).unwrap())
    }

    #[test] // proves RESTART-128
    fn it_is_taken_out_however_it_is_written() {
        let eck = "cluster:\n    initial_master_nodes:\n        - logs-es-default-0\n        - \
                   logs-es-default-1\n    name: logs\nnode:\n    store:\n        allow_mmap: false\n";
        let formed = "cluster:\n    name: logs\nnode:\n    store:\n        allow_mmap: false\n";
        assert_eq!(without(eck).as_deref(), Some(formed));
        for text in [
            "a: 1\ncluster.initial_master_nodes: [logs-0, logs-1]\nb: 2\n",
            "a: 1\ncluster.initial_master_nodes: logs-0\nb: 2\n",
            "a: 1\ncluster.initial_master_nodes:\n- logs-0\n- logs-1\nb: 2\n",
            "a: 1\ncluster.initial_master_nodes: [\n  logs-0,\n  logs-1]\nb: 2\n",
        ] {
            assert_eq!(without(text).as_deref(), Some("a: 1\nb: 2\n"), "{text}");
        }
    }

    #[test]
    fn all_else_stays() {
        for text in ["", "a: 1\n", "- x\n", "# initial_master_nodes: x\n", "initial_master: 1\n"] {
            assert_eq!(without(text), None, "{text}");
        }
        assert!(is_settings_file("opensearch.yml") && is_settings_file("main/elasticsearch.yml"));
        assert!(!is_settings_file("x-elasticsearch.yml"));
    }
}
