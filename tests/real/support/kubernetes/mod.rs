//! A real Kubernetes, of the test's own: the makers' apiserver on a real etcd, and, for those who
//! need pods, a node with a kubelet. `tests/parts/kubernetes` and its neighbours install them.

pub(crate) mod apiserver;
pub(crate) mod audit;
pub(crate) mod cluster;
mod containerd;
pub(crate) mod image;
pub(crate) mod kubectl;
mod network;
mod node;
mod pki;
pub(crate) mod process;
mod resources;

pub(crate) use resources::{free_port, left_by};
