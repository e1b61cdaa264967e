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
    pids="$pids $!" # the guardian: it passes the end on to its node
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
runs_tasks() { mesh tasks | grep -q " running .* $1 "; }
status() { # NAME KEY
    mesh status --data "$dir/$1" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$2"
}

echo '-- one founds the mesh, two and three join it'
join one
until_ok members_are 1 alive
seed=$(status one address)
join two "$seed"
join three "$seed"
until_ok members_are 3 alive

echo '-- six tasks; then three is killed while it works'
for task in 1 2 3 4 5 6; do
    mesh submit --id "example-$task" -- sleep 5
done
until_ok runs_tasks three
kill -9 "$(status three pid)" # the node's own process, not its guardian
until_ok members_are 1 dead
mesh members

echo '-- every task ends, each with its attempts on record'
until_ok tasks_are 6 done
mesh tasks
