//! Reads the contents of Secrets and ConfigMaps.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use stayput_pod_update::{IGNORE, Ignore, Source, SourceKind};

use crate::apiserver::{ApiError, Apiserver};

/// A Secret or ConfigMap, as it is now.
pub(super) struct Object {
    pub(super) metadata: ObjectMeta,
    /// The bytes of each key.
    pub(super) data: BTreeMap<String, Vec<u8>>,
    /// The keys that do not count, by its annotation.
    pub(super) ignore: Ignore,
}

impl Object {
    /// Reads the object, if it exists.
    pub(super) async fn read(
        api: &Apiserver,
        namespace: &str,
        source: &Source,
    ) -> Result<Option<Self>, ApiError> {
        let name = &source.name;
        Ok(match source.kind {
            SourceKind::Secret => api.find(namespace, name).await?.map(Self::of_secret),
            SourceKind::ConfigMap => api.find(namespace, name).await?.map(Self::of_map),
        })
    }

    fn of_secret(secret: Secret) -> Self {
        let data = secret.data.into_iter().flatten().map(|(key, value)| (key, value.0));
        Self::new(secret.metadata, data.collect())
    }

    fn of_map(map: ConfigMap) -> Self {
        let text = map.data.into_iter().flatten().map(|(key, value)| (key, value.into_bytes()));
        let binary = map.binary_data.into_iter().flatten().map(|(key, value)| (key, value.0));
        Self::new(map.metadata, text.chain(binary).collect())
    }

    pub(super) fn new(metadata: ObjectMeta, data: BTreeMap<String, Vec<u8>>) -> Self {
        let annotations = metadata.annotations.as_ref();
        let ignore = annotations.and_then(|all| all.get(IGNORE)).map(String::as_str);
        Self { ignore: Ignore::parse(ignore), metadata, data }
    }
}
