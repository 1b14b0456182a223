#!/bin/bash
# dependencies.sh: licences, bans, sources and documentation of the dependencies, by the rules of deny.toml.
# It needs cargo alone; where cargo-deny is installed that judges too, with advisories if their database is in reach.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
bad=0
complain() { say "$*"; bad=$((bad + 1)); }

list() { awk -v from="$1" '$0 ~ "^" from " = \\[" { on = 1; next } /^\]/ { on = 0 } on' deny.toml; }

declare -A allowed
while read -r licence; do allowed[$licence]=1; done < <(list allow | sed -n 's/^ *"\(.*\)",\{0,1\}$/\1/p')
[ ${#allowed[@]} -gt 0 ] || die "deny.toml has no allow list under [licenses]"

# permitted EXPRESSION: an SPDX expression as a sum of ones and zeros, which the shell can judge.
permitted() {
  local words=${1//\// OR } sum='' licence='' word
  words=${words//(/ ( }
  words=${words//)/ ) }
  for word in $words END; do
    case $word in
      OR | AND | '(' | ')' | END)
        [ -z "$licence" ] || sum+=${allowed[$licence]:-0}
        licence=
        case $word in OR) sum+='||' ;; AND) sum+='&&' ;; END) ;; *) sum+=$word ;; esac
        ;;
      *) licence+=${licence:+ }$word ;;
    esac
  done
  [ -n "$sum" ] && (((sum)))
}

tree=$(cargo tree --workspace --locked --all-features --edges normal,build,dev --prefix none --no-dedupe --format '{p}|{l}' |
  sed 's/ (proc-macro)//; s/ (\*)//' | sort -u | sed '/^$/d')
while IFS='|' read -r package licence; do
  permitted "$licence" || complain "$package has the licence '$licence', which deny.toml does not allow"
done <<<"$tree"

while read -r banned; do
  if grep -q "^$banned v" <<<"$tree"; then
    complain "$banned is banned by deny.toml; it comes in by: $(cargo tree --workspace --locked --all-features --invert "$banned" --depth 1 --prefix none 2>/dev/null | sed -n 2p)"
  fi
done < <(list deny | sed -n 's/.*crate = "\([^"]*\)".*/\1/p')

if grep '^source = ' Cargo.lock | grep -qv 'registry+'; then
  complain "Cargo.lock has a source that is no registry: $(grep '^source = ' Cargo.lock | grep -v 'registry+' | sort -u | head -n 3)"
fi

while read -r name; do
  grep -q "^| \`$name\`" docs/dependencies.md || complain "docs/dependencies.md has no line for $name: why this one, what it replaces"
done < <(awk '/^\[workspace.dependencies\]/ { on = 1; next } /^\[/ { on = 0 } on && /^[a-z]/ && !/path = / { print $1 }' Cargo.toml)

if command -v cargo-deny >/dev/null; then
  cargo deny --offline check licenses bans sources || bad=$((bad + 1))
  cargo deny check advisories || say "advisories: not judged, or found some; see above"
else
  say "advisories: not judged, cargo-deny is not installed"
fi
say "$(wc -l <<<"$tree") packages judged, $bad complaints"
[ "$bad" -eq 0 ]
