//! SearchClusters that cannot be understood: edited by hand, or of another version. Each is told, in
//! the log, in an event and as a metric, and left alone until it can be read again.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::core::DeserializeGuard;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use super::apiserver::{Apiserver, MANAGER};
use super::metrics::Metrics;
use super::worker::Key;
use crate::cluster::SearchCluster;

/// Those there are.
#[derive(Debug, Default)]
pub(super) struct Unreadable {
    known: BTreeMap<Key, One>,
}

#[derive(Debug)]
struct One {
    reference: ObjectReference,
    message: String,
    is_told: bool,
    /// Seen in the list being read.
    is_listed: bool,
}

impl Unreadable {
    /// The object, if it can be understood.
    pub(super) fn open(
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
                    "SearchCluster {}/{} cannot be read, and nothing is done for it: {}; put right \
                     what was edited by hand, or use the version of the reconciler that wrote it",
                    key.0, key.1, invalid.error
                );
                let before = self.known.get(&key).filter(|one| one.message == message);
                let is_told = before.is_some_and(|one| one.is_told);
                self.known.insert(key, One { reference, message, is_told, is_listed: true });
                None
            }
        }
    }

    /// It is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.known.remove(key);
    }

    /// A new list of a namespace begins; none is all.
    pub(super) fn relist(&mut self, namespace: Option<&str>) {
        let of = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
        self.known.iter_mut().filter(|(key, _)| of(key)).for_each(|(_, one)| one.is_listed = false);
    }

    /// It is complete: who was not in it is gone.
    pub(super) fn listed(&mut self, namespace: Option<&str>) {
        let of = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
        self.known.retain(|key, one| one.is_listed || !of(key));
    }

    /// Tells what is new.
    pub(super) fn tell(&mut self, api: &Apiserver, metrics: &Metrics, instance: &str) {
        let names = self.known.keys().map(|(namespace, name)| format!("{namespace}/{name}"));
        metrics.set_unreadable(names.collect());
        for ((namespace, name), one) in &mut self.known {
            if std::mem::replace(&mut one.is_told, true) {
                continue;
            }
            let cluster = format!("{namespace}/{name}");
            tracing::error!(cluster, "{}", one.message);
            let instance = Some(instance.to_owned()).filter(|name| !name.is_empty());
            let reporter = Reporter { controller: MANAGER.into(), instance };
            let (recorder, reference) =
                (Recorder::new(api.client(), reporter), one.reference.clone());
            // An event may have 1 KiB; what is longer is in the log.
            let note: String = one.message.chars().take(250).collect();
            // For people: nobody waits for it.
            tokio::spawn(async move {
                let event = Event {
                    type_: EventType::Warning,
                    reason: "Unreadable".into(),
                    note: Some(note),
                    action: "Read".into(),
                    secondary: None,
                };
                if let Err(error) = recorder.publish(&event, &reference).await {
                    tracing::warn!(cluster, "an event could not be told: {error}");
                }
            });
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
        let mut all = Unreadable::default();
        assert!(all.open(key.clone(), read(&json!({"history": "none"}))).is_none());
        assert!(all.known[&key].message.contains("default/logs"), "{all:?}");
        all.relist(Some("other"));
        all.listed(Some("other"));
        assert_eq!(all.known.len(), 1);
        assert!(all.open(key.clone(), read(&json!({"newer": 1}))).is_some());
        assert!(all.known.is_empty());
        assert!(all.open(key.clone(), read(&json!({"restart": 7}))).is_none());
        all.relist(None);
        all.listed(None);
        assert!(all.known.is_empty());
    }
}
