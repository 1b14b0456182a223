#!/usr/bin/env python3
"""Makes an image for containerd out of files of this machine: no registry, no container engine.

    image.py OUT.tar --name docker.io/valkey/valkey:9.1 --tree servers/valkey-9.1=/opt/valkey --program /bin/sh ...

Programs bring the shared libraries that ldd names, each at the path where the program looks for it. The same files give the
same bytes, so an image that was made twice is one image.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def arguments():
    parser = argparse.ArgumentParser(description="An OCI archive from files of this machine.")
    parser.add_argument("out")
    parser.add_argument("--name", action="append", required=True, help="the image's whole name; may be given more than once")
    parser.add_argument("--program", action="append", default=[], metavar="FILE[=PATH]", help="a program with its libraries")
    parser.add_argument("--file", action="append", default=[], metavar="FILE=PATH", help="a file as it is")
    parser.add_argument("--tree", action="append", default=[], metavar="FOLDER=PATH", help="a folder, its programs with their libraries")
    parser.add_argument("--folder", action="append", default=[], metavar="PATH[=MODE]", help="an empty folder")
    parser.add_argument("--text", action="append", default=[], metavar="PATH=TEXT", help="a small executable file")
    parser.add_argument("--entrypoint", type=json.loads, default=[], metavar="JSON")
    parser.add_argument("--path", default="/usr/local/bin:/usr/bin:/bin")
    parser.add_argument("--user", default="")
    parser.add_argument("--workdir", default="/")
    return parser.parse_args()


def pair(words, otherwise=None):
    first, _, second = words.partition("=")
    return first, second or (otherwise if otherwise is not None else first)


def is_program(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries(program, beside):
    """The libraries of a program, by the path where the loader finds them; `beside` is searched first."""
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(beside))
    said = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment, check=False).stdout
    for line in said.splitlines():
        if "not found" in line:
            raise SystemExit(f"error: {program} needs {line.strip()}: install the library")
        found = re.search(r"(/\S+) \(0x", line)
        if found:
            yield found.group(1)


class Files:
    """What the image holds: paths without the leading slash, each with where it comes from."""

    def __init__(self):
        self.folders = {}
        self.contents = {}
        self.links = {}

    def folder(self, path, mode=0o755):
        path = path.strip("/")
        if path:
            self.folder(os.path.dirname(path))
            if mode != 0o755 or path not in self.folders:
                self.folders[path] = mode

    def file(self, source, path):
        path = path.strip("/")
        self.folder(os.path.dirname(path))
        self.contents[path] = source

    def program(self, source, path, beside=()):
        self.file(os.path.realpath(source), path)
        for library in libraries(source, beside):
            if not any(library.startswith(folder + "/") for folder in beside):
                self.file(os.path.realpath(library), library)

    def tree(self, root, path):
        root = os.path.realpath(root)
        beside = sorted({where for where, _, names in os.walk(root) for name in names if ".so." in name})
        for where, _, names in os.walk(root):
            for name in names:
                source = os.path.join(where, name)
                target = os.path.join(path, os.path.relpath(source, root))
                if os.path.islink(source) and not os.path.isabs(os.readlink(source)):
                    self.folder(os.path.dirname(target))
                    self.links[target.strip("/")] = os.readlink(source)
                elif is_program(source) and os.access(source, os.X_OK) and ".so" not in name:
                    self.program(source, target, beside)
                elif os.path.exists(source):
                    self.file(os.path.realpath(source), target)

    def layer(self):
        """All of it as one tar, owned by root, without the times of this machine."""
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w") as tar:
            for path, mode in sorted(self.folders.items()):
                entry = tarfile.TarInfo(path)
                entry.type, entry.mode = tarfile.DIRTYPE, mode
                tar.addfile(entry)
            for path, source in sorted(self.contents.items()):
                entry = tarfile.TarInfo(path)
                if isinstance(source, bytes):
                    entry.size, entry.mode = len(source), 0o755
                    tar.addfile(entry, io.BytesIO(source))
                    continue
                entry.size = os.path.getsize(source)
                entry.mode = 0o755 if os.access(source, os.X_OK) else 0o644
                with open(source, "rb") as file:
                    tar.addfile(entry, file)
            for path, target in sorted(self.links.items()):
                entry = tarfile.TarInfo(path)
                entry.type, entry.linkname = tarfile.SYMTYPE, target
                tar.addfile(entry)
        return raw.getvalue()


def gather(options):
    files = Files()
    for folder in ("etc", "tmp=1777", "usr/bin", "usr/lib", "usr/sbin", *options.folder):
        path, mode = pair(folder, "755")
        files.folder(path, int(mode, 8))
    # As in Debian: programs and libraries are found under both names.
    files.links.update({"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"})
    files.file(b"root:x:0:0:root:/:/bin/sh\nserver:x:999:999:server:/data:/bin/sh\n", "etc/passwd")
    files.file(b"root:x:0:\nserver:x:999:\n", "etc/group")
    for words in options.program:
        files.program(*pair(words))
    for words in options.tree:
        files.tree(*pair(words))
    for words in options.file:
        files.file(*pair(words))
    for words in options.text:
        path, text = pair(words)
        files.file(text.encode(), path)
    return merged(files)


def merged(files):
    """Paths through the links of `gather` become the places they mean: a tar must not write through its own links."""
    through = ("bin", "sbin", "lib", "lib64")

    def place(path):
        head, _, rest = path.partition("/")
        return f"usr/{path}" if head in through and rest else path

    files.contents = {place(path): source for path, source in files.contents.items()}
    files.folders = {place(path): mode for path, mode in files.folders.items() if path not in through}
    for path in list(files.contents):
        files.folder(os.path.dirname(path))
    return files


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def described(media, data, **more):
    return {"mediaType": media, "digest": digest(data), "size": len(data), **more}


def main():
    options = arguments()
    raw = gather(options).layer()
    layer = gzip.compress(raw, 1, mtime=0)
    run = {"Env": [f"PATH={options.path}"], "WorkingDir": options.workdir, "Entrypoint": options.entrypoint, "User": options.user}
    config = json.dumps({
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [digest(raw)]},
    }).encode()
    manifest = json.dumps({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described(CONFIG, config),
        "layers": [described(LAYER, layer)],
    }).encode()
    named = [
        described(MANIFEST, manifest, annotations={"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name})
        for name in options.name
    ]
    index = json.dumps({"schemaVersion": 2, "manifests": named}).encode()
    with tarfile.open(options.out, "w") as archive:
        blobs = {f"blobs/sha256/{digest(blob)[7:]}": blob for blob in (config, manifest, layer)}
        for path, data in {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index, **blobs}.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


if __name__ == "__main__":
    main()
