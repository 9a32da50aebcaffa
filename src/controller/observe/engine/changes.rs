//! Reads only those parts of an engine that we may have changed.

use super::{EngineView, ViewError, convert};
use crate::credentials::{CredentialsError, Reach};
use crate::metrics::{Metrics, Side};
use stayput_engine::Endpoint;
use stayput_restart::{Allocation, Record};

impl EngineView {
    /// Reads the allocation setting with our marker, and the shutdown records.
    pub(crate) async fn changes(
        &mut self,
        reach: Result<Reach, CredentialsError>,
        endpoints: Vec<Endpoint>,
        metrics: &Metrics,
    ) -> Result<(Allocation, Vec<Record>), ViewError> {
        let (client, identity) = self.connect_and_identify(reach, endpoints, metrics).await?;
        let allocation = client.allocation(&identity).await;
        metrics.count_request(Side::Engine, "allocation", allocation.is_ok());
        let mut records = Vec::new();
        if identity.has_node_shutdown {
            let read = client.shutdown_records().await;
            metrics.count_request(Side::Engine, "records", read.is_ok());
            records = read?.into_iter().map(convert::record).collect();
        }
        Ok((convert::allocation(allocation?), records))
    }
}
