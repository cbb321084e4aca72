# SPDX-License-Identifier: Apache-2.0
import os

import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_collection_modifyitems(config, items):
    import jax

    # Everything runs on the default device; what is marked needs that to be a CUDA device, what is not runs on CPUs.
    on_cuda = jax.default_backend() == "gpu"
    for item in items:
        if ("cuda" in item.keywords) != on_cuda and "everywhere" not in item.keywords:
            item.add_marker(pytest.mark.skip(reason="for the other kind of device"))
