# shellcheck shell=bash
# Shared by the scripts of all parts: where parts are installed, how Debian packages are installed,
# and how a complete install is distinguished from an interrupted one. Sourced, never run. See
# README.md.

set -euo pipefail
umask 022

STAYPUT_CACHE=${STAYPUT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stayput}
mkdir -p "$STAYPUT_CACHE"
export STAYPUT_CACHE

PART=${0##*/}

# Prints the one line of a part: what it did or found.
say() { printf '%s: %s\n' "$PART" "$*"; }
die() {
    printf '%s: %s\n' "$PART" "$*" >&2
    exit 1
}

# Two runs must not install the same part at the same time: the second waits, then finds it.
# The lock ends with the script; long-lived children must close it (9>&-).
one_at_a_time() {
    exec 9>"$STAYPUT_CACHE/.$1.lock"
    flock -w 1800 9 || die "another run has held the lock of $1 for half an hour"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Sets $work: a new directory beside what is to be installed, so that a rename completes it. It is removed
# at the end, and so is what a run left that was killed. Only with the lock of this part.
work_directory() { # FOLDER NAME
    mkdir -p "$1"
    rm -rf --one-file-system "$1/.$2-"??????
    work=$(mktemp -d "$1/.$2-XXXXXX")
    trap 'rm -rf --one-file-system "$work"' EXIT
}

missing_packages() {
    local package
    for package; do
        # shellcheck disable=SC2016 # ${Status} is dpkg's
        [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = 'install ok installed' ] ||
            printf '%s\n' "$package"
    done
}

# Installs the Debian packages that are missing, in one call; prints their names.
need_packages() {
    command -v dpkg-query >/dev/null || die "not a Debian system: install $* by hand"
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
        die "cannot install ${missing[*]}: neither root nor sudo without a password"
    fi
    local log
    log=$(mktemp)
    if ! {
        as_root apt-get -q -o DPkg::Lock::Timeout=600 update &&
            as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
                -o DPkg::Lock::Timeout=600 install "${missing[@]}"
    } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "apt-get could not install ${missing[*]}"
    fi
    rm -f "$log"
    printf '%s ' "${missing[@]}"
}

# Unpacks Debian packages into the cache, as NAME: for programs whose packages would start a
# service, or remove another vendor's programs. Returns 1 if it was there.
debian_files() { # NAME PACKAGE…
    local name=$1 root="$STAYPUT_CACHE/debian/$1"
    shift
    [ ! -d "$root" ] || return 1
    command -v apt-get >/dev/null || die "not a Debian system: $* cannot be had"
    work_directory "${root%/*}" "$name"
    # If there are no lists of packages, or old ones, they are updated and the download is repeated.
    if ! { cd "$work" && apt-get -q download "$@"; } >"$work/log" 2>&1; then
        as_root apt-get -q -o DPkg::Lock::Timeout=600 update >>"$work/log" 2>&1 || true
        apt-get -q download "$@" >>"$work/log" 2>&1 || {
            tail -n 20 "$work/log" >&2
            die "apt-get could not download $*"
        }
    fi
    local package
    for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/root"; done
    cd /
    mv -T "$work/root" "$root"
}

# Prints the home of a JDK 17, with which the engines of the tests run.
jdk17_home() {
    local home
    for home in "${JAVA_HOME:-}" /usr/lib/jvm/*; do
        if [ -x "$home/bin/java" ] && grep -qs '^JAVA_VERSION="17\.' "$home/release"; then
            readlink -f "$home"
            return
        fi
    done
    return 1
}
