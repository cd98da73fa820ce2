# Sourced by the scripts in this directory, with $root set. Sets $node to Node 24 or newer, or says what is missing and exits
# 1. It prefers the Node that npm installed in node_modules over the one on the PATH.
node=$root/node_modules/.bin/node
[ -x "$node" ] || node=node
version=$("$node" --version 2>/dev/null) || version=
major=${version#v}
major=${major%%.*}
case $major in
  '') found='none was found' ;;
  *) found="this is $version" ;;
esac
if ! [ "${major:-0}" -ge 24 ] 2>/dev/null; then
  echo "postern needs Node 24 or newer; $found. Install it, or run \`npm ci\`, which brings one along." >&2
  exit 1
fi
# The compile cache halves the time of a command, and saves each thread of the server the 20 MB of the TypeScript parser. If
# the directory is not writable, Node works without the cache.
export NODE_COMPILE_CACHE="${NODE_COMPILE_CACHE:-$root/node_modules/.cache/node}"
