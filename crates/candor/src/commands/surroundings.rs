//! The objects around the members of a cluster: its Service, volumes, disruption budget and certificate.

use candor_operator::objects::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use x509_parser::pem::Pem;

use super::cluster::{Kind, Object};
use super::connect::Connected;

/// What surrounds the members. What could not be read is absent.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The Service that clients use.
    pub service: Option<Service>,
    /// The volume claims of the members.
    pub claims: Vec<PersistentVolumeClaim>,
    /// The budget that limits evictions.
    pub budget: Option<PodDisruptionBudget>,
    /// When the servers' certificate expires, according to its Secret.
    pub expires: Option<Timestamp>,
}

impl Surroundings {
    /// Reads them.
    pub async fn fetch(at: &Connected, object: &Object) -> Self {
        let (name, kind) = (object.name(), object.kind());
        let services: Api<Service> = Api::namespaced(at.client.clone(), &at.namespace);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(at.client.clone(), &at.namespace);
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(at.client.clone(), &at.namespace);
        let ours = ListParams::default().labels(&kind.selector(&name));
        let service = match kind {
            Kind::ValkeyCluster => names::client_service(&name),
            Kind::RedkeyCluster => name.clone(),
        };
        let (service, claims, budgets, expires) = futures::join!(
            services.get_opt(&service),
            claims.list(&ours),
            budgets.list(&ours),
            expires(at, object)
        );
        Self {
            service: service.ok().flatten(),
            claims: claims.map(|list| list.items).unwrap_or_default(),
            budget: budgets.ok().and_then(|list| list.items.into_iter().next()),
            expires,
        }
    }
}

/// The Secret with the servers' certificate, if they use TLS.
pub fn certificate_secret(object: &Object) -> Option<&str> {
    let Object::Valkey(cluster) = object else {
        return None;
    };
    let tls = cluster.spec.networking.as_ref()?.tls.as_ref()?;
    Some(&tls.certificates.server.secret_name)
}

async fn expires(at: &Connected, object: &Object) -> Option<Timestamp> {
    let secrets: Api<Secret> = Api::namespaced(at.client.clone(), &at.namespace);
    let secret = secrets.get_opt(certificate_secret(object)?).await.ok()??;
    not_after(&secret.data?.get("tls.crt")?.0)
}

/// When the first certificate of a PEM file expires.
fn not_after(pem: &[u8]) -> Option<Timestamp> {
    let first = Pem::iter_from_buffer(pem).next()?.ok()?;
    let certificate = first.parse_x509().ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

/// The address that clients connect to: the name that every pod can resolve, and the port.
pub fn address(service: &Service) -> Option<String> {
    let ports = service.spec.as_ref()?.ports.as_ref()?;
    let port = ports
        .iter()
        .find(|port| port.name.as_deref() == Some("valkey"))
        .or_else(|| ports.first())?;
    let namespace = service.namespace().unwrap_or_default();
    Some(format!("{}.{namespace}.svc:{}", service.name_any(), port.port))
}
