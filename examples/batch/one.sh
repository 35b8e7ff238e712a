#!/bin/bash
# One run: the prompt of a file, in a folder of its own. The result is `result.json` there, and so is everything else it leaves.
# Usage: one.sh TASK [RESULTS]. The exit status is that of the run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
task=$(realpath -e -- "$1") || exit 2
folder=${2:-results}/$(basename "${task%.*}")

mkdir -p -- "$folder" && cd -- "$folder" && rm -f result.json || exit 2
# Nobody is there to be asked: what the list guards is refused.
"${NANO_CORDIS:-nano-cordis}" --config "${NANO_CONFIG:-$here/cordis.yml}" --json - \
    < "$task" > result.json.new 2> errors.txt
status=$?
# A run that was killed in the middle of its result has none.
if [ "$(tail -c 1 result.json.new | wc -l)" = 1 ]; then
    mv -- result.json.new result.json
fi
exit "$status"
