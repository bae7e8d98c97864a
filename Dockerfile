# One image for every role: the argument picks it, as in `docker run helmstream run --set ...`.
# Bookworm is named because it is the release of Debian that has OpenJDK 17.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/helmstream
COPY requirements-run.lock requirements-build.lock ./
RUN /opt/helmstream/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements-run.lock
# What makes the wheel is locked, too, and stays out of the image.
RUN python -m venv /opt/build \
    && /opt/build/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY conf conf
COPY state state
COPY streaming streaming
COPY checkpoints checkpoints
RUN /opt/build/bin/hatchling build -t wheel \
    && /opt/helmstream/bin/python -m pip install --no-cache-dir --no-index --no-deps dist/*.whl

FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 helmstream \
    && useradd --system --uid 10001 --gid helmstream --create-home helmstream \
    && install --directory --owner helmstream --group helmstream /var/lib/helmstream
COPY --from=build /opt/helmstream /opt/helmstream
ENV PATH=/opt/helmstream/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HELMSTREAM_DATA_DIR=/var/lib/helmstream \
    HELMSTREAM_GATEWAY_HOST=0.0.0.0 \
    HELMSTREAM_CACHE=/opt/helmstream-cache
# Outside the volume, which would hide it: Spark's classes as an archive, for quick starts.
RUN helmstream prepare && chown --recursive helmstream:helmstream /opt/helmstream-cache
VOLUME /var/lib/helmstream
WORKDIR /var/lib/helmstream
# By number: Kubernetes can tell from it that this is not root (runAsNonRoot).
USER 10001:10001
# One for each listener of the brokers, from gateway.port on; here a client's and an internal one.
EXPOSE 9190 9191
# Healthy is who has the controller role; the first claim waits for Spark and reads the cluster.
HEALTHCHECK --interval=10s --timeout=8s --start-period=120s --retries=3 CMD ["helmstream", "status", "--require", "active"]
# tini passes signals on and reaps the Java processes.
ENTRYPOINT ["tini", "--", "helmstream"]
CMD ["run"]
