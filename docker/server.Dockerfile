# The server's image: gantry-server, the runner's programs that it hands out, the libraries that it loads, and
# certificate authorities. No shell.
#
#   docker build --file docker/server.Dockerfile --tag gantry-server .
#   docker run --read-only --publish 127.0.0.1:7000:7000 --volume gantry:/var/lib/gantry/server gantry-server \
#       run --listen 0.0.0.0:7000 --behind-proxy
#
# That compiles everything; server.prebuilt.Dockerfile compiles nothing.

ARG BUILD_IMAGE=rust:1.95-bookworm
# Builds the web console, which the server has in it. --build-arg GANTRY_WITHOUT_CONSOLE=1 leaves it out; this may then
# be any Debian.
ARG NODE_IMAGE=node:24-bookworm-slim

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
# For --version: docker build --build-arg GANTRY_COMMIT="$(git rev-parse --short=12 HEAD)" \
#     --build-arg GANTRY_COMMIT_DATE="$(git log -1 --format=%cs)" …
ARG GANTRY_COMMIT=""
ARG GANTRY_COMMIT_DATE=""
# Its own step, identical in both files, so that a builder compiles once.
RUN OUT=/dist deploy/dist
# hadolint ignore=DL3059
RUN docker/lay-out server /dist

FROM scratch
ENV GANTRY_HOME=/var/lib/gantry \
    PATH=/usr/bin
EXPOSE 7000
USER 65532:65532
# Kubernetes asks /livez and /readyz itself.
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s CMD ["gantry-server", "health"]
ENTRYPOINT ["gantry-server"]
CMD ["run"]
COPY --from=build /image /
# All state; with a read-only root the one place that is written to.
VOLUME ["/var/lib/gantry/server"]
