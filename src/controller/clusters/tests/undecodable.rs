use crate::clusters::*;
use serde_json::json;

fn read(status: &serde_json::Value) -> DeserializeGuard<SearchCluster> {
    serde_json::from_value(json!({
        "apiVersion": "stayput.dev/v1alpha1",
        "kind": "SearchCluster",
        "metadata": {"name": "logs", "namespace": "default"},
        "spec": {
            "pods": {"selector": {"matchLabels": {"app": "logs"}}},
            "engine": {},
            "manager": {"caSecret": "ca", "auth": {"jwtKeySecret": "key"}},
        },
        "status": status,
    }))
    .expect("metadata at least")
}

#[test]
fn it_is_kept_until_it_can_be_read_or_is_gone() {
    let key = ("default".to_owned(), "logs".to_owned());
    let mut all = Undecodable::default();
    assert!(all.decode(key.clone(), read(&json!({"history": "none"}))).is_none());
    assert!(all.known[&key].message.contains("default/logs"), "{all:?}");
    all.begin_list(Some("other"));
    all.end_list(Some("other"));
    assert_eq!(all.known.len(), 1);
    assert!(all.decode(key.clone(), read(&json!({"newer": 1}))).is_some());
    assert!(all.known.is_empty());
    assert!(all.decode(key.clone(), read(&json!({"restart": 7}))).is_none());
    all.begin_list(None);
    all.end_list(None);
    assert!(all.known.is_empty());
}
