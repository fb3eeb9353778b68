# The server: docker build -t askwise . && docker run -p 8000:8000 -v askwise:/data askwise
# Studies are kept in /data; mount a volume there, and study files beside it.
FROM python:3.11.11-slim-bookworm AS build
# without support for GPUs, which a server does not need, the image is a fifth of the size
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /askwise
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --index-url "$TORCH_INDEX" "$(grep '^torch==' constraints.txt)" \
    && /venv/bin/pip install --no-cache-dir -c constraints.txt ".[web]"

FROM python:3.11.11-slim-bookworm
COPY --from=build /venv /venv
RUN useradd --create-home --uid 1000 askwise && mkdir /data && chown askwise /data
USER 1000
WORKDIR /data
VOLUME /data
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
ENTRYPOINT ["askwise", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["--log"]
