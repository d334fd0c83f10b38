"""Array types that the generator's modules share."""

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
"""One truth value per entry."""
TextArray = npt.NDArray[np.str_]
"""One text per entry."""
