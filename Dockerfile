# kernel_gym with the simulator, the simulated author and RLlib: docker build -t kernel-gym . && docker run --rm kernel-gym doctor
FROM python:3.11-slim-bookworm

# g++ compiles the simulator and every kernel.
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ git make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/kernel_gym

# constraints.txt holds the versions that were tested together. On x86-64 torch brings several gigabytes of CUDA unless
# PyTorch's CPU index is given: docker build --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL=
COPY . .
RUN pip install --no-cache-dir -c constraints.txt '.[rllib]'

# Kernels are confined by Landlock and seccomp, as an ordinary user.
RUN useradd --create-home engineer
USER engineer
WORKDIR /home/engineer

# The simulator is built once, here, and not at the first verdict.
RUN kernel-gym doctor

ENTRYPOINT ["kernel-gym"]
CMD ["--help"]
