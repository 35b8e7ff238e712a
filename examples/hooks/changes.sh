#!/bin/bash
# Stop: a turn ends when CHANGES is there. Who was told once and still has not written it is not told again.
case $(cat) in
    *'"stop_hook_active":true'*) exit 0 ;;
esac
[ -e CHANGES ] && exit 0
echo "write what you did to CHANGES" >&2
exit 2
