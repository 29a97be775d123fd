# gpujoin on the CPU, in the official image of PostgreSQL; or, as the target `volume`, the files alone, for servers that load
# extensions from an image (docs/cloudnative-pg.yaml):
#
#   docker build --build-arg PG_MAJOR=18 -t postgres-gpujoin .
#   docker build --build-arg PG_MAJOR=18 --target volume -t gpujoin-volume .
#
# For GPUs put the gpujoin_cuda.so of a machine with nvcc beside gpujoin.so; the container then needs the driver alone.
ARG PG_MAJOR=18
ARG DEBIAN=trixie

FROM postgres:${PG_MAJOR}-${DEBIAN} AS build
ARG PG_MAJOR
RUN apt-get update && apt-get install -y --no-install-recommends make g++ libhwy-dev postgresql-server-dev-${PG_MAJOR}
COPY . /gpujoin
RUN make -C /gpujoin -j"$(nproc)" NVCC= volume VOLUME=/volume

FROM scratch AS volume
COPY --from=build /volume/ /

FROM postgres:${PG_MAJOR}-${DEBIAN}
ARG PG_MAJOR
COPY --from=build /volume/lib/libhwy* /usr/local/lib/
COPY --from=build /volume/lib/gpujoin* /usr/lib/postgresql/${PG_MAJOR}/lib/
COPY --from=build /volume/share/extension/ /usr/share/postgresql/${PG_MAJOR}/extension/
RUN ldconfig
