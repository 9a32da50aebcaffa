//! The real Kubernetes of the tests works as other tests expect.

mod apiserver;
mod cluster;
mod crd;
mod doctor;
mod init;
mod install;
mod killed;
mod template;
