//! The operator under test, with exactly the permissions of an installation.

use candor_operator::manifests::{self, Options, render};
use candor_operator::runtime::lease;
use candor_operator::{LeaseSettings, Settings};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::ClientBuilder;
use kube::config::AuthInfo;
use kube::{Client, Config, ResourceExt};
use kube_sandbox::faults::Faults;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::request_log::RequestLog;
use crate::until;

/// The image of the exporter and of Robin: `robin/main.rs`.
const OWN_IMAGE: &str = "candor:tests";

/// The options of one operator.
#[derive(Clone, Default)]
pub struct OperatorOptions {
    /// Its identity in the lease; absent: no leader election.
    pub identity: Option<String>,
    /// The exporter's image, as a new version of the operator brings a new one.
    pub exporter_image: Option<String>,
    /// Faults that are injected into its requests.
    pub faults: Option<Faults>,
}

/// The operator has a separate runtime, so that killing it ends every task that it started.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    runtime: Runtime,
}

impl Running {
    /// Starts the operator in this process.
    pub(crate) fn start(
        account: Config,
        installed: &Options,
        options: OperatorOptions,
        request_log: RequestLog,
    ) -> Self {
        let stop = CancellationToken::new();
        let lease_namespace = installed.namespace.clone();
        let mut settings = Settings {
            namespaces: installed.watch_namespaces.clone(),
            exporter_image: options.exporter_image.unwrap_or_else(|| OWN_IMAGE.to_owned()),
            ..Settings::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime = runtime.expect("the machine has threads left");
        let stopped = stop.clone();
        let task = runtime.spawn(async move {
            let builder = ClientBuilder::try_from(account).expect("a client of the account");
            // The recording layer is next to the server: it records what reached the server.
            let builder = builder.with_layer(&request_log);
            let client = match options.faults {
                Some(faults) => builder.with_layer(&faults.layer()).build(),
                None => builder.build(),
            };
            settings.lease = options.identity.map(|identity| LeaseSettings {
                client: client.clone(),
                namespace: lease_namespace,
                name: manifests::NAME.to_owned(),
                identity,
                timing: lease::Timing::default(),
            });
            if let Err(error) = candor_operator::run(client, settings, stopped).await {
                panic!("the operator ended: {error}");
            }
        });
        Self { stop, task, runtime }
    }

    /// Stops it as SIGTERM does.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.expect("the operator ends in order");
        self.runtime.shutdown_background();
    }

    /// Kills it in the middle of whatever it does.
    pub(crate) fn kill(self) {
        self.runtime.shutdown_background();
    }
}

/// Installs the operator's account and permissions as `candor install` does; returns the configuration to connect as
/// that account.
pub(crate) async fn install_account(admin: &Client, config: &Config, options: &Options) -> Config {
    for object in render(options) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let wanted = match kind {
            // A real API server checks every write of the scenario against the policy; a sandbox only stores it.
            "ServiceAccount"
            | "Role"
            | "RoleBinding"
            | "ClusterRole"
            | "ClusterRoleBinding"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding" => true,
            // On a real cluster the operator of a scenario runs in the scenario's own namespace.
            "Namespace" => options.watch_namespaces.is_empty(),
            _ => false,
        };
        if wanted {
            apply(admin, &object).await;
        }
    }
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), &options.namespace);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            expiration_seconds: Some(7200),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let token = until("a token of the operator's account", async || {
        let params = PostParams::default();
        let made = accounts.create_token_request(manifests::NAME, &params, &request).await;
        Some(made.ok()?.status?.token)
    })
    .await;
    let mut account = config.clone();
    account.auth_info = AuthInfo {
        token: Some(token.into()),
        ..AuthInfo::default()
    };
    account
}

/// Deletes what an installation has outside the scenario's namespace, which is deleted as a whole.
pub(crate) async fn remove_permissions_elsewhere(admin: &Client, options: &Options) {
    let elsewhere = |object: &&Value| {
        let namespace = object["metadata"]["namespace"].as_str();
        let kind = object["kind"].as_str().unwrap_or_default();
        namespace.is_some_and(|namespace| namespace != options.namespace)
            || kind.starts_with("ValidatingAdmissionPolicy")
    };
    for object in render(options).iter().filter(elsewhere) {
        let (api, object) = resource(admin, object);
        // A missing object need not be deleted.
        let _ = api.delete(&object.name_any(), &DeleteParams::default()).await;
    }
}

/// An object of a manifest, and the API to create it with.
fn resource(admin: &Client, object: &Value) -> (Api<DynamicObject>, DynamicObject) {
    let object: DynamicObject = serde_json::from_value(object.clone()).expect("a manifest");
    let types = object.types.clone().expect("a manifest has a kind");
    let resource = ApiResource::from_gvk(&(&types).try_into().expect("a manifest has a version"));
    let api = match object.namespace() {
        Some(namespace) => Api::namespaced_with(admin.clone(), &namespace, &resource),
        None => Api::all_with(admin.clone(), &resource),
    };
    (api, object)
}

async fn apply(admin: &Client, object: &Value) {
    let (api, object) = resource(admin, object);
    let params = PatchParams::apply("candor-tests").force();
    let applied = api.patch(&object.name_any(), &params, &Patch::Apply(&object)).await;
    applied.unwrap_or_else(|error| panic!("{}: {error}", object.name_any()));
}
