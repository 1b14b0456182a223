//! Image names and the local installations they stand for.
//!
//! A small YAML file says which:
//!
//! ```yaml
//! images:
//!   - match: "*valkey/valkey:9.1"          # `*` stands for anything; the first entry that matches counts
//!     binds:
//!       - {source: "$HOME/valkey/bin", target: /opt/valkey}
//!     entrypoint: [valkey-server]          # what runs when the container names no command
//!     args: []                             # its arguments when the container names none
//!     workingDir: /data
//!     env: {LANG: C.UTF-8}
//!     programs:                            # what the pod finds in its PATH, and what is added when it runs it
//!       - name: valkey-server
//!         path: /opt/valkey/valkey-server
//!         after: [--bind, $POD_IP, --bind-source-addr, $POD_IP, --cluster-announce-ip, $POD_IP]
//!         plain: [--version, --help]       # with one of these alone nothing is added
//!       - name: valkey-cli
//!         path: /opt/valkey/valkey-cli
//!         before: [-h, $POD_IP]
//!         replace: {localhost: $POD_IP, 127.0.0.1: $POD_IP}
//! ```
//!
//! A server that must listen on its pod's loopback address gets the arguments here, so that no manifest and no
//! operator knows of the sandbox. `$POD_IP` is the pod's address; in `source` the kubelet's own environment is read.
//! Every image sees the host's `/usr` and `/etc`, read-only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A folder or file of the host that the container sees, read-only.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageBind {
    /// On the host; `$NAME` is taken from the environment.
    pub source: String,
    /// In the container.
    pub target: PathBuf,
}

/// A program of the image, started through a wrapper that adds to its arguments.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Program {
    /// Its name in `/usr/local/bin`.
    pub name: String,
    /// What really runs, as seen in the container.
    pub path: PathBuf,
    /// Put before the given arguments.
    #[serde(default)]
    pub before: Vec<String>,
    /// Put after the given arguments.
    #[serde(default)]
    pub after: Vec<String>,
    /// A single argument of this list is passed on as it is, with nothing added.
    #[serde(default)]
    pub plain: Vec<String>,
    /// Whole arguments that are exchanged.
    #[serde(default)]
    pub replace: BTreeMap<String, String>,
}

/// What one image name stands for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// Which names: `*` stands for anything.
    pub r#match: String,
    /// What is shown beside `/usr` and `/etc`.
    #[serde(default)]
    pub binds: Vec<ImageBind>,
    /// Runs when the container names no command.
    #[serde(default)]
    pub entrypoint: Vec<String>,
    /// Its arguments when the container names neither command nor arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Set unless the container says otherwise.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where the process starts unless the container says otherwise.
    #[serde(default)]
    pub working_dir: Option<PathBuf>,
    /// The image's user, as in `USER` of a Dockerfile; `0` when absent.
    #[serde(default)]
    pub user: Option<i64>,
    /// Programs with wrappers.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// Small files written into the container's root, by path; those that start with `#!` are executable.
    #[serde(default)]
    pub files: BTreeMap<PathBuf, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageFile {
    images: Vec<Image>,
}

/// Why an image file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file is missing or unreadable.
    #[error("the image file {path} could not be read; give one with entries under `images:`")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The text is not an image file.
    #[error("the image file {origin} is not valid: {source}")]
    Parse {
        /// Which file.
        origin: String,
        /// Where and why.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
}

/// All known images. The default knows `busybox`, `debian` and the like (the host's programs) and `pause`.
#[derive(Clone, Debug, Default)]
pub struct ImageMap {
    entries: Vec<Image>,
}

impl ImageMap {
    /// The map of a YAML text; `origin` is named in errors.
    pub fn parse(origin: &str, text: &str) -> Result<Self, ImageError> {
        let file: ImageFile = serde_saphyr::from_str(text).map_err(|source| ImageError::Parse {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        Ok(Self { entries: file.images })
    }

    /// The map of a YAML file.
    pub fn load(path: &Path) -> Result<Self, ImageError> {
        let text = std::fs::read_to_string(path).map_err(|source| ImageError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// The same map with one more entry, which takes precedence over all others.
    #[must_use]
    pub fn with(mut self, image: Image) -> Self {
        self.entries.insert(0, image);
        self
    }

    /// What `name` stands for; `None` fails as a pull does. A digest behind a tag is not compared.
    pub(super) fn find(&self, name: &str) -> Option<Image> {
        let tagged = match name.split_once('@') {
            Some((tagged, _)) if repository(tagged) != tagged => tagged,
            _ => name,
        };
        let known = self.entries.iter().find(|image| matches(&image.r#match, tagged));
        known.cloned().or_else(|| built_in(name))
    }
}

/// The images that need no file: the host's programs under the usual names, and `pause`.
fn built_in(name: &str) -> Option<Image> {
    let shell = ["busybox", "debian", "alpine", "ubuntu", "bash"];
    let bare = repository(name);
    let base = bare.rsplit('/').next().unwrap_or(bare);
    let (entrypoint, args) = if shell.contains(&base) {
        (vec![], vec!["sh".to_owned()])
    } else if base == "pause" {
        (vec!["sleep".to_owned(), "infinity".to_owned()], vec![])
    } else {
        return None;
    };
    Some(Image {
        r#match: name.to_owned(),
        entrypoint,
        args,
        ..Image::default()
    })
}

/// The name without tag and digest. A colon before the last slash belongs to a registry's port.
fn repository(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    match name.rfind(':') {
        Some(colon) if !name[colon..].contains('/') => &name[..colon],
        _ => name,
    }
}

/// Whether `text` is what `pattern` describes, where `*` stands for anything, also nothing.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The name a container status shows: with registry, library and tag, as containerd normalises it.
pub(super) fn full_name(name: &str) -> String {
    let first = name.split('/').next().unwrap_or_default();
    let has_registry = name.contains('/') && (first.contains('.') || first.contains(':') || first == "localhost");
    let with_registry = match (has_registry, name.contains('/')) {
        (true, _) => name.to_owned(),
        (false, true) => format!("docker.io/{name}"),
        (false, false) => format!("docker.io/library/{name}"),
    };
    let tagged = name.contains('@') || repository(&with_registry).len() < with_registry.len();
    if tagged {
        with_registry
    } else {
        format!("{with_registry}:latest")
    }
}

/// `$NAME` taken from the environment; unknown names are left as they are.
pub(super) fn from_environment(text: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let end = tail
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(tail.len());
        match lookup(&tail[..end]).filter(|_| end > 0) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[at..=at + end]),
        }
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

/// The shell script that stands in the container's `/usr/local/bin` for a wrapped program.
pub(super) fn wrapper(program: &Program, pod_ip: &str) -> String {
    use std::fmt::Write;
    let fill = |text: &str| {
        shell_quote(&from_environment(text, |name| {
            (name == "POD_IP").then(|| pod_ip.to_owned())
        }))
    };
    let path = shell_quote(&program.path.display().to_string());
    let mut script = "#!/bin/sh\n".to_owned();
    for plain in &program.plain {
        let _ = writeln!(
            script,
            "[ $# -eq 1 ] && [ \"$1\" = {} ] && exec {path} \"$1\"",
            shell_quote(plain)
        );
    }
    if !program.replace.is_empty() {
        script.push_str("n=$#\nwhile [ $n -gt 0 ]; do\n  case \"$1\" in\n");
        for (from, to) in &program.replace {
            let _ = writeln!(script, "    {}) set -- \"$@\" {} ;;", shell_quote(from), fill(to));
        }
        script.push_str("    *) set -- \"$@\" \"$1\" ;;\n  esac\n  shift\n  n=$((n - 1))\ndone\n");
    }
    let words = |list: &[String]| list.iter().fold(String::new(), |all, word| all + " " + &fill(word));
    let _ = writeln!(
        script,
        "exec {path}{} \"$@\"{}",
        words(&program.before),
        words(&program.after)
    );
    script
}

/// `text` as one word of a shell script.
pub(super) fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("valkey", "valkey", true),
            ("valkey", "valkey:9", false),
            ("valkey*", "valkey:9", true),
            ("*valkey/valkey:9*", "docker.io/valkey/valkey:9.1", true),
            ("*valkey/valkey:9*", "valkey/valkey:8.0", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn statuses_show_the_full_name() {
        for (name, full) in [
            ("busybox", "docker.io/library/busybox:latest"),
            ("valkey/valkey:9.1", "docker.io/valkey/valkey:9.1"),
            ("localhost:5000/a", "localhost:5000/a:latest"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
            ("a/b@sha256:00", "docker.io/a/b@sha256:00"),
        ] {
            assert_eq!(full_name(name), full);
        }
    }

    #[test]
    fn built_in_images_have_the_usual_names_and_no_others() {
        let map = ImageMap::default();
        assert!(map.find("busybox:1.36").is_some());
        assert!(map.find("docker.io/library/debian@sha256:00").is_some());
        assert_eq!(
            map.find("registry.k8s.io/pause:3.10").unwrap().entrypoint,
            ["sleep", "infinity"]
        );
        assert!(map.find("busybox-not").is_none());
    }

    #[test]
    fn a_tag_without_an_entry_is_not_found() {
        let text = "images:
  - &nine
    match: '*valkey:9.1.2'
    entrypoint: [valkey-server]
  - {<<: *nine, match: '*valkey:9.1'}
  - {<<: *nine, match: '*valkey:9.1-alpine*'}
";
        let map = ImageMap::parse("images.yaml", text).unwrap();
        for name in [
            "valkey:9.1",
            "docker.io/valkey/valkey:9.1.2",
            "valkey:9.1-alpine3.22",
            "valkey:9.1@sha256:00",
        ] {
            assert_eq!(map.find(name).unwrap().entrypoint, ["valkey-server"], "{name}");
        }
        for name in [
            "valkey:typo",
            "valkey:9.1typo",
            "valkey:9.2",
            "valkey",
            "valkey@sha256:00",
        ] {
            assert_eq!(map.find(name), None, "{name}");
        }
    }

    #[test]
    fn a_wrapper_adds_replaces_and_leaves_alone() {
        let program = Program {
            name: "say".into(),
            path: "/bin/echo".into(),
            before: vec!["-h".into(), "$POD_IP".into()],
            after: vec!["it's".into()],
            plain: vec!["--version-of-nothing".into()],
            replace: BTreeMap::from([("localhost".to_owned(), "$POD_IP".to_owned())]),
        };
        let run = |args: &[&str]| {
            let out = std::process::Command::new("sh")
                .args(["-c", &wrapper(&program, "127.9.0.1"), "say"])
                .args(args)
                .output()
                .unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        assert_eq!(run(&["a b", "localhost", "$x"]), "-h 127.9.0.1 a b 127.9.0.1 $x it's\n");
        assert_eq!(run(&["--version-of-nothing"]), "--version-of-nothing\n");
        assert_eq!(run(&[]), "-h 127.9.0.1 it's\n");
    }

    #[test]
    fn an_unknown_field_in_the_file_is_named() {
        let error = ImageMap::parse("images.yaml", "images:\n  - match: a\n    entrypiont: [b]\n").unwrap_err();
        assert!(error.to_string().contains("images.yaml"), "{error}");
        assert!(error.to_string().contains("entrypiont"), "{error}");
    }
}
