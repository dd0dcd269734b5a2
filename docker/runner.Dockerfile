# The runner's image: gantry-runner and gantry-supervisor on Debian, whose shell and programs its commands use, and the
# terminal `gantry`. Build one of your own on it for other programs.
#
#   docker build --file docker/runner.Dockerfile --tag gantry-runner .
#   docker run --init --interactive --volume gantry-runner:/var/lib/gantry gantry-runner \
#       enrol --server https://server:7443 - < token
#   docker run --init --read-only --tmpfs /tmp --volume gantry-runner:/var/lib/gantry --volume "$PWD:/workspace" gantry-runner
#
# That compiles everything; runner.prebuilt.Dockerfile compiles nothing.
#
# --init reaps what commands leave behind. `gantry-runner status` ends with 0 where the daemon is connected, for a
# HEALTHCHECK of your own: the image has none, because a runner without a link goes on with its commands.

ARG BUILD_IMAGE=rust:1.95-bookworm
# Builds the web console, which the server has in it. --build-arg GANTRY_WITHOUT_CONSOLE=1 leaves it out; this may then
# be any Debian.
ARG NODE_IMAGE=node:24-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${NODE_IMAGE} AS console
WORKDIR /src
COPY deploy/console deploy/
COPY server/console server/console
ARG GANTRY_WITHOUT_CONSOLE=""
RUN deploy/console

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
COPY --from=console /src/server/console/dist server/console/dist
ARG GANTRY_WITHOUT_CONSOLE=""
ARG GANTRY_COMMIT=""
ARG GANTRY_COMMIT_DATE=""
# Its own step, identical in both files, so that a builder compiles once.
RUN OUT=/dist deploy/dist
# hadolint ignore=DL3059
RUN docker/lay-out runner /dist

FROM ${BASE_IMAGE}
ENV GANTRY_HOME=/var/lib/gantry \
    HOME=/workspace
WORKDIR /workspace
USER 65532:65532
# SIGTERM would leave commands to the next daemon, and none outlives its container.
STOPSIGNAL SIGINT
ENTRYPOINT ["gantry-runner"]
CMD ["run"]
COPY --from=build /image /
VOLUME ["/var/lib/gantry", "/workspace"]
