use crate::observe::sources::*;

fn read(text: &str) -> Option<Settings> {
    of(text.as_bytes())
}

#[test]
fn only_what_decides_is_kept_however_it_is_written() {
    let nested = "cluster:\n  name: logs # ours\nnode.roles: [data]\ns3.client.key: hush\n";
    let kept = read(nested).unwrap();
    assert_eq!(kept, Settings::from([("cluster.name".into(), "logs".into())]));
    assert_eq!(read("transport.port: 9300\n").unwrap()["transport.port"], "9300");
    assert_eq!(read("# nothing\n"), Some(Settings::new()));
    assert_eq!(read(""), Some(Settings::new()));
}

#[test]
fn what_cannot_be_read_is_not_known() {
    assert_eq!(of(b"\xff"), None);
    assert_eq!(read("cluster.name: [a"), None);
    assert_eq!(read(&format!("cluster.name: {}\n", "a".repeat(300))), None);
    // As `{{NODE}}` in a template: not what the engine reads.
    assert_eq!(read("a: b: c"), None);
}
