//! Two releases of OpenSearch, each an image of its own. Both are mounted from the machine into every
//! container; which one is started, the entrypoint of the image says.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fixture::{Fixture, HOME};
use super::official::{load_with, mounts};
use super::opensearch::Parts;
use crate::support::engine::own_files;

/// The release that users have, and the next one.
pub(super) struct Releases {
    pub(super) now: Parts,
    next: PathBuf,
}

impl Releases {
    /// `Err` names what is missing here.
    pub(super) fn find() -> Result<Self, String> {
        let next = std::env::var_os("STAYPUT_OPENSEARCH_NEXT_HOME").map(PathBuf::from);
        let next = next.ok_or("the next release of opensearch is not installed")?;
        Ok(Self { now: Parts::find()?, next })
    }

    /// Makes both known to the cluster by these names.
    pub(super) fn load(&self, fixture: &Fixture, names: [&str; 2]) {
        for (home, name) in [&self.now.home, &self.next].into_iter().zip(names) {
            let [options, _] = own_files(home, Path::new(HOME));
            let entrypoint = format!(
                "#!/bin/bash\numask 0002\nexport OPENSEARCH_PATH_CONF={HOME}/config\n\
                 exec {}/bin/\"$1\" -Epath.data={HOME}/data -Epath.logs={HOME}/logs\n",
                at(home)
            );
            load_with(fixture, &self.now, name, &entrypoint, &options);
        }
    }

    /// What a container mounts from the machine, and its volumes.
    pub(super) fn machine(&self) -> (Vec<Value>, Vec<Value>) {
        mounts(&self.now, [&self.now.home, &self.next].map(|home| (home.clone(), at(home))))
    }
}

/// Where a release is in the container.
fn at(home: &Path) -> String {
    format!("/engines/{}", home.file_name().expect("a name").to_str().expect("UTF-8"))
}
