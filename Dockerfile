# mpilab in a container: on a laptop, as a dev container, on Binder, as the image of a JupyterHub.
#
#   docker build -t mpilab .                       the kit, with JupyterLab
#   docker build -t mpilab-hub --target hub .      the same, for a JupyterHub to start
#   docker run --rm -p 8888:8888 mpilab            then open the printed address
#
# docs/deploy.md says more. podman and buildah use the same file.
ARG DEBIAN=12-slim
FROM debian:${DEBIAN} AS system
# iproute2 is for emulated hosts. Removed again: boost (160 MB), which only SimGrid's headers for
# C++ need, and link-time optimization of the compiler.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        bubblewrap gcc iproute2 libc6-dev libsimgrid-dev make python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/man /usr/share/locale \
        /usr/include/boost /usr/bin/*-lto-dump-* /usr/lib/gcc/*/*/lto1

FROM system AS build
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates python3-venv
WORKDIR /opt/mpilab
# The packages first: they change less often than the kit does.
COPY pyproject.toml constraints.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m venv .venv \
    && python3 -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))' \
        > /tmp/packages.txt \
    && .venv/bin/python -m pip install --disable-pip-version-check -c constraints.txt -r /tmp/packages.txt
COPY . .
# Each job of a CI service is a new container: the kernels for simulations are compiled here.
RUN --mount=type=cache,target=/root/.cache/pip \
    make setup \
    && .venv/bin/python -c 'from mpilab.kernels import simgrid; simgrid.kernels()' \
    && rm -rf .venv.lock

FROM system AS kit
# The kit belongs to root, so its users cannot change it. The labs are copied into the home directory.
COPY --from=build /opt/mpilab /opt/mpilab
# The names of these two are Binder's.
ARG NB_USER=student
ARG NB_UID=1000
RUN useradd --create-home --shell /bin/bash --uid ${NB_UID} ${NB_USER}
ENV PATH=/opt/mpilab/.venv/bin:$PATH LANG=C.UTF-8 SHELL=/bin/bash \
    JUPYTER_CONFIG_PATH=/opt/mpilab/mpilab/notebook/jupyter_config
USER ${NB_USER}
WORKDIR /home/${NB_USER}
ENTRYPOINT ["/opt/mpilab/deploy/container/start"]
CMD ["jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--LabApp.default_url=/lab/tree/START.ipynb"]
EXPOSE 8888

FROM kit AS hub
# Use the hub's own version: --build-arg JUPYTERHUB=...
ARG JUPYTERHUB=5.*
USER root
RUN --mount=type=cache,target=/root/.cache/pip \
    /opt/mpilab/.venv/bin/python -m pip install --disable-pip-version-check \
        -c /opt/mpilab/constraints.txt "jupyterhub==${JUPYTERHUB}"
ARG NB_USER=student
USER ${NB_USER}
CMD ["jupyterhub-singleuser"]

# What is built where no --target is given.
FROM kit
