//! Stand-ins for the real parts, for the demo, the tests and the benchmarks.
//!
//! * [`engine`]: an Elasticsearch or OpenSearch without a JVM, alone or as a cluster.
//! * [`apiserver`]: a kube-apiserver with only what `stayput` uses.
//! * [`opensearch_operator`]: the OpenSearch operator beside pods that exist.
//! * [`harness`]: starts these and other programs, and writes a mounted config as the kubelet does.

pub mod apiserver;
pub mod engine;
pub mod harness;
pub mod opensearch_operator;
