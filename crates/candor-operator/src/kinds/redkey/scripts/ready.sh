#!/bin/sh
# Whether clients should be sent here. A new password reaches a running server at once and the files of this pod up to a
# minute later: until then the server rejects this script, and that it answers is all there is to know.
. /scripts/lib.sh
itself=yes
within="timeout 4"
case $(cli PING 2>&1) in
*NOAUTH* | *WRONGPASS* | *"invalid password"* | *"without any password configured"*) exit 0 ;;
esac
. /scripts/joined.sh
