//! A container's private root: a folder that shows the host's `/usr` and `/etc` read-only.
//!
//! The folder is prepared here, without any right; the mounts over it are made by the container's first process in
//! its own mount namespace, so the host's mount table never changes and nothing is left when the process ends.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

/// A path of the host that the container sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub source: PathBuf,
    pub target: PathBuf,
    pub read_only: bool,
}

/// Where the container sees the host's trees, for the links that lead to them.
const HOST: &str = ".host";

/// The device files every container has.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// A root in the making.
pub(super) struct RootFs {
    root: PathBuf,
    binds: Vec<Bind>,
    memories: Vec<(PathBuf, u64)>,
    user_namespace: bool,
}

impl RootFs {
    /// An empty container root in `folder`, which must not exist yet.
    pub fn create(folder: &Path, user_namespace: bool) -> io::Result<Self> {
        let root = folder.join("root");
        std::fs::create_dir_all(&root)?;
        for name in [
            "dev/pts",
            "dev/shm",
            "proc",
            "sys",
            "etc",
            "run",
            "root",
            "home",
            "mnt",
            "opt",
            "srv",
            "var/lib",
            "var/log",
            "var/cache",
            "var/tmp",
            "tmp",
            "usr",
        ] {
            std::fs::create_dir_all(root.join(name))?;
        }
        std::fs::set_permissions(&root, PermissionsExt::from_mode(0o755))?;
        for name in ["tmp", "var/tmp"] {
            std::fs::set_permissions(root.join(name), PermissionsExt::from_mode(0o1777))?;
        }
        symlink("/run", root.join("var/run"))?;
        for name in DEVICES {
            std::fs::write(root.join("dev").join(name), "")?;
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            symlink(target, root.join("dev").join(name))?;
        }
        let mut made = Self {
            root,
            binds: Vec::new(),
            memories: Vec::new(),
            user_namespace,
        };
        made.show_host()?;
        let local = folder.join("local");
        std::fs::create_dir_all(local.join("bin"))?;
        made.mount(&local, Path::new("/usr/local"), false)?;
        Ok(made)
    }

    /// `/usr` as it is, the old top-level names for it, and `/etc` as links, so that single files of it can be private.
    fn show_host(&mut self) -> io::Result<()> {
        self.bind("/usr".into(), "/usr".into());
        for name in ["bin", "sbin", "lib", "lib32", "lib64", "libx32"] {
            let path = Path::new("/").join(name);
            match std::fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => symlink(std::fs::read_link(&path)?, self.root.join(name))?,
                Ok(_) => {
                    std::fs::create_dir(self.root.join(name))?;
                    self.bind(path.clone(), path);
                }
                Err(_) => {}
            }
        }
        let shown = Path::new("/").join(HOST).join("etc");
        std::fs::create_dir_all(self.inside(&shown))?;
        self.bind("/etc".into(), shown.clone());
        link_entries(Path::new("/etc"), &shown, &self.root.join("etc"))
    }

    fn bind(&mut self, source: PathBuf, target: PathBuf) {
        self.binds.push(Bind {
            source,
            target,
            read_only: true,
        });
    }

    /// A path of the container as a path of the prepared folder.
    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Shows `source` at `target`. Call it with parents before children.
    pub fn mount(&mut self, source: &Path, target: &Path, read_only: bool) -> io::Result<()> {
        let target = normal(target);
        let is_file = !std::fs::metadata(source)?.is_dir();
        let target = self.place(&target, is_file)?;
        self.binds.push(Bind {
            source: source.to_owned(),
            target,
            read_only,
        });
        Ok(())
    }

    /// An empty volume of so many bytes of memory at `target`.
    pub fn memory(&mut self, target: &Path, bytes: u64) -> io::Result<()> {
        let target = self.place(&normal(target), false)?;
        self.memories.push((target, bytes));
        Ok(())
    }

    /// A folder that exists in the container, such as a working directory.
    pub fn folder(&mut self, path: &Path) -> io::Result<()> {
        self.place(&normal(path), false).map(drop)
    }

    /// A small file of the container's own.
    pub fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let place = self.place(&normal(path), true)?;
        let real = match self.covering(&place) {
            Some(bind) => bind.source.join(place.strip_prefix(&bind.target).unwrap_or(&place)),
            None => self.inside(&place),
        };
        std::fs::write(&real, text)?;
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        std::fs::set_permissions(real, PermissionsExt::from_mode(mode))
    }

    /// The innermost mount that `path` lies below.
    fn covering(&self, path: &Path) -> Option<&Bind> {
        let below = self.binds.iter().rev();
        below
            .filter(|bind| path.starts_with(&bind.target) && path != bind.target)
            .max_by_key(|bind| bind.target.components().count())
    }

    /// Makes sure that something can be mounted at `path`, and answers where that is once links are followed.
    fn place(&mut self, path: &Path, is_file: bool) -> io::Result<PathBuf> {
        let mut here = PathBuf::from("/");
        let parts: Vec<_> = path.components().skip(1).collect();
        for (at, part) in parts.iter().enumerate() {
            let last = at + 1 == parts.len();
            let next = here.join(part);
            if let Some(bind) = self.covering(&next).cloned() {
                let real = bind.source.join(next.strip_prefix(&bind.target).unwrap_or(&next));
                if std::fs::metadata(&real).is_err() {
                    if is_host(&bind) {
                        self.open_up(&bind)?;
                        return self.place(path, is_file);
                    }
                    make(&real, last && is_file)?;
                }
                here = next;
                continue;
            }
            let real = self.inside(&next);
            match std::fs::symlink_metadata(&real) {
                Ok(found) if found.is_symlink() => {
                    let target = std::fs::read_link(&real)?;
                    if target.starts_with(Path::new("/").join(HOST)) {
                        std::fs::remove_file(&real)?;
                        let host =
                            Path::new("/").join(target.strip_prefix(Path::new("/").join(HOST)).unwrap_or(&target));
                        make(&real, last && is_file)?;
                        if !last && host.is_dir() {
                            link_entries(&host, &target, &real)?;
                        }
                    } else {
                        let rest: PathBuf = parts[at + 1..].iter().collect();
                        return self.place(&normal(&here.join(target).join(rest)), is_file);
                    }
                }
                Ok(_) => {}
                Err(_) => make(&real, last && is_file)?,
            }
            here = next;
        }
        Ok(here)
    }

    /// Turns a folder of the host into a folder of links to its entries, so that it can hold private ones too.
    fn open_up(&mut self, bind: &Bind) -> io::Result<()> {
        let shown = Path::new("/")
            .join(HOST)
            .join(bind.source.strip_prefix("/").unwrap_or(&bind.source));
        std::fs::create_dir_all(self.inside(&shown))?;
        for known in self.binds.iter_mut().filter(|known| *known == bind) {
            known.target.clone_from(&shown);
        }
        link_entries(&bind.source, &shown, &self.inside(&bind.target))
    }

    /// The mounts as lines for `mount --all --fstab`, which makes them all in one process.
    pub fn fstab(&self) -> String {
        let root = &self.root;
        let mut lines = vec![line(root, root, "none", "bind")];
        for bind in &self.binds {
            let options = if bind.read_only {
                format!("rbind,ro{}", self.mount_flags(&bind.source))
            } else {
                "rbind".to_owned()
            };
            lines.push(line(&bind.source, &self.inside(&bind.target), "none", &options));
        }
        let special = [
            ("proc", "proc", "nosuid,nodev,noexec"),
            ("tmpfs", "dev/shm", "nosuid,nodev,mode=1777"),
            ("devpts", "dev/pts", "newinstance,ptmxmode=0666,mode=0620"),
        ];
        for (kind, at, options) in special {
            lines.push(line(Path::new(kind), &root.join(at), kind, options));
        }
        for (target, bytes) in &self.memories {
            let options = format!("size={bytes},mode=1777");
            lines.push(line(Path::new("tmpfs"), &self.inside(target), "tmpfs", &options));
        }
        // Below a user namespace a folder may only be shown together with what is mounted in it.
        let sys = if self.user_namespace { "rbind" } else { "bind,ro" };
        lines.push(line(Path::new("/sys"), &root.join("sys"), "none", sys));
        for name in DEVICES {
            let device = Path::new("/dev").join(name);
            lines.push(line(&device, &root.join("dev").join(name), "none", "bind"));
        }
        lines.concat()
    }

    /// In a user namespace the kernel rejects a remount that would lose one of these flags of the source.
    pub fn mount_flags(&self, source: &Path) -> String {
        let Some(found) = statvfs(source).ok().filter(|_| self.user_namespace) else {
            return String::new();
        };
        let flags = BTreeMap::from([
            ("nosuid", StatVfsMountFlags::NOSUID),
            ("nodev", StatVfsMountFlags::NODEV),
            ("noexec", StatVfsMountFlags::NOEXEC),
            ("noatime", StatVfsMountFlags::NOATIME),
            ("nodiratime", StatVfsMountFlags::NODIRATIME),
            ("relatime", StatVfsMountFlags::RELATIME),
        ]);
        let kept = flags.into_iter().filter(|(_, flag)| found.f_flag.contains(*flag));
        kept.fold(String::new(), |all, (name, _)| all + "," + name)
    }

    /// The folder that becomes `/`.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Whether this is a folder of the host, which cannot take new entries.
fn is_host(bind: &Bind) -> bool {
    bind.read_only && bind.source == bind.target
}

/// Links to every entry of the host's folder `from`, which the container sees at `shown`; links stay as they are.
fn link_entries(from: &Path, shown: &Path, into: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = if entry.file_type()?.is_symlink() {
            std::fs::read_link(entry.path())?
        } else {
            shown.join(entry.file_name())
        };
        symlink(target, into.join(entry.file_name()))?;
    }
    Ok(())
}

fn make(path: &Path, is_file: bool) -> io::Result<()> {
    if is_file {
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map(drop)
    } else {
        std::fs::create_dir_all(path)
    }
}

/// An absolute path without `.` and `..`: what lies above `/` is `/`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            _ => {}
        }
    }
    out
}

/// One line of an fstab, where blanks and backslashes are octal.
fn line(source: &Path, target: &Path, kind: &str, options: &str) -> String {
    let quote = |path: &Path| {
        let text = path.to_string_lossy();
        text.replace('\\', "\\134")
            .replace(' ', "\\040")
            .replace('\t', "\\011")
            .replace('\n', "\\012")
    };
    format!("{} {} {kind} {options} 0 0\n", quote(source), quote(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> (tempfile::TempDir, RootFs) {
        let folder = tempfile::tempdir().unwrap();
        let root = RootFs::create(&folder.path().join("c"), false).unwrap();
        (folder, root)
    }

    #[test]
    fn a_volume_below_etc_leaves_the_other_entries_in_place() {
        let (folder, mut fs) = fresh();
        fs.mount(folder.path(), Path::new("/etc/valkey/conf"), true).unwrap();
        assert!(fs.root().join("etc/valkey/conf").is_dir());
        assert_eq!(
            std::fs::read_link(fs.root().join("etc/passwd")).unwrap(),
            Path::new("/.host/etc/passwd")
        );
    }

    #[test]
    fn a_new_folder_below_usr_opens_usr_up() {
        let (folder, mut fs) = fresh();
        fs.mount(folder.path(), Path::new("/usr/not-on-any-host/x"), false)
            .unwrap();
        assert!(fs.root().join("usr/not-on-any-host/x").is_dir());
        assert_eq!(
            std::fs::read_link(fs.root().join("usr/bin")).unwrap(),
            Path::new("/.host/usr/bin")
        );
        assert!(fs.fstab().contains("/.host/usr none rbind,ro"));
    }

    #[test]
    fn a_mount_below_another_volume_gets_its_place_in_that_volume() {
        let (folder, mut fs) = fresh();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("inner"));
        std::fs::create_dir_all(&outer).unwrap();
        std::fs::write(&inner, "x").unwrap();
        fs.mount(&outer, Path::new("/data"), false).unwrap();
        fs.mount(&inner, Path::new("/data/conf/a.conf"), true).unwrap();
        assert!(outer.join("conf/a.conf").is_file());
    }

    #[test]
    fn links_of_the_root_are_followed_and_nothing_leaves_it() {
        let (folder, mut fs) = fresh();
        fs.mount(folder.path(), Path::new("/var/run/x/../../../../../deep"), true)
            .unwrap();
        assert!(fs.root().join("deep").is_dir());
        fs.mount(folder.path(), Path::new("/var/run/secrets/a"), true).unwrap();
        assert!(fs.root().join("run/secrets/a").is_dir());
    }

    #[test]
    fn blanks_in_a_path_survive_the_fstab() {
        assert_eq!(
            line(Path::new("/a b"), Path::new("/c\\d"), "none", "bind"),
            "/a\\040b /c\\134d none bind 0 0\n"
        );
    }

    #[test]
    fn a_written_file_is_executable_when_it_is_a_script() {
        let (_folder, mut fs) = fresh();
        fs.write(Path::new("/usr/local/bin/tool"), "#!/bin/sh\n").unwrap();
        let made = fs.root().parent().unwrap().join("local/bin/tool");
        assert_eq!(std::fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
