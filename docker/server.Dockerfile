# The server's image: gantry-server, the runner's programs that it hands out, the libraries that it loads, and
# certificate authorities. No shell.
#
#   docker build --file docker/server.Dockerfile --tag gantry-server .
#   docker run --read-only --publish 127.0.0.1:7000:7000 --volume gantry:/var/lib/gantry/server gantry-server \
#       run --listen 0.0.0.0:7000 --behind-proxy

ARG BUILD_IMAGE=rust:1.95-bookworm

FROM ${BUILD_IMAGE} AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY . .
# For --version: docker build --build-arg GANTRY_COMMIT="$(git rev-parse --short=12 HEAD)" …
ARG GANTRY_COMMIT=""
ARG GANTRY_COMMIT_DATE=""
RUN cargo build --release --locked --package server --bin gantry-server && DIST_ONLY=runner deploy/dist
# Libraries keep their paths, so that the loader finds them.
RUN mkdir -p /image/usr/bin /image/etc/ssl/certs /image/usr/share/doc/gantry /image/var/lib/gantry/server \
    && cp target/release/gantry-server /image/usr/bin/ \
    && cp --recursive target/release/downloads /image/usr/bin/downloads \
    && ldd target/release/gantry-server | grep --only-matching '/[^ ]*' | xargs cp --dereference --parents --target-directory=/image \
    && cp --dereference /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
    && cp LICENSE /image/usr/share/doc/gantry/ \
    && for package in libc6 libgcc-s1 ca-certificates; do \
        cp --dereference "/usr/share/doc/$package/copyright" "/image/usr/share/doc/gantry/$package.copyright"; \
    done \
    && echo 'gantry:x:65532:65532:Gantry:/var/lib/gantry:/sbin/nologin' > /image/etc/passwd \
    && echo 'gantry:x:65532:' > /image/etc/group \
    && chmod 0700 /image/var/lib/gantry/server \
    && chown 65532:65532 /image/var/lib/gantry/server

FROM scratch
COPY --from=build /image /
ENV GANTRY_HOME=/var/lib/gantry \
    PATH=/usr/bin
# All state; with a read-only root the one place that is written to.
VOLUME ["/var/lib/gantry/server"]
EXPOSE 7000
USER 65532:65532
# Kubernetes asks /livez and /readyz itself.
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s CMD ["gantry-server", "health"]
ENTRYPOINT ["gantry-server"]
CMD ["run"]
