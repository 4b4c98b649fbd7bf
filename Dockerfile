# A small image of the service, from the checkout:
# docker build -t voiceapi . && docker run -d --name voiceapi -p 127.0.0.1:8000:8000 -v voiceapi:/data voiceapi
FROM python:3.13-slim AS build
COPY . /source
RUN python -m venv /opt/voiceapi && /opt/voiceapi/bin/pip install --no-cache-dir "/source[metrics,postgresql]"

FROM python:3.13-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin voiceapi \
    && install -d -o voiceapi -g voiceapi -m 0700 /data
COPY --from=build /opt/voiceapi /opt/voiceapi
ENV PATH=/opt/voiceapi/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    VOICEAPI_DATABASE=/data/voiceapi.db \
    VOICEAPI_HOST=0.0.0.0 \
    VOICEAPI_PORT=8000
USER voiceapi
WORKDIR /data
VOLUME /data
EXPOSE 8000
# A stop finishes what is in progress, in at most 40 seconds: docker stop --time 45.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['VOICEAPI_PORT'] + '/api/v1/health/ready', timeout=4)"]
CMD ["voiceapi", "serve"]
