#!/bin/bash
# monitoring.sh: the alerts' own tests, by promtool: one on PATH, else Debian's.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
. hack/apt.sh
promtool=$(command -v promtool || echo "$cache/bin/promtool")
fetch() {
  local suite
  suite=$(debian_release)
  apt_update "$suite" && apt_unpack "$suite" "$cache/prometheus" prometheus &&
    mkdir -p "$cache/bin" && mv "$cache/prometheus/usr/bin/promtool" "$cache/bin/promtool" && rm -rf "$cache/prometheus"
}
if [ ! -x "$promtool" ]; then
  lock promtool
  step "promtool of Debian" fetch || die "the alerts cannot be tested: there is no promtool; install prometheus"
fi
"$promtool" check rules deploy/monitoring/alerts.yaml
"$promtool" test rules deploy/monitoring/alerts.test.yaml
