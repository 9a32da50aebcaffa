# The reconciler and nothing else: one static binary. It needs no DNS, no shell and no file but what
# the kubelet mounts: the apiserver is called at the address in KUBERNETES_SERVICE_HOST, managers and
# engines at the addresses of their pods, and CAs come from Secrets, not from the system.
#
# The build context holds the static binary under the name `stayput-reconciler`, best nothing else:
#
#   RUSTFLAGS="-C target-feature=+crt-static" cargo build --profile dist \
#       --target x86_64-unknown-linux-gnu --no-default-features --features reconciler \
#       --bin stayput-reconciler
#   tar -c -C target/x86_64-unknown-linux-gnu/dist stayput-reconciler \
#       -C "$PWD/docker" reconciler.Dockerfile |
#       docker build -f reconciler.Dockerfile -t stayput/reconciler:0.1.0 -
FROM scratch
COPY stayput-reconciler /stayput-reconciler
# Not root, also where no securityContext says so.
USER 65532:65532
ENTRYPOINT ["/stayput-reconciler"]
