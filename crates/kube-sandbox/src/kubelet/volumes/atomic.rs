//! Files that change all at once: a reader sees the old set or the new one, never a mixture.
//!
//! As on a real node, the files live in a folder named by the time, `..data` is a link to it that is exchanged by
//! a rename, and the visible names are links through `..data`.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// A file's content and mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileBody {
    pub bytes: Vec<u8>,
    pub mode: u32,
}

/// Makes `folder` show exactly `files`; nothing is touched when it does already.
pub(super) fn write(folder: &Path, files: &BTreeMap<PathBuf, FileBody>, group: Option<i64>) -> io::Result<()> {
    let data = folder.join("..data");
    let old = std::fs::read_link(&data).ok().map(|name| folder.join(name));
    if old.as_ref().is_some_and(|old| same(old, files)) {
        return Ok(());
    }
    let name = format!("..{}", jiff::Timestamp::now().strftime("%Y_%m_%d_%H_%M_%S.%f"));
    let fresh = folder.join(&name);
    std::fs::create_dir(&fresh)?;
    std::fs::set_permissions(&fresh, PermissionsExt::from_mode(0o755))?;
    for (path, body) in files {
        let target = fresh.join(path);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&target, &body.bytes)?;
        let group_mode = if group.is_some() { 0o040 } else { 0 };
        if let Some(group) = group.and_then(|group| u32::try_from(group).ok()) {
            std::os::unix::fs::chown(&target, None, Some(group)).or_else(ignore_denied)?;
        }
        std::fs::set_permissions(&target, PermissionsExt::from_mode(body.mode | group_mode))?;
    }
    let temporary = folder.join("..data_tmp");
    let _ = std::fs::remove_file(&temporary);
    symlink(&name, &temporary)?;
    std::fs::rename(&temporary, &data)?;
    show(folder, files)?;
    old.map_or(Ok(()), std::fs::remove_dir_all)
}

/// Only root gives files away; an ordinary user's pods all run as that user.
fn ignore_denied(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::PermissionDenied {
        Ok(())
    } else {
        Err(error)
    }
}

/// The visible names: the first part of every path.
fn show(folder: &Path, files: &BTreeMap<PathBuf, FileBody>) -> io::Result<()> {
    let first = |path: &Path| match path.components().next() {
        Some(Component::Normal(name)) => Some(name.to_owned()),
        _ => None,
    };
    let expected: std::collections::BTreeSet<_> = files.keys().filter_map(|path| first(path)).collect();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with("..") && !expected.contains(&name) {
            std::fs::remove_file(folder.join(name))?;
        }
    }
    for name in expected {
        let link = folder.join(&name);
        if std::fs::symlink_metadata(&link).is_err() {
            symlink(Path::new("..data").join(&name), link)?;
        }
    }
    Ok(())
}

fn same(folder: &Path, files: &BTreeMap<PathBuf, FileBody>) -> bool {
    let equal = |(path, body): (&PathBuf, &FileBody)| {
        let path = folder.join(path);
        std::fs::read(path).is_ok_and(|bytes| bytes == body.bytes)
    };
    count(folder) == files.len() && files.iter().all(equal)
}

fn count(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<PathBuf, FileBody> {
        let body = |text: &str| FileBody {
            bytes: text.as_bytes().to_vec(),
            mode: 0o640,
        };
        list.iter()
            .map(|(path, text)| (PathBuf::from(path), body(text)))
            .collect()
    }

    #[test]
    fn a_change_is_one_exchange_and_leaves_no_old_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write(at, &files(&[("a", "1"), ("d/b", "2")]), None).unwrap();
        assert_eq!(std::fs::read_to_string(at.join("d/b")).unwrap(), "2");
        assert_eq!(
            std::fs::metadata(at.join("a")).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let first = std::fs::read_link(at.join("..data")).unwrap();
        write(at, &files(&[("a", "1"), ("d/b", "2")]), None).unwrap();
        assert_eq!(std::fs::read_link(at.join("..data")).unwrap(), first, "nothing changed");
        write(at, &files(&[("c", "3")]), None).unwrap();
        assert!(!at.join("a").exists() && !at.join("d").exists());
        assert_eq!(std::fs::read_to_string(at.join("c")).unwrap(), "3");
        assert!(!at.join(first).exists());
    }
}
