"""What a cell computes with: the kernels that the libraries report, as JSON."""

import importlib.util
import json


def kernels() -> dict[str, str]:
    """Return what the libraries really compute with here: the environment only asks for it."""
    from numpy._core import _multiarray_umath as umath
    from threadpoolctl import threadpool_info

    found = {"NumPy": " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]) or "baseline"}
    for library in threadpool_info():
        if library["internal_api"] == "openblas":
            found["OpenBLAS"] = f"{library['architecture']}, {library['num_threads']} threads"
    if importlib.util.find_spec("torch"):
        import torch

        found["torch"] = f"{torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads"
    return found


if __name__ == "__main__":
    print(json.dumps(kernels()))
