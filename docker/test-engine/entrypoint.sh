#!/bin/bash
# Does what the official entrypoints do: starts as root and drops to uid 1000 (Elasticsearch
# up to 7), leaves a long-lived helper disowned in the background (OpenSearch's performance
# analyzer), lets settings in from the environment, and at last execs the engine.
#
#   entrypoint.sh eswrapper|opensearch [ENGINE OPTIONS]   any other first word is run as a command
#
# HTTP_PORT and TRANSPORT_PORT move the ports (containers share the host's network); HEAP is
# the JVM's; CONFIG_DIR may hold files that go over the engine's own (engine.yml is appended to
# its yml); HELPER=no leaves the helper out.
set -euo pipefail
umask 0002

if [ "$(id -u)" = 0 ]; then
    # Like `chroot --userspec=1000`, and it stays the same process.
    exec setpriv --reuid=1000 --regid=1000 --clear-groups "$0" "$@"
fi

case ${1:-} in
eswrapper) engine=elasticsearch prefix=ES ;;
opensearch) engine=opensearch prefix=OPENSEARCH ;;
*) exec "$@" ;;
esac
shift

# The engine's folder is read-only: config, data and logs live in /node.
config=/node/config
mkdir -p "$config/jvm.options.d" /node/data /node/logs /node/tmp
cp -r --no-preserve=mode /engine/config/. "$config/"
sed -i -e '/file=logs\/gc\.log/d' -e '/-Xloggc:logs/d' -e 's#=logs/#=/node/logs/#' \
    -e 's#HeapDumpPath=data#HeapDumpPath=/node/data#' "$config/jvm.options"
cat >>"$config/$engine.yml" <<END
cluster.name: test
path.data: /node/data
path.logs: /node/logs
http.port: ${HTTP_PORT:-9200}
transport.port: ${TRANSPORT_PORT:-9300}
discovery.type: single-node
cluster.routing.allocation.disk.threshold_enabled: false
END
[ "$engine" = opensearch ] || echo 'xpack.security.enabled: false' >>"$config/$engine.yml"
if [ -n "${CONFIG_DIR:-}" ]; then
    find -L "$CONFIG_DIR" -maxdepth 1 -type f ! -name engine.yml -exec cp --no-preserve=mode {} "$config/" \;
    [ ! -f "$CONFIG_DIR/engine.yml" ] || cat "$CONFIG_DIR/engine.yml" >>"$config/$engine.yml"
fi

if [ "${HELPER:-yes}" = yes ]; then
    (exec -a stayput-test-helper sleep infinity) &
    disown
fi

export "${prefix}_JAVA_HOME=$JAVA_HOME" "${prefix}_PATH_CONF=$config"
export "${prefix}_JAVA_OPTS=-Xms${HEAP:-256m} -Xmx${HEAP:-256m} -XX:TieredStopAtLevel=1"
# The manager gives the engine a temp dir of its own; without it, this one.
tmp=${prefix}_TMPDIR
export "$tmp=${!tmp:-/node/tmp}"

exec "/engine/bin/$engine" "$@"
