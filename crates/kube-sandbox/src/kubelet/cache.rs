//! The folder that `make setup` fills, once for all clones of a user: servers, programs, and the image map of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Why a file of the cache is not available.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// No variable names the folder.
    #[error("the cache that holds {0} has no folder: set HOME, or CANDOR_CACHE")]
    Nowhere(PathBuf),
    /// `make setup` has not created it.
    #[error("{0} is missing: run `make setup` once")]
    Missing(PathBuf),
}

/// The path of a file or folder that `make setup` created, by its path in the cache: `images.yaml`, or `servers/valkey/bin`.
///
/// The cache is `$CANDOR_CACHE`, else `$XDG_CACHE_HOME/candor`, else `$HOME/.cache/candor`. A variable that is empty
/// counts as not set, as in the scripts that fill the folder.
pub fn cached(path: impl AsRef<Path>) -> Result<PathBuf, CacheError> {
    let path = path.as_ref();
    let folder = folder(|name| std::env::var_os(name)).ok_or_else(|| CacheError::Nowhere(path.to_owned()))?;
    let whole = folder.join(path);
    if whole.exists() {
        Ok(whole)
    } else {
        Err(CacheError::Missing(whole))
    }
}

fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CANDOR_CACHE").or_else(|| {
        let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        Some(caches?.join("candor"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_not_empty_names_the_folder() {
        for (own, caches, home, expected) in [
            (Some("/own"), Some("/caches"), Some("/home/jane"), Some("/own")),
            (None, Some("/caches"), Some("/home/jane"), Some("/caches/candor")),
            (Some(""), Some("/caches"), None, Some("/caches/candor")),
            (None, None, Some("/home/jane"), Some("/home/jane/.cache/candor")),
            (Some(""), Some(""), Some("/home/jane"), Some("/home/jane/.cache/candor")),
            (None, None, Some(""), None),
            (None, None, None, None),
        ] {
            let found = folder(|name| {
                let value = match name {
                    "CANDOR_CACHE" => own,
                    "XDG_CACHE_HOME" => caches,
                    "HOME" => home,
                    other => panic!("{other} says nothing about the cache"),
                };
                value.map(OsString::from)
            });
            assert_eq!(found, expected.map(PathBuf::from), "{own:?} {caches:?} {home:?}");
        }
    }

    #[test]
    fn a_missing_file_is_named_with_the_command_to_run() {
        let error = cached("servers/missing").unwrap_err().to_string();
        assert!(error.contains("servers/missing"), "{error}");
        assert!(error.contains("make setup") || error.contains("set HOME"), "{error}");
    }
}
