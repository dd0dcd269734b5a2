# The image of runner.Dockerfile, from the archives of `make dist` in dist/: nothing is compiled.
#
#   docker build --file docker/runner.prebuilt.Dockerfile --tag gantry-runner .

ARG BASE_IMAGE=debian:bookworm-slim
# A Debian with ca-certificates.
ARG UNPACK_IMAGE=buildpack-deps:bookworm-curl

FROM ${UNPACK_IMAGE} AS unpacked
COPY docker/lay-out dist/gantry-*-linux.tar.gz /dist/
RUN ["/dist/lay-out", "runner", "/dist"]

FROM ${BASE_IMAGE}
ENV GANTRY_HOME=/var/lib/gantry \
    HOME=/workspace
WORKDIR /workspace
USER 65532:65532
# SIGTERM would leave commands to the next daemon, and none outlives its container.
STOPSIGNAL SIGINT
ENTRYPOINT ["gantry-runner"]
CMD ["run"]
COPY --from=unpacked /image /
VOLUME ["/var/lib/gantry", "/workspace"]
