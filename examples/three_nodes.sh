#!/bin/sh
# Three nodes on this host, six tasks, one node killed, and the work goes on.
# Needs `mesh` on the PATH. Ends what it started and removes its directory, also after Ctrl-C.
set -eu
dir=$(mktemp -d)
pids=
trap 'kill $pids 2>/dev/null || :; wait; rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
export MESH_DATA="$dir/one" # the node that the commands below talk to

join() { # NAME [SEED]
    name=$1
    shift
    mesh join --headless --profile local --name "$name" --data "$dir/$name" \
        --bind 127.0.0.1:0 --slots 2 "$@" </dev/null 2>"$dir/$name.log" &
    pid=$!
    pids="$pids $pid"
}

until_ok() { # COMMAND…: try for 20 seconds
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "this did not come true: $*" >&2; exit 1; }
        sleep 0.1
    done
}

members_are() { [ "$(mesh members | grep -c " $2 ")" = "$1" ]; }
tasks_are() { [ "$(mesh tasks | grep -c " $2 ")" = "$1" ]; }
address() { mesh status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["address"])'; }

echo '-- one founds the mesh, two and three join it'
join one
until_ok members_are 1 alive
seed=$(address)
join two "$seed"
join three "$seed"
until_ok members_are 3 alive

echo '-- six tasks; then three is killed while it works'
for task in 1 2 3 4 5 6; do
    mesh submit --id "example-$task" -- sleep 1
done
kill -9 "$pid"
until_ok members_are 1 dead
mesh members

echo '-- every task ends, each with its attempts on record'
until_ok tasks_are 6 done
mesh tasks
