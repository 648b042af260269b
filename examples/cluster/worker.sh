#!/bin/sh
# Runs a command as one of several workers: sets TF_CONFIG, as TensorFlow reads it.
#
#     worker.sh INDEX "HOST:PORT HOST:PORT ..." COMMAND ...
#
# The first host is that of the chief, which writes the run directory.
set -eu
index=$1
workers=$(printf '"%s", ' $2)
shift 2
export TF_CONFIG="{\"cluster\": {\"worker\": [${workers%, }]}, \"task\": {\"type\": \"worker\", \"index\": $index}}"
exec "$@"
