//! The SearchClusters of the namespace. Each is followed from its first request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::feed::{PACE, Seen, Subject};
use super::page::Page;
use super::page_model::PageModel;
use crate::apiserver::{self, ApiError};
use crate::cluster_view::ClusterView;
use crate::selection;
use crate::session::Session;

pub(super) struct Clusters {
    session: Session,
    /// Name of the cluster on the command line.
    first: Option<String>,
    followed: Mutex<BTreeMap<String, watch::Receiver<Seen>>>,
}

impl Clusters {
    pub(super) fn new(session: Session, first: Option<String>) -> Self {
        Self { session, first, followed: Mutex::default() }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.session.namespace
    }

    /// Name of the cluster to show first, if there is one.
    pub(super) async fn first(&self) -> Result<Option<String>, ApiError> {
        if self.first.is_some() {
            return Ok(self.first.clone());
        }
        let mut all = self.list().await?;
        Ok(all.pop().filter(|_| all.is_empty()).map(|only| only.name))
    }

    /// All clusters, without their pods.
    pub(super) async fn list(&self) -> Result<Vec<ClusterView>, ApiError> {
        Ok(selection::without_pods(&apiserver::clusters(&self.session).await?))
    }

    /// The pages of one SearchCluster, if it exists.
    pub(super) async fn pages(
        &self,
        name: &str,
    ) -> Result<Option<watch::Receiver<Seen>>, ApiError> {
        if let Some(known) = self.followed().get(name) {
            return Ok(Some(known.clone()));
        }
        let subject = Subject {
            client: self.session.client.clone(),
            namespace: self.session.namespace.clone(),
            name: name.to_owned(),
            pace: PACE,
        };
        let Some(found) = subject.read().await? else { return Ok(None) };
        let model = found.model(PageModel::default());
        let page = Arc::new(Page::new(&model));
        let (sender, receiver) = watch::channel(Seen { version: 1, page });
        let mut followed = self.followed();
        // Two may have asked at the same time.
        if let Some(known) = followed.get(name) {
            return Ok(Some(known.clone()));
        }
        followed.insert(name.to_owned(), receiver.clone());
        tokio::spawn(subject.follow(found, model, sender));
        Ok(Some(receiver))
    }

    fn followed(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, watch::Receiver<Seen>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
