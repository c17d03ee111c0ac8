# dynid with its command line and the studio. Logs and results live in /work:
#   docker build -t dynid .
#   docker run --rm -v "$PWD:/work" dynid identify
#   docker run --rm -v "$PWD:/work" -p 8080:8080 dynid studio arm.urdf /work --host 0.0.0.0 --port 8080 --no-browser
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/dynid \
    && /opt/dynid/bin/pip install --no-cache-dir -c constraints.txt ".[studio,ros,hdf5]"

FROM python:3.11-slim
COPY --from=build /opt/dynid /opt/dynid
# The user may not write to /opt: compiled kernels are kept in a folder of its own.
RUN useradd --create-home --uid 1000 dynid && mkdir /work && chown dynid /work
USER dynid
ENV PATH="/opt/dynid/bin:${PATH}" NUMBA_CACHE_DIR=/home/dynid/.cache/numba
WORKDIR /work
ENTRYPOINT ["dynid"]
CMD ["--help"]
