#!/usr/bin/env bash
# Starts or stops a private Docker engine of its own: no bridge, no iptables, nothing shared with another engine.
#   scripts/engine.sh start DIR [GROUP]   prints the socket's path on its last line
#   scripts/engine.sh podman DIR          the same with Podman's root service; prints the socket's path
#   scripts/engine.sh stop DIR
# Where gVisor is installed (runsc), the engine knows it as the runtime "runsc".
# DIR must be short: containerd's socket lives below it, and a Unix socket path has at most 107 bytes.
set -euo pipefail

usage() { sed -n '2,7p' "$0" | cut -c3- >&2; exit 2; }
[ $# -ge 2 ] || usage
verb=$1 dir=$2 group=${3:-root}

case "$dir" in
  /*) ;;
  *) echo "engine: DIR must be absolute: $dir" >&2; exit 2 ;;
esac
if [ ${#dir} -gt 60 ]; then
  echo "engine: DIR has ${#dir} characters, 60 at most: containerd's socket path would not fit: $dir" >&2
  exit 2
fi

answers() { curl -fsS --max-time 2 --unix-socket "$dir/${1:-docker}.sock" http://engine/_ping >/dev/null 2>&1; }

# A sandbox of gVisor has no network of its own making, and may open Unix sockets that are mounted into it. ptrace is
# the platform that every machine has.
config() {
  local runsc; runsc=$(command -v runsc) || { echo '{}'; return; }
  local uds=--host-uds=open
  # Older releases have another word for it.
  case "$("$runsc" flags 2>&1)" in *' -host-uds '*) ;; *) uds=--fsgofer-host-uds ;; esac
  printf '{"runtimes":{"runsc":{"path":"%s","runtimeArgs":["--network=none","--platform=ptrace","%s"]}}}\n' "$runsc" "$uds"
}

start() {
  if answers; then echo "$dir/docker.sock"; return; fi
  command -v dockerd >/dev/null || { echo 'engine: dockerd is missing: apt-get install -y --no-install-recommends docker.io' >&2; exit 1; }
  mkdir -p "$dir"
  chmod 711 "$dir"
  config >"$dir/daemon.json"
  setsid dockerd --config-file "$dir/daemon.json" -H "unix://$dir/docker.sock" --data-root "$dir/data" --exec-root "$dir/exec" \
    --pidfile "$dir/docker.pid" --bridge none --iptables=false --ip-forward=false \
    --shutdown-timeout 3 --group "$group" >"$dir/dockerd.log" 2>&1 </dev/null &
  ready docker "$dir/dockerd.log"
}

ready() {
  for _ in $(seq 1 150); do
    answers "$1" && { echo "$dir/$1.sock"; return; }
    sleep 0.2
  done
  echo "engine: no answer on $dir/$1.sock after 30 s; the end of its log:" >&2
  tail -n 20 "$2" >&2
  exit 1
}

# runc and cgroupfs work where there is no systemd, and with cgroups of the first kind too.
start_podman() {
  if answers podman; then echo "$dir/podman.sock"; return; fi
  command -v podman >/dev/null || { echo 'engine: podman is missing: apt-get install -y --no-install-recommends podman runc catatonit' >&2; exit 1; }
  mkdir -p "$dir"
  cd "$dir" # its monitor writes a file named "oom" where it stands
  setsid podman --root "$dir/libpod" --runroot "$dir/libpod-run" --runtime runc --cgroup-manager cgroupfs --events-backend file \
    system service --time=0 "unix://$dir/podman.sock" >"$dir/podman.log" 2>&1 </dev/null &
  echo $! >"$dir/podman.pid"
  ready podman "$dir/podman.log"
}

end_pid() {
  [ -f "$1" ] || return 0
  local pid; pid=$(cat "$1")
  kill -TERM "$pid" 2>/dev/null || return 0
  for _ in $(seq 1 50); do kill -0 "$pid" 2>/dev/null || return 0; sleep 0.2; done
  kill -KILL "$pid" 2>/dev/null || true
}

stop() {
  end_pid "$dir/docker.pid"
  end_pid "$dir/exec/containerd/containerd.pid"
  end_pid "$dir/podman.pid"
  umount "$dir/libpod/overlay" 2>/dev/null || true
  # The engine bind-mounts its data root on itself and leaves the mount behind.
  umount "$dir/data" 2>/dev/null || true
}

case "$verb" in
  start) start ;;
  podman) start_podman ;;
  stop) stop ;;
  *) usage ;;
esac
