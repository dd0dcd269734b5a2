# The image of server.Dockerfile, from the archives of `make dist` in dist/: nothing is compiled.
#
#   docker build --file docker/server.prebuilt.Dockerfile --tag gantry-server .

# A Debian of the release on which the archives were built, with ca-certificates.
ARG UNPACK_IMAGE=buildpack-deps:bookworm-curl

FROM ${UNPACK_IMAGE} AS unpacked
COPY docker/lay-out dist/gantry-*-linux.tar.gz /dist/
RUN ["/dist/lay-out", "server", "/dist"]

FROM scratch
ENV GANTRY_HOME=/var/lib/gantry \
    PATH=/usr/bin
EXPOSE 7000
USER 65532:65532
# Kubernetes asks /livez and /readyz itself.
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s CMD ["gantry-server", "health"]
ENTRYPOINT ["gantry-server"]
CMD ["run"]
COPY --from=unpacked /image /
# All state; with a read-only root the one place that is written to.
VOLUME ["/var/lib/gantry/server"]
