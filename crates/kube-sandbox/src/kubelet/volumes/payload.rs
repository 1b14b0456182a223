//! What the files of a `ConfigMap`, `Secret`, downward or projected volume are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, DownwardAPIVolumeFile, KeyToPath, Secret, ServiceAccount, ServiceAccountTokenProjection,
    Volume, VolumeProjection,
};
use kube::api::PostParams;
use kube::{Api, ResourceExt};

use super::atomic::FileBody;
use super::{Preparation, Shown, VolumeError};
use crate::kubelet::fields;

/// The files of one volume, and what they were made from.
#[derive(Debug, Default)]
pub(super) struct Payload {
    pub files: BTreeMap<PathBuf, FileBody>,
    pub shown: Vec<Shown>,
    pub renew_after: Option<Duration>,
}

/// How the entries of a map become files.
struct Selection<'a> {
    kind: &'static str,
    items: Option<&'a [KeyToPath]>,
    optional: bool,
    mode: u32,
}

const DEFAULT_MODE: i32 = 0o644;

fn mode(given: Option<i32>, otherwise: u32) -> u32 {
    given.map_or(otherwise, i32::cast_unsigned) & 0o777
}

impl Payload {
    /// The files of a volume with content from the API server; `None` for all other kinds.
    pub async fn of(from: &Preparation<'_>, volume: &Volume) -> Result<Option<Self>, VolumeError> {
        let mut payload = Self::default();
        let base = |given: Option<i32>| mode(given, DEFAULT_MODE.cast_unsigned());
        if let Some(of) = &volume.config_map {
            let selection = Selection {
                kind: "config",
                items: of.items.as_deref(),
                optional: of.optional == Some(true),
                mode: base(of.default_mode),
            };
            payload.config_map(from, &of.name, &selection).await?;
        } else if let Some(of) = &volume.secret {
            let selection = Selection {
                kind: "secret",
                items: of.items.as_deref(),
                optional: of.optional == Some(true),
                mode: base(of.default_mode),
            };
            payload
                .secret(from, of.secret_name.as_deref().unwrap_or_default(), &selection)
                .await?;
        } else if let Some(of) = &volume.downward_api {
            payload.downward(from, of.items.as_deref().unwrap_or_default(), base(of.default_mode))?;
        } else if let Some(of) = &volume.projected {
            for source in of.sources.iter().flatten() {
                payload.projection(from, source, base(of.default_mode)).await?;
            }
        } else {
            return Ok(None);
        }
        Ok(Some(payload))
    }

    async fn projection(
        &mut self,
        from: &Preparation<'_>,
        source: &VolumeProjection,
        mode: u32,
    ) -> Result<(), VolumeError> {
        if let Some(of) = &source.config_map {
            let selection = Selection {
                kind: "config",
                items: of.items.as_deref(),
                optional: of.optional == Some(true),
                mode,
            };
            self.config_map(from, &of.name, &selection).await?;
        }
        if let Some(of) = &source.secret {
            let selection = Selection {
                kind: "secret",
                items: of.items.as_deref(),
                optional: of.optional == Some(true),
                mode,
            };
            self.secret(from, &of.name, &selection).await?;
        }
        if let Some(of) = &source.downward_api {
            self.downward(from, of.items.as_deref().unwrap_or_default(), mode)?;
        }
        if let Some(of) = &source.service_account_token {
            self.token(from, of, mode).await?;
        }
        Ok(())
    }

    async fn config_map(&mut self, from: &Preparation<'_>, name: &str, how: &Selection<'_>) -> Result<(), VolumeError> {
        self.shown.push(("configmap", name.to_owned()));
        let api: Api<ConfigMap> = Api::namespaced(from.client.clone(), &from.pod.namespace().unwrap_or_default());
        let Some(found) = api.get_opt(name).await? else {
            return missing("configmap", name, how.optional);
        };
        let text = found
            .data
            .into_iter()
            .flatten()
            .map(|(key, text)| (key, text.into_bytes()));
        let binary = found
            .binary_data
            .into_iter()
            .flatten()
            .map(|(key, bytes)| (key, bytes.0));
        self.select(text.chain(binary).collect(), how)
    }

    async fn secret(&mut self, from: &Preparation<'_>, name: &str, how: &Selection<'_>) -> Result<(), VolumeError> {
        self.shown.push(("secret", name.to_owned()));
        let api: Api<Secret> = Api::namespaced(from.client.clone(), &from.pod.namespace().unwrap_or_default());
        let Some(found) = api.get_opt(name).await? else {
            return missing("secret", name, how.optional);
        };
        let data = found.data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0));
        self.select(data.collect(), how)
    }

    fn select(&mut self, mut data: BTreeMap<String, Vec<u8>>, how: &Selection<'_>) -> Result<(), VolumeError> {
        let Some(items) = how.items.filter(|items| !items.is_empty()) else {
            for (key, bytes) in data {
                self.file(&key, bytes, how.mode)?;
            }
            return Ok(());
        };
        for item in items {
            match data.remove(&item.key) {
                Some(bytes) => self.file(&item.path, bytes, mode(item.mode, how.mode))?,
                None if how.optional => {}
                None => {
                    return Err(VolumeError::NoKey {
                        kind: how.kind,
                        key: item.key.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    fn downward(
        &mut self,
        from: &Preparation<'_>,
        items: &[DownwardAPIVolumeFile],
        base: u32,
    ) -> Result<(), VolumeError> {
        for item in items {
            let text = match (&item.field_ref, &item.resource_field_ref) {
                (Some(of), _) => fields::field(from.pod, from.addresses, &of.field_path)?,
                (_, Some(of)) => fields::resource(from.pod, &Container::default(), of)?,
                _ => continue,
            };
            self.file(&item.path, text.into_bytes(), mode(item.mode, base))?;
        }
        Ok(())
    }

    /// A token bound to the pod, asked for again when four fifths of its life are over.
    async fn token(
        &mut self,
        from: &Preparation<'_>,
        of: &ServiceAccountTokenProjection,
        mode: u32,
    ) -> Result<(), VolumeError> {
        let account = from
            .pod
            .spec
            .as_ref()
            .and_then(|spec| spec.service_account_name.clone());
        let account = account.unwrap_or_else(|| "default".to_owned());
        let api: Api<ServiceAccount> = Api::namespaced(from.client.clone(), &from.pod.namespace().unwrap_or_default());
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: of.audience.clone().into_iter().collect(),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".into()),
                    kind: Some("Pod".into()),
                    name: Some(from.pod.name_any()),
                    uid: from.pod.uid(),
                }),
                expiration_seconds: of.expiration_seconds,
            },
            ..TokenRequest::default()
        };
        let answer = api
            .create_token_request(&account, &PostParams::default(), &request)
            .await?;
        let life = u64::try_from(of.expiration_seconds.unwrap_or(3600)).unwrap_or(3600);
        let renew = Duration::from_secs(life * 4 / 5);
        self.renew_after = Some(self.renew_after.map_or(renew, |known| known.min(renew)));
        let token = answer.status.map(|status| status.token).unwrap_or_default();
        self.file(&of.path, token.into_bytes(), mode)
    }

    fn file(&mut self, path: &str, bytes: Vec<u8>, mode: u32) -> Result<(), VolumeError> {
        let path = super::below(std::path::Path::new(""), path)?;
        self.files.insert(path, FileBody { bytes, mode });
        Ok(())
    }
}

fn missing(kind: &'static str, name: &str, optional: bool) -> Result<(), VolumeError> {
    if optional {
        return Ok(());
    }
    Err(VolumeError::NoObject {
        kind,
        name: name.to_owned(),
    })
}
