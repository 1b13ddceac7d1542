#!/usr/bin/env bash
# Makes the captures of this folder again: one per fault, mover, layout and host pool. Needs an NVIDIA GPU and nsys.
#   sample_traces/capture.sh RAW            captures into RAW: NAME.nsys-rep, NAME.sqlite, NAME.json
#   sample_traces/capture.sh RAW NAME ...   only these
# Slim one afterwards: python -m traceview slim RAW/NAME.sqlite NAME.sqlite --forwards FROM:TO --verify
set -euo pipefail
raw=${1:?usage: capture.sh RAW [NAME ...]}
shift
only=" $* "

c() {
  local name=$1
  shift
  if [ "$only" != "  " ] && [[ "$only" != *" $name "* ]]; then return; fi
  if [ -n "${UNTIL:-}" ] && [ "$(date +%s)" -ge "$UNTIL" ]; then echo "$name: no time left"; return; fi
  timeout 120 python3 -m instrument capture --force --out "$raw" --name "$name" "$@" >"$raw/$name.log" 2>&1 || {
    echo "$name failed: $(tail -n 1 "$raw/$name.log")"
  }
}

mkdir -p "$raw"
file=${STORAGE_FILE:-$raw/storage.bin}
short="--compute-ratio 1.2"
many="--compute-ratio 1.2 --layers 24 --mib-per-layer 24"
big="--compute-ratio 1.2 --layers 6 --mib-per-layer 256"

# shellcheck disable=SC2086  # the option lists are meant to be split
{
  c healthy -- $short
  c item -- $short --fault item
  c item_24_layers -- $many --fault item
  c pageable -- $short --pool pageable
  c registered -- $short --pool registered --huge-pages transparent --numa local
  c contiguous -- $short --layers 4 --mib-per-layer 32 --forwards 2 --warmup 1
  c fragmented -- $short --layers 4 --mib-per-layer 32 --piece-kib 64 --forwards 2 --warmup 1
  c same_stream -- $short --fault same-stream
  c small_copy_first -- $short --fault small-copy-first
  c late_submission -- $short --fault late-submission
  c stream_sync -- $many --fault stream-sync
  c event_sync -- $many --fault event-sync
  c device_sync -- $short --fault device-sync
  c alloc_free -- $short --fault alloc-free
  c thread -- $big --fault thread
  c graph -- $short --fault graph
  c graph_nodes --graph-nodes -- $short --fault graph
  c no_names -- $short --fault no-names
  c batch -- $big --mover batch --layout page-first-direct --token-bytes 65536
  c sm -- $big --mover sm --layout layer-first
  c layer_first -- $short --layout layer-first --layers 4 --mib-per-layer 64
  c page_first -- $short --layout page-first --layers 4 --mib-per-layer 4 --forwards 2 --warmup 1
  c page_first_direct -- $short --layout page-first-direct --layers 4 --mib-per-layer 64 --token-bytes 16384
  c load_bound -- --compute-ratio 0.5
  c writeback -- --compute-ratio 1.5 --writeback
  c storage -- $short --layers 4 --mib-per-layer 16 --storage "$file"
  c storage_direct -- $short --layers 4 --mib-per-layer 16 --storage "$file" --storage-io direct
  c item_stacks --cuda-stacks --python-stacks -- $short --layers 12 --fault item --forwards 2 --warmup 1
  c healthy_40 -- $short --forwards 40
  c small_copy_first_40 -- $short --fault small-copy-first --forwards 40
  c metrics --gpu-metrics all --gpu-metrics-hz 10000 -- $short
  if python3 -c 'import sys, torch; sys.exit(torch.cuda.device_count() < 2)'; then
    c inbound_peer -- $short --inbound-peer
  fi
}
