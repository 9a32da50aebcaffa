//! A real Kubernetes for tests: the real apiserver with a real etcd, and, for tests with pods, a
//! node with a kubelet. `tests/parts/kubernetes` and the scripts next to it install them.

pub(crate) mod apiserver;
pub(crate) mod audit;
pub(crate) mod client;
pub(crate) mod cluster;
mod containerd;
pub(crate) mod image;
pub(crate) mod kubectl;
mod network;
mod node;
mod pki;
pub(crate) mod process;
mod resources;

pub(crate) use resources::left_by;
