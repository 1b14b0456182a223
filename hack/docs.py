#!/usr/bin/env python3
"""docs.py CANDOR [PAGE]...: types the commands of the pages into a shell beside a sandbox, in their order, and holds what is
printed against what the page shows. Every line that a page shows must be printed, in that order; numbers, names that are
drawn by lot, times and addresses are left out of it, and a line of only `…` stands for any others.

A page is not a script: what has to be there before a command (FIRST), where only the first lines can be promised because
the rest depends on the moment (MOMENT), and what is not typed here (SKIPPED, with the reason) stands below. A command of a
page that is named nowhere is typed as it stands, so that new ones are tried without further ado.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In the order of a reader; the rest by name.
FIRST_PAGES = [
    *["quick-start", "install", "scaling", "upgrades", "users", "tls", "persistence", "sizing", "drains-and-zones"],
    *["data-loss", "connecting", "monitoring", "troubleshooting", "web"],
]
DOCS = ROOT / "docs"
OTHERS = sorted(str(path.relative_to(DOCS))[:-3] for path in [*DOCS.glob("*.md"), *DOCS.glob("runbooks/*.md")])
PAGES = [*FIRST_PAGES, *[page for page in OTHERS if page not in FIRST_PAGES]]
READY = "kubectl wait --for=condition=Ready vkc --all --timeout=180s"
PLAIN = "kubectl apply -f first.yaml && " + READY
REDKEY = "kubectl apply -f redkey.yaml && kubectl wait --for=condition=Ready rkcl/first --timeout=180s"
KEYS = r"""
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=my-ca -keyout ca.key -out ca.crt
openssl req -newkey rsa:2048 -nodes -subj /CN=secure -keyout tls.key -out tls.csr
printf 'subjectAltName=DNS:valkey-secure-client\nextendedKeyUsage=serverAuth,clientAuth\n' >ext
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out tls.crt
openssl genrsa -out other.key 2048"""
CERTIFICATES = KEYS + r"""
kubectl create secret generic secure-tls --from-file=ca.crt --from-file=tls.crt --from-file=tls.key
kubectl apply -f secure.yaml && """ + READY

# What has to be there before a command, by the page and the command's beginning.
FIRST = {
    ("install", "candor doctor"): PLAIN,
    ("install", "candor install --namespace ops"): "kubectl create namespace shop; kubectl create namespace bank",
    ("scaling", "candor plan"): PLAIN,
    ("upgrades", "kubectl patch"): "sed '$a\\  image: valkey/valkey:8.0' first.yaml >older.yaml && kubectl apply -f older.yaml && "
    + READY,
    ("upgrades", "candor plan"): READY
    + " && kubectl apply -f older.yaml; sed '$a\\  image: valkey/valkey:9.1' first.yaml >newer.yaml;"
    + " kubectl annotate vkc first valkey.io/allow-downgrade=true; sleep 3; "
    + READY,
    ("sizing", "kubectl create secret generic production-tls"): KEYS,
    ("drains-and-zones", "candor failover"): PLAIN,
    ("web", "kubectl create token"): "kubectl create serviceaccount viewer",
    ("program", "kubectl candor status"): PLAIN,
    ("moving-from-redkey", "kubectl wait rkcl"): REDKEY,
    **{(page, ""): REDKEY if "Redkey" in page else PLAIN for page in OTHERS if page.startswith("runbooks/")},
    ("connecting", "kubectl get service"): CERTIFICATES,
    ("tls", "kubectl exec"): CERTIFICATES,
    ("persistence", "kubectl get pvc"): "kubectl apply -f kept.yaml && " + READY,
    ("troubleshooting", "candor status"): PLAIN,
    ("troubleshooting", "kubectl get vkc secure"): CERTIFICATES
    + """ && kubectl create secret generic secure-tls --from-file=ca.crt --from-file=tls.crt --from-file=tls.key=other.key \
      --dry-run=client -o yaml | kubectl apply -f - && kubectl wait --for=jsonpath='{.status.state}'=Failed vkc/secure""",
    ("troubleshooting", "candor plan -f changed.yaml"): "sed 's/shards: 3/shards: 4/' first.yaml >changed.yaml",
}
# How many lines can be promised of what depends on the moment, for each time that a page has the command.
MOMENT = {
    ("quick-start", "candor status first"): [1, 0],
    ("quick-start", "candor history first"): [1],
    ("install", "candor doctor"): [6],
}
SKIPPED = {
    "make ": "has a run of its own",
    "candor sandbox": "one runs already",
    "export KUBECONFIG": "one runs already",
    "podman": "no registry",
    "candor install --image registry.example.com": "no registry",
    "kubectl delete crd": "make install-ways does",
    "candor status first --watch": "does not end",
    "candor status first -n default --watch": "does not end",
    "candor web --open": "does not end",
    "kubectl -n candor port-forward": "does not end",
    "kubectl -n candor top pod": "a sandbox has no metrics-server",
    "kubectl get nodes,storageclasses": "of a real Kubernetes",
    "kubectl -n candor logs deployment/candor-operator | grep": "nothing is wrong",
    "kubectl -n candor logs deployment/candor-operator --tail 100 | grep": "nothing is wrong",
    "candor operator --dry-run": "does not end",
    "kubectl logs deploy/valkey-first-0-0 -c server --previous": "nothing crashed before",
    "kubectl patch vkc first --type json": "the operator lives",
    "kubectl get --raw /api/v1/namespaces/candor/services": "a sandbox has no proxy to Services",
    "kubectl annotate vkc shop": "nothing was lost",
    "kubectl taint node NODE": "no node is gone",
    "candor failover first --shard 1 --to 1-0": "it is the primary already",
    "candor install --service-monitor": "needs the Prometheus operator",
    "kubectl apply -f deploy/monitoring/prometheus-rule.yaml": "needs the Prometheus operator",
}


PLACEHOLDERS = {"NAME": "first", "CLUSTER": "first", "NAMESPACE": "default", "POD": "deploy/valkey-first-0-0"}


def pieces(page):
    """The manifests and commands of a page, in order: ("file", name, text) or ("command", line, shown)."""
    lines = (ROOT / "docs" / f"{page}.md").read_text().splitlines()
    found, at = [], 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("```"):
            end = lines.index("```", at)
            text = "\n".join(lines[at:end]) + "\n"
            name = re.search(r"kind: ValkeyCluster\nmetadata:\n  name: (\S+)", text)
            if line == "```yaml" and name:
                found.append(("file", f"{name[1]}.yaml", text))
            at = end + 1
        elif typed := re.match(r"    (?:\$ )?((?:kubectl|candor|make|podman|export) .*)", line):
            shown = []
            if line.startswith("    $ "):
                while at < len(lines) and (lines[at].startswith("    ") or not lines[at]) and not lines[at].startswith("    $ "):
                    shown.append(lines[at].strip())
                    at += 1
            line = typed[1]
            for placeholder, name in PLACEHOLDERS.items():
                line = re.sub(rf"\b{placeholder}\b", name, line)
            found.append(("command", line, [line for line in shown if line]))
    return found


def plain(line):
    """A line without what differs from run to run."""
    line = re.sub(r"\b[0-9a-f]{16,}\b", "ID", line)
    line = re.sub(r"\b(pvc-)[0-9a-f-]{36}\b", r"\1ID", line)
    line = re.sub(r"-[0-9a-z]{6,10}-[0-9a-z]{5}\b", "-ID", line)
    line = re.sub(r"\b\d+(\.\d+)*(ms|[smhdBKMG])?\b", "N", line)
    # Last in a row of members: its zone.
    line = re.sub(r" [abc]$", " Z", line)
    return re.sub(r"\s+", " ", line).strip()


def missing(shown, printed):
    """The first line of what is shown that was not printed after those before it."""
    printed = [plain(line) for line in printed if line.strip()]
    at, skip = 0, False
    for line in shown:
        wanted = plain(line)
        if wanted == "…":
            skip = True
            continue
        hit = next((i for i in range(at, len(printed)) if printed[i] == wanted), None)
        if hit is None or (hit > at and not skip):
            return line
        at, skip = hit + 1, False
    return None if skip or at == len(printed) else f"(more was printed: {printed[at]})"


class Reader:
    """Somebody who types what a page says."""

    def __init__(self, candor, folder):
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "bin" / "candor").symlink_to(Path(candor).resolve())
        (folder / "bin" / "kubectl-candor").symlink_to(Path(candor).resolve())
        (folder / "deploy").symlink_to(ROOT / "deploy")
        sample = (ROOT / "examples" / "redkeycluster.yaml").read_text()
        (folder / "redkey.yaml").write_text(re.sub(r"name: \S+", "name: first", sample))
        path = f"{folder}/bin:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "KUBECONFIG": f"{folder}/kubeconfig", "NO_COLOR": "1"}
        with open(folder / "sandbox.log", "w") as log:
            command = ["candor", "sandbox", "--nodes", "3", "--zones", "a,b,c", "--kubeconfig", f"{folder}/kubeconfig"]
            self.sandbox = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.sandbox.stdout:
            if "Ctrl-C" in line:
                return
        sys.exit("error: the sandbox did not start: " + (folder / "sandbox.log").read_text())

    def types(self, line):
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        return done.returncode, done.stdout

    def end(self):
        self.sandbox.send_signal(signal.SIGTERM)
        self.sandbox.wait()

    def prepares(self, line):
        code, printed = self.types(line)
        if code:
            raise AssertionError(f"cannot prepare: {line}\n{printed}")

    def reads(self, page):
        """Types a page; answers what is not as it says."""
        wrong = []
        promised = {name: list(counts) for (where, name), counts in MOMENT.items() if where == page}
        for kind, name, content in pieces(page):
            if kind == "file":
                (self.folder / name).write_text(content)
                continue
            if any(name.startswith(start) for start in SKIPPED):
                continue
            for (where, start), before in FIRST.items():
                if where == page and name.startswith(start):
                    self.prepares(before)
            code, printed = self.types(name)
            shown = content[: promised[name].pop(0)] + ["…"] if name in promised else content
            lost = missing(shown, printed.splitlines()) if shown else None
            refused = any("is invalid" in line for line in content)
            right = lost is None and (code != 0) == refused
            print(f"  {'ok   ' if right else 'WRONG'} $ {name}", flush=True)
            if not right:
                wrong.append(f"docs/{page}.md: $ {name}\n  not printed: {lost}\n  printed (exit code {code}):\n{printed}")
        return wrong


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(sys.argv[1], Path(folder))
        try:
            for page in sys.argv[2:] or PAGES:
                print(f"docs/{page}.md", flush=True)
                # A page may speak of a cluster of another one; the first that has it counts.
                for kind, name, text in reversed([piece for other in PAGES for piece in pieces(other)]):
                    if kind == "file":
                        (reader.folder / name).write_text(text)
                if page != "quick-start":
                    reader.prepares("candor install --wait 120")
                wrong += reader.reads(page)
                reader.prepares("kubectl delete vkc,rkcl --all --timeout=120s; kubectl delete secret --all; kubectl delete pvc --all")
        finally:
            reader.end()
    for one in wrong:
        print(f"\n{one}")
    sys.exit(f"error: {len(wrong)} commands do not do what their page says" if wrong else 0)


if __name__ == "__main__":
    main()
