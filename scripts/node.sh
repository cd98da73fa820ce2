# Sourced by the scripts beside it, with $root set: sets $node to a Node 24 or newer, or says what is missing and
# exits 1. The one that npm brought into node_modules goes first, the one on the PATH second.
node=$root/node_modules/.bin/node
[ -x "$node" ] || node=node
version=$("$node" --version 2>/dev/null) || version=
major=${version#v}
major=${major%%.*}
case $major in
  '') found='there is none here' ;;
  *) found="this is $version" ;;
esac
if ! [ "${major:-0}" -ge 24 ] 2>/dev/null; then
  echo "postern needs Node 24 or newer; $found. Install it, or run \`npm ci\`, which brings one along." >&2
  exit 1
fi
# Halves the time that a command takes, and spares each thread of the server the 20 MB of the TypeScript reader; where the
# directory cannot be written, Node does without.
export NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE:-$root/node_modules/.cache/node}"
