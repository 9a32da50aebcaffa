//! A namespace on a server, and plain requests in it.

use std::time::Duration;

use futures_util::StreamExt;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::core::WatchEvent;
use serde_json::{Value, json};

/// How long an event of a watch may take.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The group of the kind that the cases declare.
pub(super) const GROUP: &str = "conformance.stayput.dev";

/// The part of the server that one case uses.
pub(super) struct World {
    pub(super) client: Client,
    pub(super) namespace: String,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Value,
    pub(super) text: String,
    pub(super) content_type: String,
}

impl Answer {
    /// The body of a good answer; panics for a refusal.
    #[track_caller]
    pub(super) fn good(self) -> Value {
        assert!((200..300).contains(&self.code), "{} {}", self.code, self.text);
        self.body
    }

    /// The `Status` of a refusal with this code and reason; panics otherwise.
    #[track_caller]
    pub(super) fn refused(self, code: u16, reason: &str) -> Value {
        let body = self.body;
        assert_eq!((self.code, body["reason"].as_str()), (code, Some(reason)), "{}", self.text);
        assert_eq!(body["kind"], "Status", "{body}");
        assert_eq!(body["apiVersion"], "v1", "{body}");
        assert_eq!(body["status"], "Failure", "{body}");
        assert_eq!(body["code"], code, "{body}");
        assert!(body["metadata"].is_object(), "{body}");
        body
    }
}

impl World {
    /// A new namespace.
    pub(super) async fn new(client: Client) -> Self {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "conformance-"},
        });
        let mut world = Self { client, namespace: String::new() };
        let made = world.send(Method::POST, "/api/v1/namespaces", &namespace).await.good();
        world.namespace = text(&made["metadata"]["name"]);
        world
    }

    /// The same, on a server that serves the kind `Gauge`.
    pub(super) async fn with_gauges(client: Client) -> Self {
        let world = Self::new(client).await;
        world.declare().await;
        world
    }

    /// Declares the kind and waits until it is served.
    pub(super) async fn declare(&self) {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = self.send(Method::POST, definitions, &super::schema::definition()).await;
        assert!([201, 409].contains(&made.code), "{made:?}");
        self.until("the kind is served", async || {
            let asked = self.get(&self.path("gauges", "")).await;
            (asked.code == 200).then_some(())
        })
        .await;
    }

    /// The path of a kind in this namespace, and the part after it: `NAME`, `NAME/status`,
    /// `?QUERY`.
    pub(super) fn path(&self, plural: &str, rest: &str) -> String {
        let api = match plural {
            "gauges" => format!("apis/{GROUP}/v1"),
            "leases" => "apis/coordination.k8s.io/v1".to_owned(),
            "endpointslices" => "apis/discovery.k8s.io/v1".to_owned(),
            "statefulsets" | "controllerrevisions" => "apis/apps/v1".to_owned(),
            _ => "api/v1".to_owned(),
        };
        let slash = if rest.is_empty() || rest.starts_with('?') { "" } else { "/" };
        format!("/{api}/namespaces/{}/{plural}{slash}{rest}", self.namespace)
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[], Vec::new()).await
    }

    pub(super) async fn post(&self, plural: &str, object: &Value) -> Answer {
        self.send(Method::POST, &self.path(plural, ""), object).await
    }

    pub(super) async fn put(&self, plural: &str, rest: &str, object: &Value) -> Answer {
        self.send(Method::PUT, &self.path(plural, rest), object).await
    }

    pub(super) async fn read(&self, plural: &str, rest: &str) -> Value {
        self.get(&self.path(plural, rest)).await.good()
    }

    pub(super) async fn delete(&self, plural: &str, rest: &str, options: &Value) -> Answer {
        let path = self.path(plural, rest);
        match options {
            Value::Null => self.ask(Method::DELETE, &path, &[], Vec::new()).await,
            options => self.send(Method::DELETE, &path, options).await,
        }
    }

    /// PATCH in the format `kind` of `application/KIND+json`.
    pub(super) async fn patch(
        &self,
        kind: &str,
        plural: &str,
        rest: &str,
        patch: &Value,
    ) -> Answer {
        let suffix = if kind == "apply-patch" { "yaml" } else { "json" };
        let kind = format!("application/{kind}+{suffix}");
        let headers = [("content-type", kind.as_str())];
        let path = self.path(plural, rest);
        self.ask(Method::PATCH, &path, &headers, patch.to_string().into_bytes()).await
    }

    pub(super) async fn merge(&self, plural: &str, rest: &str, patch: &Value) -> Answer {
        self.patch("merge-patch", plural, rest, patch).await
    }

    pub(super) async fn send(&self, method: Method, path: &str, object: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.ask(method, path, &headers, object.to_string().into_bytes()).await
    }

    /// Sends any request.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let answer = self.client.send(request).await.unwrap();
        let code = answer.status().as_u16();
        let content_type = answer.headers().get("content-type");
        let content_type = content_type.map(|kind| kind.to_str().unwrap().to_owned());
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        Answer {
            code,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            content_type: content_type.unwrap_or_default(),
        }
    }

    /// A watch of a kind here; `query` without `watch=true`.
    pub(super) async fn watch(&self, plural: &str, query: &str) -> Events {
        self.watch_as(plural, query, "application/json").await
    }

    pub(super) async fn watch_as(&self, plural: &str, query: &str, accept: &str) -> Events {
        let path = self.path(plural, &format!("?watch=true&{query}"));
        let request = Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
        let events = self.client.request_events::<Value>(request).await.unwrap();
        Events(events.boxed())
    }

    /// Polls until `ready` returns something.
    pub(super) async fn until<T>(&self, what: &str, ready: impl AsyncFn() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(value) = ready().await {
                    return value;
                }
                // The server does not announce this change.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(EVENT_TIMEOUT, looking).await;
        found.unwrap_or_else(|_| panic!("never happened: {what}"))
    }
}

/// The events of a watch.
pub(super) struct Events(futures_util::stream::BoxStream<'static, kube::Result<WatchEvent<Value>>>);

impl Events {
    /// The next event: its type and object. `None` at the end.
    pub(super) async fn next(&mut self) -> Option<(&'static str, Value)> {
        let next = tokio::time::timeout(EVENT_TIMEOUT, self.0.next()).await;
        let event = next.expect("an event in time")?.unwrap();
        Some(match event {
            WatchEvent::Added(object) => ("ADDED", object),
            WatchEvent::Modified(object) => ("MODIFIED", object),
            WatchEvent::Deleted(object) => ("DELETED", object),
            WatchEvent::Bookmark(mark) => ("BOOKMARK", serde_json::to_value(mark).unwrap()),
            WatchEvent::Error(status) => ("ERROR", serde_json::to_value(status).unwrap()),
        })
    }

    /// The next event, which must be of this type.
    pub(super) async fn expect(&mut self, kind: &str) -> Value {
        let (found, object) = self.next().await.expect("not the end");
        assert_eq!(found, kind, "{object}");
        object
    }
}

/// A JSON value that must be a string.
#[track_caller]
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// The version of an object or a list.
#[track_caller]
pub(super) fn version(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"]).parse().unwrap()
}

/// A ConfigMap with this data.
pub(super) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A pod that no kubelet starts.
pub(super) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "logs"}},
        "spec": {
            "serviceAccountName": "default",
            "containers": [{"name": "engine", "image": "engine:1"}],
        },
    })
}

/// A custom resource that the schema allows.
pub(super) fn gauge(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gauge", "metadata": {"name": name},
        "spec": {"scale": {"unit": "bar"}},
    })
}
