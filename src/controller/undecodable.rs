//! SearchClusters that cannot be decoded: edited by hand, or written by another version. Each is
//! reported in the log, in an event and as a metric, and left alone until it can be decoded again.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::core::DeserializeGuard;
use kube::runtime::events::{Event, EventType};
use tracing::Instrument;

use super::apiserver::Apiserver;
use super::clusters::Key;
use super::event_recorder::{publish, reporter};
use super::metrics::Metrics;
use stayput_kube_access::cluster::SearchCluster;

/// All SearchClusters that cannot be decoded.
#[derive(Debug, Default)]
pub(super) struct Undecodable {
    known: BTreeMap<Key, Entry>,
}

#[derive(Debug)]
struct Entry {
    reference: ObjectReference,
    message: String,
    is_reported: bool,
    /// True if the object is in the list that is being read.
    is_listed: bool,
}

impl Undecodable {
    /// The object, if it can be decoded.
    pub(super) fn decode(
        &mut self,
        key: Key,
        read: DeserializeGuard<SearchCluster>,
    ) -> Option<SearchCluster> {
        let reference = read.object_ref(&());
        match read.0 {
            Ok(cluster) => {
                self.known.remove(&key);
                Some(cluster)
            }
            Err(invalid) => {
                let message = format!(
                    "SearchCluster {}/{} cannot be decoded and is not reconciled: {}; correct what \
                     was edited by hand, or use the version of the reconciler that wrote it",
                    key.0, key.1, invalid.error
                );
                let before = self.known.get(&key).filter(|one| one.message == message);
                let is_reported = before.is_some_and(|one| one.is_reported);
                let entry = Entry { reference, message, is_reported, is_listed: true };
                self.known.insert(key, entry);
                None
            }
        }
    }

    /// Forgets an object that is deleted.
    pub(super) fn remove(&mut self, key: &Key) {
        self.known.remove(key);
    }

    /// Begins a new list of a namespace; without one, of all namespaces.
    pub(super) fn begin_list(&mut self, namespace: Option<&str>) {
        let of = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
        self.known.iter_mut().filter(|(key, _)| of(key)).for_each(|(_, one)| one.is_listed = false);
    }

    /// Ends a list: objects that were not in it are deleted.
    pub(super) fn end_list(&mut self, namespace: Option<&str>) {
        let of = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
        self.known.retain(|key, one| one.is_listed || !of(key));
    }

    /// Reports the new ones. No task waits until the events are sent.
    pub(super) fn report(&mut self, api: &Apiserver, metrics: &Metrics, instance: &str) {
        let names = self.known.keys().map(|(namespace, name)| format!("{namespace}/{name}"));
        metrics.set_undecodable(names.collect());
        for ((namespace, name), one) in &mut self.known {
            if std::mem::replace(&mut one.is_reported, true) {
                continue;
            }
            let cluster = format!("{namespace}/{name}");
            tracing::error!(cluster, "{}", one.message);
            let reference = one.reference.clone();
            // An event may have 1 KiB; the log has the whole message.
            let note: String = one.message.chars().take(250).collect();
            let event = Event {
                type_: EventType::Warning,
                reason: "DecodeFailed".into(),
                note: Some(note),
                action: "Decode".into(),
                secondary: None,
            };
            let send = publish(api.clone(), reporter(instance), event, reference);
            tokio::spawn(send.instrument(tracing::error_span!("cluster", cluster)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
