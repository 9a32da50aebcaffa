//! The apiserver as tests and the kubelet of one use it: through the library, because kubectl takes 0.15 s
//! of a processor to start.

use std::fmt;
use std::path::Path;

use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// The namespace of the cluster.
pub(crate) const NAMESPACE: &str = "search";

/// A client with a connection that is kept.
pub(crate) struct Kube {
    runtime: Runtime,
    client: Client,
}

impl fmt::Debug for Kube {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kube").finish_non_exhaustive()
    }
}

impl Kube {
    /// With the rights of this kubeconfig.
    pub(crate) fn new(kubeconfig: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            Client::try_from(config.expect("a config")).expect("a client")
        });
        Self { runtime, client }
    }

    /// The JSON at this path of the API.
    pub(crate) fn read(&self, path: &str) -> kube::Result<Value> {
        let request = http::Request::get(path).body(Vec::new()).expect("a path");
        self.runtime.block_on(self.client.request(request))
    }

    fn api<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// All objects of a kind.
    pub(crate) fn list<K>(&self) -> kube::Result<Vec<K>>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let list = self.api::<K>();
        self.runtime.block_on(async { list.list(&Default::default()).await }).map(|list| list.items)
    }

    /// One object.
    pub(crate) fn get<K>(&self, name: &str) -> kube::Result<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api = self.api::<K>();
        self.runtime.block_on(async { api.get(name).await })
    }

    /// Creates an object.
    #[track_caller]
    pub(crate) fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).expect("an object");
        let api = self.api::<K>();
        let made = self.runtime.block_on(async { api.create(&Default::default(), &object).await });
        made.expect("it is created")
    }

    /// Merges `change` into an object.
    #[track_caller]
    pub(crate) fn merge<K>(&self, name: &str, change: &Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api = self.api::<K>();
        let patch = Patch::Merge(change);
        let done =
            self.runtime.block_on(async { api.patch(name, &PatchParams::default(), &patch).await });
        done.expect("it is taken");
    }

    /// Merges `change` into an object's status.
    pub(crate) fn merge_status<K>(&self, name: &str, change: &Value) -> kube::Result<()>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api = self.api::<K>();
        let patch = Patch::Merge(change);
        let done = self
            .runtime
            .block_on(async { api.patch_status(name, &PatchParams::default(), &patch).await });
        done.map(drop)
    }
}
