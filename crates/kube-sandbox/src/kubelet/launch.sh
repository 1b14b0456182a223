# First process of a container. Its standard input is the kubelet's ear: one line "started PID", or what went wrong.
# Set: ROOT FSTAB NAME WORKDIR READONLY KEEP SEARCH (the container's PATH) PROGRAM, and the tools' own paths.
exec 9<&0 0</dev/null
say() { printf '%s\n' "$*" >&9; }
read -r pid rest </proc/self/stat
"$HOSTNAME_TOOL" "$NAME" 2>/dev/null
if ! said=$("$MOUNT" --all --fstab "$FSTAB" 2>&1); then say "mount: $said"; exit 125; fi
cd "$ROOT" || { say "cannot enter the container's root"; exit 125; }
if ! said=$("$PIVOT" . . 2>&1); then say "pivot_root: $said"; exit 125; fi
"$UMOUNT" -l . 2>/dev/null
cd /
if [ -n "$READONLY" ]; then
    said=$("$MOUNT" -o "remount,bind,ro$KEEP" / 2>&1) || { say "mount: $said"; exit 125; }
fi
cd "$WORKDIR" || { say "chdir: $WORKDIR"; exit 126; }
PATH=$SEARCH
if ! command -v -- "$PROGRAM" >/dev/null 2>&1; then
    [ -e "$PROGRAM" ] && { say "denied"; exit 126; }
    say "missing"
    exit 127
fi
say "started $pid"
# The kubelet takes hold of the process before the program can end.
read -r held <&9
exec 9<&-
exec "$SETPRIV" --pdeathsig KILL "$@"
