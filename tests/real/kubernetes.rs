//! The real Kubernetes of the tests works as other tests expect.

mod apiserver;
mod cert_manager;
mod certificate_by_hand;
mod cluster;
mod completion;
mod crd;
mod doctor;
mod eck;
mod helm;
mod init;
mod install;
mod keep_pods;
mod killed;
mod operators;
mod orphans;
mod plain_set;
mod restricted;
mod template;
