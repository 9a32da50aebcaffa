//! Where the data of an engine is, as far as its pod says: on a volume claim, on another volume, or in the
//! container itself.

use k8s_openapi::api::core::v1::{Container, Volume, VolumeMount};
use stayput_restart::DataPlace;

/// Where the known images keep the data, and the engines' packages: `path.data` of the official images,
/// Bitnami's, and what `.deb` and `.rpm` write.
const PATHS: [&str; 6] = [
    "/usr/share/elasticsearch/data",
    "/usr/share/opensearch/data",
    "/bitnami/elasticsearch/data",
    "/bitnami/opensearch/data",
    "/var/lib/elasticsearch",
    "/var/lib/opensearch",
];

/// The volume of that name is the data of a declared cluster, and by custom that of others.
const DATA: &str = "data";

/// The setting, as a variable or as an argument of the engine.
const SETTING: &str = "path.data";

/// Where the data is of an engine that runs in this container.
pub(super) fn place(container: &Container, volumes: &[Volume]) -> DataPlace {
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let on = |mount: &VolumeMount| match is_claim(&mount.name, volumes) {
        true => DataPlace::Claim,
        false => DataPlace::OtherVolume,
    };
    match settings(container) {
        Err(NotWritten) => return DataPlace::Unknown,
        Ok(paths) if !paths.is_empty() => {
            let places =
                paths.iter().map(|path| covers(mounts, path).map_or(DataPlace::Container, on));
            return places.max().unwrap_or_default();
        }
        Ok(_) => {}
    }
    let known = PATHS.iter().filter_map(|path| covers(mounts, path));
    if let Some(place) = known.map(on).max() {
        return place;
    }
    if let Some(mount) = mounts.iter().find(|mount| mount.name == DATA) {
        return on(mount);
    }
    // An image of one's own may have its data there.
    match mounts.iter().any(|mount| is_claim(&mount.name, volumes)) {
        true => DataPlace::Unknown,
        false => DataPlace::Container,
    }
}

/// What is mounted at this path or above it, the nearest.
fn covers<'a>(mounts: &'a [VolumeMount], path: &str) -> Option<&'a VolumeMount> {
    let path = components(path);
    let at_or_above =
        mounts.iter().filter(|mount| path.starts_with(&components(&mount.mount_path)));
    at_or_above.max_by_key(|mount| components(&mount.mount_path).len())
}

fn components(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

fn is_claim(name: &str, volumes: &[Volume]) -> bool {
    let volume = volumes.iter().find(|volume| volume.name == name);
    volume.is_some_and(|volume| volume.persistent_volume_claim.is_some())
}

/// The pod has the setting, and not its value.
struct NotWritten;

/// The paths of the setting, which the images' entrypoints take from variables of the container, and the
/// engine from its arguments. Empty if the pod does not have it.
fn settings(container: &Container) -> Result<Vec<String>, NotWritten> {
    let mut found = Vec::new();
    for variable in container.env.iter().flatten().filter(|variable| variable.name == SETTING) {
        found.extend(split(variable.value.as_deref().ok_or(NotWritten)?));
    }
    let words = [&container.command, &container.args].into_iter().flatten().flatten();
    for word in words {
        let setting = word.strip_prefix("-E").unwrap_or(word).trim_start();
        let value = setting.strip_prefix(SETTING).and_then(|rest| rest.strip_prefix('='));
        found.extend(value.into_iter().flat_map(split));
    }
    match found.iter().any(|path| path.contains("$(")) {
        true => Err(NotWritten),
        false => Ok(found),
    }
}

fn split(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(|path| path.trim().to_owned()).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn place_of(container: Value) -> DataPlace {
        let volumes = json!([
            {"name": "claim", "persistentVolumeClaim": {"claimName": "claim-logs-0"}},
            {"name": "other", "emptyDir": {}},
            {"name": "data", "emptyDir": {}},
            {"name": "each", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]);
        let volumes: Vec<Volume> = serde_json::from_value(volumes).expect("volumes");
        let container: Container = serde_json::from_value(container).expect("a container");
        place(&container, &volumes)
    }

    fn mounted(mounts: &[(&str, &str)]) -> Value {
        let mount = |(name, path): &(&str, &str)| json!({"name": name, "mountPath": path});
        json!({"name": "search", "volumeMounts": mounts.iter().map(mount).collect::<Vec<_>>()})
    }

    #[test]
    fn the_volume_counts_that_is_mounted_where_the_data_is() {
        use DataPlace::{Claim, Container, OtherVolume, Unknown};
        let elasticsearch = "/usr/share/elasticsearch/data";
        let rows: [(&[(&str, &str)], DataPlace); 14] = [
            (&[("claim", elasticsearch)], Claim),
            (&[("claim", "/usr/share/opensearch/data/")], Claim),
            (&[("claim", "/bitnami/opensearch")], Claim),
            (&[("claim", "/bitnami/elasticsearch/data")], Claim),
            (&[("claim", "/var/lib/elasticsearch")], Claim),
            (&[("other", elasticsearch)], OtherVolume),
            (&[("each", elasticsearch)], OtherVolume),
            // For snapshots.
            (&[("other", elasticsearch), ("claim", "/backup")], OtherVolume),
            (&[("claim", "/usr/share/elasticsearch"), ("other", elasticsearch)], OtherVolume),
            (&[("other", "/usr/share/elasticsearch"), ("claim", elasticsearch)], Claim),
            // By name alone.
            (&[("data", "/my/own"), ("claim", "/backup")], OtherVolume),
            (&[("claim", "/my/own")], Unknown),
            (&[("claim", "/usr/share/elasticsearch/database")], Unknown),
            (&[("other", "/tmp")], Container),
        ];
        for (mounts, expected) in rows {
            assert_eq!(place_of(mounted(mounts)), expected, "{mounts:?}");
        }
    }

    #[test]
    fn a_path_that_the_pod_names_counts_alone() {
        let with = |field: &str, value: Value| {
            let mut container = mounted(&[
                ("other", "/usr/share/elasticsearch/data"),
                ("claim", "/one"),
                ("other", "/two"),
            ]);
            container[field] = value;
            place_of(container)
        };
        let variable = |value: &str| with("env", json!([{"name": "path.data", "value": value}]));
        assert_eq!(variable("/one"), DataPlace::Claim);
        assert_eq!(variable("/one/below"), DataPlace::Claim);
        assert_eq!(variable("/one, /two"), DataPlace::OtherVolume);
        assert_eq!(variable("/one,/three"), DataPlace::Container);
        assert_eq!(variable("$(SOMEWHERE)"), DataPlace::Unknown);
        assert_eq!(with("args", json!(["eswrapper", "-Epath.data=/one"])), DataPlace::Claim);
        assert_eq!(with("args", json!(["eswrapper", "-E", "path.data=/one"])), DataPlace::Claim);
        let from = json!({"fieldRef": {"fieldPath": "metadata.name"}});
        let elsewhere = with("env", json!([{"name": "path.data", "valueFrom": from}]));
        assert_eq!(elsewhere, DataPlace::Unknown);
    }
}
