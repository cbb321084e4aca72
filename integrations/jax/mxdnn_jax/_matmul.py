# SPDX-License-Identifier: Apache-2.0
"""What linear and grouped_linear share."""
import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from . import _activation


@dataclasses.dataclass(frozen=True)
class Static:
    """What a call has beside its arrays. Equal ones share compiled code."""
    blob: bytes
    activation: str  # as an attribute of the call
    columns: int  # of the result
    out_dtype: str

    def without_activation(self, columns: int) -> "Static":
        """The same up to the activation, in f32: what its gradient is taken at."""
        return Static(self.blob, "", columns, "float32")


def check_bias(bias: jax.Array | None, shape: tuple[int, ...], what: str) -> None:
    """Compares the bias with the weights."""
    if bias is not None and bias.shape != shape:
        raise ValueError(f"{what}: the bias is {list(bias.shape)}; for these weights it has to be {list(shape)}")


def cotangent_of_product(static: Static, dy: jax.Array, product: Callable[[], jax.Array]) -> jax.Array:
    """dy passed back through the activation, in f32. product() is what the activation was applied to."""
    dy = dy.astype(jnp.float32)
    if not static.activation:
        return dy
    _, vjp = jax.vjp(_activation.function_of(static.activation), product())
    return vjp(dy)[0]
