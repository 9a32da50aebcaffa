# shellcheck shell=bash
# Installs one real engine: the server that its vendor publishes for integration tests, downloaded
# by Maven, unpacked beside its final path and then renamed, so that an interrupted install is never
# taken for a complete one. Sourced after common.sh.

from_maven() { # LOG CHECKSUMS GOAL OPTIONS…
    local log=$1 checksums=$2 goal=$3
    shift 3
    mvn -q -B "$checksums" -l "$log" "dependency:$goal" "$@" || {
        tail -n 20 "$log" >&2
        die "maven: dependency:$goal failed"
    }
}

# SHA256 is for a file whose published checksum cannot be had; without it that one is checked.
install_engine() { # NAME GROUP:ARTIFACT VERSION [SHA256]
    local name=$1 coordinates=$2 version=$3 sum=${4:-}
    # -C: a file that does not match its published checksum is an error; -c: a warning.
    local checksums=-C
    [ -z "$sum" ] || checksums=-c
    local home="$STAYPUT_CACHE/engines/$name-$version"
    if [ -d "$home" ]; then
        say "found $name $version"
        return
    fi
    one_at_a_time "$name"
    if [ -d "$home" ]; then
        say "found $name $version, another run has just installed it"
        return
    fi
    need_packages unzip >/dev/null
    command -v mvn >/dev/null || need_packages maven >/dev/null
    jdk17_home >/dev/null || need_packages openjdk-17-jre-headless >/dev/null

    local unpacked
    work_directory "$STAYPUT_CACHE/engines" "$name"
    from_maven "$work/log" "$checksums" get -Dtransitive=false -Dartifact="$coordinates:$version:zip"
    from_maven "$work/log" "$checksums" copy -Dartifact="$coordinates:$version:zip" \
        -DoutputDirectory="$work" -Dmdep.overWriteReleases=true
    [ -z "$sum" ] || sha256sum --quiet --check <<<"$sum  $(echo "$work"/*.zip)" >&2 ||
        die "$coordinates:$version is not what it was"
    unzip -q "$work"/*.zip -d "$work/unpacked"
    unpacked=$(echo "$work"/unpacked/*)
    [ -d "$unpacked/lib" ] || die "$coordinates:$version does not hold one server"
    chmod +x "$unpacked"/bin/*
    chmod -R go+rX "$unpacked"
    mv -T "$unpacked" "$home"
    say "installed $name $version, $(du -sm "$home" | cut -f1) MB"
}
