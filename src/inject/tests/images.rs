//! Which images are known.

use stayput_pod_spec::EngineImage;

#[test]
fn official_images_and_mirrors_of_them_are_known() {
    for (image, engine) in [
        ("docker.elastic.co/elasticsearch/elasticsearch:8.19.0", Some("elasticsearch")),
        ("docker.elastic.co/elasticsearch/elasticsearch:6.8.23", Some("elasticsearch")),
        ("docker.elastic.co/elasticsearch/elasticsearch-oss:7.10.2", Some("elasticsearch")),
        ("docker.elastic.co/elasticsearch/elasticsearch-wolfi:8.19.0", Some("elasticsearch")),
        ("elasticsearch:7.17.28", Some("elasticsearch")),
        ("elasticsearch:2.4.6", None),
        ("docker.elastic.co/elasticsearch/elasticsearch:5.6.16", None),
        ("opensearchproject/opensearch:1.3.20", Some("opensearch")),
        ("opensearchproject/opensearch:3.1.0", Some("opensearch")),
        ("opensearchproject/opensearch", Some("opensearch")),
        ("opensearchproject/opensearch:latest", Some("opensearch")),
        (
            "registry.example:5000/hub/opensearchproject/opensearch:2.19.3@sha256:00",
            Some("opensearch"),
        ),
        ("opensearchproject/opensearch-dashboards:2.19.3", None),
        ("docker.io/bitnami/opensearch:2.19.3-debian-12-r1", Some("opensearch")),
        ("bitnamilegacy/elasticsearch:8.18.0", Some("elasticsearch")),
        ("bitnami/elasticsearch:7.10.2", None),
        ("stayput/opensearch:2.19.3", Some("opensearch")),
        ("registry.example/stayput/elasticsearch:8.19.0", Some("elasticsearch")),
        ("notopensearchproject/opensearch:2.19.3", None),
        ("example/opensearch:2.19.3", None),
    ] {
        assert_eq!(EngineImage::of_image(image).map(|engine| engine.name), engine, "{image}");
    }
}

#[test]
fn our_images_start_the_manager_by_themselves() {
    for (image, entrypoint) in [
        ("stayput/opensearch:2.19.3", crate::Entrypoint::Manager),
        ("opensearchproject/opensearch:2.19.3", crate::Entrypoint::Engine),
        ("bitnami/opensearch:2.19.3", crate::Entrypoint::Engine),
    ] {
        let container = serde_json::json!({ "name": "opensearch", "image": image });
        assert_eq!(crate::entrypoint(&container), entrypoint, "{image}");
    }
}
