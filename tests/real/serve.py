"""Serves a model with llama.cpp's server on a free loopback port: MODEL SLOTS [TEMPLATE]. Says "READY url", ends on SIGTERM.

One thread with a passive wait: with more, the threads spin on each other as soon as anything else wants the cores, and the
model becomes ten times slower.
"""

import os
import signal
import sys

os.environ["OMP_WAIT_POLICY"] = "passive"
import xllamacpp  # noqa: E402 (it reads the environment when it is imported)

model, slots, *template = sys.argv[1:]
params = xllamacpp.CommonParams()
params.model.path = model
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 2048 * int(slots)
params.n_parallel = int(slots)
params.use_jinja = True
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.endpoint_slots = True
params.warmup = False
params.offline = True
params.sampling.temp = 0.0
params.sampling.seed = 1
if template:
    with open(template[0], encoding="utf-8") as text:
        params.chat_template = text.read()
server = xllamacpp.Server(params)
print("READY", server.listening_address, flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
