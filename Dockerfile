# docker build -t curation .            docker run --rm curation            runs the demo: nothing is fetched, nobody is root
# docker run --rm -v "$PWD:/data" -w /data curation curation verify elephant/val2017
# docker build --target review -t curation-review .
# docker run --rm -it --network host -v "$PWD:/data" -w /data curation-review curation review start --folder my-review --reviewer me
FROM python:3.12-slim-bookworm AS base
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY .github/addresses.py .github/
COPY curation curation
COPY manifests manifests
RUN python -m pip install --no-cache-dir -c constraints.txt '.[fast,publish]'
RUN useradd --create-home --uid 1000 curator
WORKDIR /home/curator
CMD ["python", "-m", "curation.extensions.demo", "--out", "demo-output"]

# The review server listens at 127.0.0.1 alone, in a container too: --network host shows it to a browser of the same machine.
FROM base AS review
RUN apt-get update && apt-get install -y --no-install-recommends libcurl4 && rm -rf /var/lib/apt/lists/*
RUN python -m pip install --no-cache-dir -c /src/constraints.txt '/src[review,mongo,photos]'
USER curator
CMD ["curation", "review", "--help"]

FROM base
USER curator
