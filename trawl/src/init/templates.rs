//! The files of this repository that projects begin with.

macro_rules! files {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),*]
    };
}

pub(super) const SETTINGS: &str = include_str!("../../../trawl.toml");
pub(super) const ENVIRONMENT: &str = include_str!("../../../.env.example");
pub(super) const DOCKERFILE: &str = include_str!("../../../Dockerfile");
pub(super) const HANDLER: &str = include_str!("../../../sdk/python/trawl_handler.py");

pub(super) const GIT_IGNORES: &str = "\
/trawl
/items
*.db
*.db-*
*.jsonl
.env
spiders.env
console.env
/deploy/kubernetes/mine/secrets
";

/// Paths and texts for Docker Compose.
pub(super) const COMPOSE: &[(&str, &str)] = files![
    "docker-compose.yml"
    "spiders.env.example"
    "console.env.example"
    "deploy/prometheus/prometheus.yml"
    "deploy/prometheus/alerts.yml"
    "deploy/grafana/trawl.json"
    "deploy/grafana/provisioning/dashboards/trawl.yml"
    "deploy/grafana/provisioning/datasources/prometheus.yml"
];

/// Paths and texts for Kubernetes.
pub(super) const KUBERNETES: &[(&str, &str)] = files![
    "deploy/kubernetes/base/console.yaml"
    "deploy/kubernetes/base/kustomization.yaml"
    "deploy/kubernetes/base/network.yaml"
    "deploy/kubernetes/base/producer.yaml"
    "deploy/kubernetes/worker/kustomization.yaml"
    "deploy/kubernetes/worker/worker.yaml"
    "deploy/kubernetes/browser/kustomization.yaml"
    "deploy/kubernetes/keda/kustomization.yaml"
    "deploy/kubernetes/keda/scaled-object.yaml"
    "deploy/kubernetes/example/kustomization.yaml"
    "deploy/kubernetes/example/namespace.yaml"
    "deploy/kubernetes/example/trawl.toml"
    "deploy/kubernetes/example/spiders/shop.toml"
];
