//! All kinds the server serves now.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use serde_json::Value;

use super::{Kind, builtin, crd};
use crate::status::ApiError;

/// Finds kinds, and lets CRDs come and go while requests run.
#[derive(Debug)]
pub struct Registry {
    builtin: Vec<Arc<Kind>>,
    /// By the CRD's name.
    custom: RwLock<BTreeMap<String, Vec<Arc<Kind>>>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Registry {
    /// The built-in kinds and no CRD.
    pub fn builtin() -> Self {
        Self {
            builtin: builtin::all(),
            custom: RwLock::default(),
        }
    }

    /// The kind served at a path, where there is one.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.search(|k| k.group == group && k.version == version && k.plural == plural)
    }

    /// The kind that an object declares.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.search(|k| k.group == group && k.version == version && k.kind == kind)
    }

    /// Every served version of every kind: built-in ones first, then CRDs by name.
    pub fn all(&self) -> Vec<Arc<Kind>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        self.builtin.iter().chain(custom.values().flatten()).cloned().collect()
    }

    /// Serves what a CRD describes, from now on; a CRD of the same name is replaced.
    ///
    /// Returns the `status` the CRD must get: accepted names, conditions, stored versions. A CRD with names that are
    /// taken is not served, and its status says so; one that is not well formed is rejected before.
    pub fn install_crd(&self, definition: &Value, now: Timestamp) -> Result<Value, ApiError> {
        let name = crd::name(definition);
        let conflicts = crd::name_conflicts(definition, &self.others(name));
        if conflicts.is_empty() {
            let kinds = crd::kinds(definition)?;
            self.write(|custom| custom.insert(name.to_owned(), kinds));
        }
        Ok(crd::status(definition, &conflicts, now))
    }

    /// Stops serving a CRD. The caller removes its objects.
    pub fn remove_crd(&self, name: &str) -> Vec<Arc<Kind>> {
        self.write(|custom| custom.remove(name)).unwrap_or_default()
    }

    fn others(&self, name: &str) -> Vec<Arc<Kind>> {
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        let custom = custom.iter().filter(|(other, _)| other.as_str() != name);
        self.builtin
            .iter()
            .chain(custom.flat_map(|(_, kinds)| kinds))
            .cloned()
            .collect()
    }

    fn search(&self, expected: impl Fn(&Kind) -> bool) -> Option<Arc<Kind>> {
        if let Some(kind) = self.builtin.iter().find(|k| expected(k)) {
            return Some(kind.clone());
        }
        let custom = self.custom.read().unwrap_or_else(PoisonError::into_inner);
        custom.values().flatten().find(|k| expected(k)).cloned()
    }

    fn write<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Vec<Arc<Kind>>>) -> T) -> T {
        change(&mut self.custom.write().unwrap_or_else(PoisonError::into_inner))
    }
}
