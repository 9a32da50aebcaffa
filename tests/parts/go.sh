# shellcheck shell=bash
# Builds a program with Go from NAME.d, whose go.mod and go.sum pin every module. Sourced by the scripts
# of such parts, never run.

# From a module of our own, not by `go install`: that requests the list of all versions, which not
# every module proxy has. GOGC: otherwise half the time is spent in Go's collector.
go_program() { # VERSION PACKAGE GO-OPTION…
    local version=$1 package=$2 binary="$STAYPUT_CACHE/bin/$PART" stamp
    shift 2
    stamp="$version $(cat "$here/$PART.d"/go.* | sha256sum | cut -c1-16)"
    one_at_a_time "$PART"
    if [ -x "$binary" ] && [ "$(cat "$binary.version" 2>/dev/null)" = "$stamp" ]; then
        say "found $version"
        return
    fi
    command -v go >/dev/null || die "no Go: install 1.24 or later by hand (Debian 12's is older)"
    mkdir -p "$STAYPUT_CACHE/bin"
    cd "$here/$PART.d"
    CGO_ENABLED=0 GOFLAGS=-mod=readonly GOGC=400 nice -n 5 \
        go build -buildvcs=false -trimpath "$@" -o "$binary.new" "$package" >&2
    rm -f "$binary.version"
    mv "$binary.new" "$binary"
    printf '%s\n' "$stamp" >"$binary.version"
    say "built $version, $(du -m "$binary" | cut -f1) MB"
}
