# The manager and nothing else: one static binary. Other images copy it from here, and an
# init container of this image puts it into a shared volume: `stayput install DIR`.
#
# The build context holds the static binary under the name `stayput`, best nothing else:
#
#   RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile dist \
#       --target x86_64-unknown-linux-gnu --no-default-features --features manager --bin stayput
#   tar -c -C target/x86_64-unknown-linux-gnu/dist stayput -C "$PWD/docker" manager.Dockerfile |
#       docker build -f manager.Dockerfile -t stayput/manager:0.1.0 -
FROM scratch
# No USER: what root has installed, `stayput upgrade` accepts whatever user the engine has. Where pods may
# not run as root, the manifest gives the init container a user.
COPY stayput /stayput
ENTRYPOINT ["/stayput"]
