//! The known images: how their engine is started, and where it reads its config.

use serde_json::Value;

/// Properties of a known image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineImage {
    /// `elasticsearch` or `opensearch`; also the name of the config file.
    pub name: &'static str,
    /// The entrypoint of the image, without an init such as tini: the manager is one.
    pub entrypoint: &'static str,
    /// The image's default arguments.
    pub arguments: &'static str,
    /// The engine's config directory in the image.
    pub config: &'static str,
    /// The user id that the image runs as.
    pub user: u32,
}

/// The official image of Elasticsearch. From elasticsearch/Dockerfile in github.com/elastic/dockerfiles: since 6.0 the entrypoint is
/// `docker-entrypoint.sh` with the argument `eswrapper`, later with tini before it.
pub const ELASTICSEARCH: EngineImage = EngineImage {
    name: "elasticsearch",
    entrypoint: "/usr/local/bin/docker-entrypoint.sh",
    arguments: "eswrapper",
    config: "/usr/share/elasticsearch/config",
    user: 1000,
};

/// The official image of OpenSearch. From docker/release/dockerfiles in github.com/opensearch-project/opensearch-build, all versions.
pub const OPENSEARCH: EngineImage = EngineImage {
    name: "opensearch",
    entrypoint: "./opensearch-docker-entrypoint.sh",
    arguments: "opensearch",
    config: "/usr/share/opensearch/config",
    user: 1000,
};

/// From bitnami/elasticsearch and bitnami/opensearch in github.com/bitnami/containers: the Dockerfile, and
/// `…-env.sh` with the directories.
const BITNAMI_ELASTICSEARCH: EngineImage = EngineImage {
    name: "elasticsearch",
    entrypoint: "/opt/bitnami/scripts/elasticsearch/entrypoint.sh",
    arguments: "/opt/bitnami/scripts/elasticsearch/run.sh",
    config: "/opt/bitnami/elasticsearch/config",
    user: 1001,
};

const BITNAMI_OPENSEARCH: EngineImage = EngineImage {
    name: "opensearch",
    entrypoint: "/opt/bitnami/scripts/opensearch/entrypoint.sh",
    arguments: "/opt/bitnami/scripts/opensearch/run.sh",
    config: "/opt/bitnami/opensearch/config",
    user: 1001,
};

/// Repository of an image, and the major version from which its entrypoint is the one above. A mirror
/// keeps the end of the name.
const IMAGES: [(&str, u32, EngineImage); 10] = [
    ("elasticsearch/elasticsearch", 6, ELASTICSEARCH),
    ("elasticsearch/elasticsearch-oss", 6, ELASTICSEARCH),
    ("elasticsearch/elasticsearch-wolfi", 8, ELASTICSEARCH),
    ("opensearchproject/opensearch", 1, OPENSEARCH),
    ("bitnami/elasticsearch", 8, BITNAMI_ELASTICSEARCH),
    ("bitnamilegacy/elasticsearch", 8, BITNAMI_ELASTICSEARCH),
    ("bitnami/opensearch", 1, BITNAMI_OPENSEARCH),
    ("bitnamilegacy/opensearch", 1, BITNAMI_OPENSEARCH),
    ("stayput/elasticsearch", 6, ELASTICSEARCH),
    ("stayput/opensearch", 1, OPENSEARCH),
];

impl EngineImage {
    /// The engine's image of a container: known by its name, or else by the name of the container.
    pub fn of(container: &Value) -> Option<Self> {
        let text = |field: &str| container[field].as_str().unwrap_or_default();
        let named = || {
            let name = text("name");
            [ELASTICSEARCH, OPENSEARCH].into_iter().find(|image| image.name == name)
        };
        Self::of_image(text("image")).or_else(named)
    }

    /// The engine of a known image, or of a mirror of it.
    pub fn of_image(image: &str) -> Option<Self> {
        let (repository, tag) = split(image);
        // The short name on Docker Hub is the same image of Elastic.
        let repository = match repository {
            "elasticsearch" | "library/elasticsearch" | "docker.io/library/elasticsearch" => {
                "elasticsearch/elasticsearch"
            }
            other => other,
        };
        let major = tag.and_then(|tag| tag.split('.').next()?.parse::<u32>().ok());
        let (_, _, engine) = IMAGES.iter().find(|(published, since, _)| {
            let rest = repository.strip_suffix(published);
            let is_it = rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
            // Without a version in the tag it is a new one.
            is_it && major.is_none_or(|major| major >= *since)
        })?;
        Some(*engine)
    }

    /// True if an image starts the manager by itself: images of stayput's Dockerfiles do.
    pub fn is_behind_manager(image: &str) -> bool {
        let mut parts = split(image).0.rsplit('/');
        parts.next().is_some() && parts.next() == Some("stayput") && Self::of_image(image).is_some()
    }

    /// Directory of the engine's data in the image, unless its config says otherwise.
    pub fn data(&self) -> String {
        let home = self.config.strip_suffix("/config").unwrap_or(self.config);
        format!("{home}/data")
    }

    /// True if the server JVM can use an archive of its classes. That of Elasticsearch 8 cannot.
    pub fn keeps_classes(&self) -> bool {
        *self == OPENSEARCH
    }
}

/// Repository and tag.
fn split(image: &str) -> (&str, Option<&str>) {
    let image = image.split('@').next().unwrap_or(image);
    let name = image.rfind('/').map_or(0, |slash| slash + 1);
    match image[name..].rfind(':') {
        Some(colon) => (&image[..name + colon], Some(&image[name + colon + 1..])),
        None => (image, None),
    }
}
