//! The real Kubernetes of the tests is what the other tests take it for.

mod apiserver;
mod cluster;
mod crd;
mod install;
mod killed;
