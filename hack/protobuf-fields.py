#!/usr/bin/env python3
"""Writes the table of protobuf fields that kube-sandbox decodes: one message a line, `package.Message name:number:type…`.

Usage: protobuf-fields.py MODULES >crates/kube-sandbox/src/server/protobuf/fields.txt
MODULES is a Go module cache's k8s.io folder that holds api and apimachinery of one release. Types: `*` a pointer, `+` a
list, `%` a map of texts; an inlined message has no name."""
import re
import sys

PACKAGES = ["core", "apps", "batch", "policy", "rbac", "coordination", "discovery", "events", "networking", "scheduling",
            "storage", "authentication", "authorization", "autoscaling"]
SCALARS = {"string": "string", "int32": "int", "int64": "int", "int": "int", "uint8": "int", "bool": "bool",
           "float64": "double", "byte": "byte", "types.UID": "string", "types.NodeName": "string"}
SPECIAL = {"resource.Quantity": "quantity", "intstr.IntOrString": "intstr", "metav1.Time": "time", "Time": "time",
           "metav1.MicroTime": "time", "MicroTime": "time", "runtime.RawExtension": "raw", "FieldsV1": "raw",
           "metav1.FieldsV1": "raw"}


def main(modules, release):
    sources = {p: open(f"{modules}/api@{release}/{p}/v1/types.go").read() for p in PACKAGES}
    sources["meta"] = open(f"{modules}/apimachinery@{release}/pkg/apis/meta/v1/types.go").read()
    structs, named = {}, {}
    for package, text in sources.items():
        for match in re.finditer(r"^type (\w+) struct \{(.*?)^\}", text, re.S | re.M):
            structs[f"{package}.{match[1]}"] = match[2]
        for match in re.finditer(r"^type (\w+) ((?:map\[\w+\]|\[\])?[\w.]+)$", text, re.M):
            named[f"{package}.{match[1]}"] = match[2]

    def kind(package, go):
        if go.startswith("*"):
            return "*" + kind(package, go[1:])
        if go == "[]byte":
            return "bytes"
        if go.startswith("[]"):
            return "+" + kind(package, go[2:])
        match = re.match(r"map\[[\w.]+\](.*)", go)
        if match:
            return "%" + kind(package, match[1])
        if go in SPECIAL:
            return SPECIAL[go]
        if go in SCALARS:
            return SCALARS[go]
        short = {"metav1": "meta", "v1": "core", "corev1": "core", "apiv1": "core"}
        owner, _, name = go.rpartition(".")
        full = f"{short.get(owner, owner) or package}.{name}"
        if full in structs:
            return full
        if full in named:
            # A named list is a message of its own on the wire.
            inner = kind(full.split(".")[0], named[full])
            return f"items({inner})" if inner.startswith("+") else inner
        return "string"

    for name in sorted(structs):
        package = name.split(".")[0]
        fields = []
        for line in structs[name].splitlines():
            match = re.match(r"\s*(?:(\w+)\s+)?(\S+)\s+`json:\"([^\"]*)\".*\bprotobuf:\"([^\"]*)\"", line)
            if match:
                json = match[3].split(",")
                fields.append(f"{json[0]}:{match[4].split(',')[1]}:{kind(package, match[2])}")
        if fields:
            print(name, *fields)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "v0.34.4")
