#!/usr/bin/env bash
# tools/demo, small, on programs already built: demo.sh PROGRAMS OUTPUT. Exit 77: skipped.
set -euo pipefail
programs=$1
output=$2
tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../tools" && pwd)
if [[ ! -f /usr/share/doc/opencv-doc/examples/data/graf1.png ]]; then
  echo "skipped: opencv-doc's photographs are not installed"
  exit 77
fi
cd /  # it works from any folder
"$tools/demo" --programs "$programs" --output "$output" --frames 8 | tee "$output.txt"
grep -q '^== 8 of 8 frames received, 40 matches agree' "$output.txt"
grep -q '^total  *8 ' "$output.txt"
