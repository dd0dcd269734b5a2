# The runner's image: gantry-runner and gantry-supervisor on Debian, whose shell and programs its commands use. Build
# one of your own on it for other programs: its name is the first argument of FROM there.
#
#   docker build --file docker/runner.Dockerfile --tag gantry-runner .
#   docker run --init --interactive --volume gantry-runner:/var/lib/gantry gantry-runner \
#       enrol --server https://server:7443 - < token
#   docker run --init --read-only --tmpfs /tmp --volume gantry-runner:/var/lib/gantry --volume "$PWD:/workspace" gantry-runner
#
# --init reaps what commands leave behind. `gantry-runner status` ends with 0 where the daemon is connected, for a
# HEALTHCHECK of your own: the image has none, because a runner without a link goes on with its commands.

ARG BUILD_IMAGE=rust:1.95-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package runner --bin gantry-runner \
    && cargo build --release --locked --package runner-supervisor --bin gantry-supervisor \
    && cargo build --release --locked --package runner-host --bin gantry-files
RUN mkdir -p /image/usr/local/bin /image/etc/ssl/certs /image/usr/share/doc/gantry /image/var/lib/gantry /image/workspace \
    && cp target/release/gantry-runner target/release/gantry-supervisor target/release/gantry-files /image/usr/local/bin/ \
    && cp --dereference /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
    && cp LICENSE /image/usr/share/doc/gantry/ \
    && cp --dereference /usr/share/doc/ca-certificates/copyright /image/usr/share/doc/gantry/ca-certificates.copyright \
    && chmod 0700 /image/var/lib/gantry \
    && chown 65532:65532 /image/var/lib/gantry /image/workspace

FROM ${BASE_IMAGE}
COPY --from=build /image /
ENV GANTRY_HOME=/var/lib/gantry \
    HOME=/workspace
WORKDIR /workspace
VOLUME ["/var/lib/gantry", "/workspace"]
USER 65532:65532
# SIGTERM would leave commands to the next daemon, and none outlives its container.
STOPSIGNAL SIGINT
ENTRYPOINT ["gantry-runner"]
CMD ["run"]
