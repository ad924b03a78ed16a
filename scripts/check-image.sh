#!/bin/sh
# Checks the Dockerfile without an engine: does its build steps, puts together the root
# that the image has, and runs the server in it as the image's user, with nothing else
# in reach. Checks the systemd unit too. Needs root, for chroot.
set -eu
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
	echo "NOT CHECKED: the image's root takes root to be entered (chroot)." >&2
	exit 1
fi
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

# The build stage, step by step: what it copies is all that its commands find.
mkdir "$work/out" "$work/src"
export VERSION= COMMIT=$(git rev-parse HEAD) DATE=$(git log -1 --format=%cI)
sed -n '/ AS build$/,/^FROM scratch/p' Dockerfile | while read -r step arguments; do
	case $step in
	COPY)
		set -- $arguments
		while [ $# -gt 1 ]; do
			case $1 in
			.) git ls-files -z -- ':!**/testdata/**' ':!.ci' | tar -c --null -T - | tar -x -C "$work/src" ;;
			*) cp -r --parents "$1" "$work/src" ;;
			esac
			shift
		done ;;
	RUN) (cd "$work/src" && sh -ec "$(echo "$arguments" | sed "s,/out/,$work/out/,g")") ;;
	esac
done

root=$work/root
mkdir -p "$root/etc/ssl/certs"
mv "$work/out/koine" "$work/out/data" "$work/out/tmp" "$root"
[ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
chown 65532:65532 "$root/data"
chmod 0755 "$work" "$root"

inside() { chroot --userspec=65532:65532 "$root" /koine "$@"; }
inside version | grep -q "commit $(git rev-parse HEAD)"
port=$((20000 + $$ % 20000))
chroot --userspec=65532:65532 "$root" /koine serve --data /data/store --listen 127.0.0.1:$port --auth keys --admin-key-file /data/admin-key --log-format json 2>"$work/log" &
server=$!
tries=0
until inside health --url http://127.0.0.1:$port >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] && kill -0 "$server" || { cat "$work/log" >&2; exit 1; }
	sleep 0.2
done
[ "$(stat -c '%u %a' "$root/data/admin-key")" = "65532 600" ]
KOINE_KEY=$(cat "$root/data/admin-key") inside query --url http://127.0.0.1:$port '{ me { id roles } }' | grep -q admin
kill -TERM "$server"
wait "$server"
server=
echo "the image's root works as user 65532"

if command -v systemd-analyze >/dev/null; then
	# The program has to be where the unit has it.
	sed "s,/usr/local/bin/koine,$root/koine," examples/systemd/koine.service >"$work/koine.service"
	systemd-analyze verify "$work/koine.service"
	echo "the unit is valid"
else
	echo "NOT CHECKED: systemd-analyze is not here, so the unit was not looked at." >&2
fi
