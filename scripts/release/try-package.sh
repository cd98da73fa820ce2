#!/bin/sh
# Tries the Debian package of `npm run release` in a clean Debian 12 that systemd-nspawn boots: installs it, upgrades it, lets versions that
# are broken on purpose go back (with the schema unchanged and changed), purges it, and installs it again on the data that stays.
# Prints each command and its result. Run it as root after `npm run release`; needs debootstrap and systemd-container.
#
#   scripts/release/try-package.sh [DIRECTORY]      keeps the clean Debian there for the next run
set -e
root=$(dirname "$(dirname "$(dirname "$(readlink -f -- "$0")")")")
place=${1:-$(mktemp -d)}
mirror=http://deb.debian.org/debian
mkdir -p "$place"
[ -d "$place/clean" ] || debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,iproute2 bookworm "$place/clean" "$mirror"
rm -rf "$place/machine"
cp -a "$place/clean" "$place/machine"
mkdir "$place/machine/releases"

# variant VERSION SCRIPT: the same release with another version, after SCRIPT has run in the program's directory.
variant() {
  files=$place/variant
  rm -rf "$files"
  dpkg-deb --raw-extract "$root"/dist/postern_*.deb "$files"
  sed -i "s/^Version: .*/Version: $1/" "$files/DEBIAN/control"
  sed -i "s/\"version\": \".*\"/\"version\": \"$1\"/" "$files/opt/postern/package.json" "$files/opt/postern/release.json"
  (cd "$files/opt/postern" && sh -c "$2")
  dpkg-deb --root-owner-group -Zgzip -z1 --build "$files" "$place/machine/releases/$1.deb"
}
ends="sed -i \"s/^async function run(): Promise<void> {/&\n  throw new Error('broken on purpose');/\" src/main.ts"
step="sed -i \"s/^};/  '999-trial': 'alter table suppressions add column trial text',\n};/\" src/platform/database/schema/steps.ts
  sed -i 's/\"schema\": \".*\"/\"schema\": \"999-trial\"/' release.json"
variant 90.0.0 true
variant 90.1.0 true
variant 90.2.0 "$ends"
variant 90.3.0 "$ends; $step"
variant 90.4.0 "$step"
(cd "$place/machine/releases" && sha256sum ./*.deb | sed 's#\./##' >SHA256SUMS)

cat >"$place/machine/root/try" <<'END'
set -x
dpkg -i /releases/90.0.0.deb
echo POSTERN_HOSTNAME=mail.example.org >/etc/postern/postern.env
chmod 600 /etc/postern/postern.env
systemctl enable --now postern
postern org create --name Acme
systemctl reload postern
systemd-analyze security postern --no-pager | tail -n 1
for version in 90.0.0 90.1.0 90.2.0 90.3.0 90.4.0; do
  postern upgrade /releases/$version.deb
  echo "exit $?"
  postern --version
  systemctl is-active postern
  postern org list
done
ls -l /var/lib/postern
dpkg --purge postern
ls -l /etc/postern /var/lib/postern
dpkg -i /releases/90.4.0.deb
systemctl enable --now postern
postern org list
END
# nspawn mounts its propagation directory there, also where no systemd runs.
mkdir -p /run/systemd/nspawn/propagate/machine
systemd-nspawn --directory="$place/machine" --machine=machine --boot --register=no --keep-unit --private-network >"$place/boot.log" 2>&1 &
spawn=$!
trap 'kill "$spawn"' EXIT
sleep 10
first=$(pgrep -P "$spawn" | head -n 1)
nsenter --target "$first" --all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh /root/try 2>&1
