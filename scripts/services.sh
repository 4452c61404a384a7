#!/bin/sh
# Makes sure that the services that the tests talk to are installed: Debian's packages, installed
# here where we are root on Debian, and otherwise named.
set -eu

# command:package
needed="
chromium:chromium
firefox-esr:firefox-esr
mpirun:openmpi-bin
docker:docker.io
dockerd:docker.io
docker-registry:docker-registry
htpasswd:apache2-utils
skopeo:skopeo
buildah:buildah
mmdebstrap:mmdebstrap
bwrap:bubblewrap
cmake:cmake
g++:g++
curl:curl
ip:iproute2
sshd:openssh-server
slurmctld:slurmctld
slurmd:slurmd
slurmrestd:slurmrestd
slurmdbd:slurmdbd
mariadbd:mariadb-server-core
sbatch:slurm-client
"

missing=""
for pair in $needed; do
    PATH="$PATH:/usr/sbin" command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
# mpi4py loads it by its name for development
ls /usr/lib/*/libmpi.so >/dev/null 2>&1 || missing="$missing libopenmpi-dev"
# no program of these is called
ls /usr/lib/*/slurm-wlm/cred_none.so >/dev/null 2>&1 || missing="$missing slurm-wlm-basic-plugins"
ls /usr/lib/*/slurm-wlm/auth_jwt.so >/dev/null 2>&1 || missing="$missing slurm-wlm-jwt-plugin"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
    echo "the tests need packages that are not installed:$missing" >&2
    echo "on Debian: sudo apt-get install$missing" >&2
    exit 1
fi
