//! The folder all pods of one kubelet live in.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = "kubelet-";

/// A folder that is removed with this value. A lock in it says that its kubelet lives, so that the next one can clean
/// up after one that was killed.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// A fresh folder in `place`; those that dead kubelets left there are removed.
    pub fn create(place: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(place)?;
        for entry in std::fs::read_dir(place)?.flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
            let abandoned = || File::open(entry.path().join("lock")).is_ok_and(|lock| lock.try_lock().is_ok());
            if ours && abandoned() {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let path = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?.keep();
        let lock = File::create(path.join("fresh"))?;
        lock.lock()?;
        // Renamed only after it is locked, so that no other kubelet takes it for abandoned.
        std::fs::rename(path.join("fresh"), path.join("lock"))?;
        Ok(Self { path, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A process that was killed this instant may still be making files.
        for _ in 0..100 {
            match std::fs::remove_dir_all(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(Duration::from_millis(5)),
                _ => return,
            }
        }
        tracing::warn!(folder = %self.path.display(), "the pods' folder could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_killed_kubelet_is_removed_and_that_of_a_running_one_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let abandoned = place.path().join("kubelet-dead");
        std::fs::create_dir(&abandoned).unwrap();
        File::create(abandoned.join("lock")).unwrap();
        let living = Folder::create(place.path()).unwrap();
        assert!(!abandoned.exists());
        let second = Folder::create(place.path()).unwrap();
        assert!(living.path().exists() && second.path() != living.path());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
