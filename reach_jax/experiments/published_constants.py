"""The constants and ratios that arXiv 2605.22223 prints, as it prints them.

Text where the printed digits matter: "20.4" is a claim about one decimal. Where each comes from:
`MODELS` from Tables 1 and 2 of version 1; `n50` decoded from the vector graphics of its cramming
figures (median length for m = 1, 2, ... on PG-19, to 0.1 token); `NOTEBOOK` from the outputs of the
notebook in the authors' repository, which counts 50304 tokens for all three; Pythia-6.9B has 50432
rows in its output matrix. No number of this project is here.
"""

from dataclasses import dataclass

NOTEBOOK_VOCABULARY = 50304
# Tokens that one vector was made to hold by other searches: mean over texts (Progressive Cramming),
# and the longest length held (Kuratov et al. 2025). Both teacher-forced.
OTHER_SEARCHES = {
    "Gemma-3-270M": (71.2, "Progressive Cramming"),
    "Llama-3.2-1B": (512.0, "Kuratov et al. 2025"),
}

# R^2 of the logistic curve through "share copied" against length, models tuned to copy 50 letters.
COPY_R2 = {
    "Pythia-160M": 0.97,
    "Pythia-410M": 0.95,
    "Pythia-1B": 0.97,
    "Qwen2.5-0.5B": 0.80,
    "Qwen2.5-1.5B": 0.46,
    "Llama-3.2-1B": 0.70,
    "Gemma-3-270M": 0.97,
}


@dataclass(frozen=True)
class Model:
    """One column of Tables 1 and 2.

    Attributes:
      d, vocabulary: embedding dimension and number of tokens.
      r: greatest l_inf norm of its sampled output embeddings.
      theta: radians, arccos of the least cosine between two of them.
      s: nats per token, the rate at which the median product of cell shares falls.
      slope: tokens per prompt vector; the measured slope that the ratios are over.
      ball, cone, box, nonuniform, variable: the ratios theory / measured of Table 1.
      n50: tokens, for m = 1, 2, ...; from the figures, a point beyond their axis left out.
    """

    name: str
    d: int
    vocabulary: int
    r: str
    theta: str
    s: str
    slope: str
    ball: str
    cone: str
    box: str
    nonuniform: str
    variable: str
    n50: tuple[float, ...]


@dataclass(frozen=True)
class NotebookModel:
    """One model of the notebook, at eps = r/2^11: constants, measured slope and ratios.

    Attributes as in `Model`, except vocabulary: that of the model, not `NOTEBOOK_VOCABULARY`.
    """

    name: str
    d: int
    vocabulary: int
    r: str
    theta: str
    slope: str
    ball: str
    cone: str
    box: str


def _model(
    name: str, d: int, vocabulary: int, constants: str, ratios: str, n50: tuple[float, ...]
) -> Model:
    r, theta, s, slope = constants.split()
    ball, cone, box, nonuniform, variable = ratios.split()
    return Model(
        name, d, vocabulary, r, theta, s, slope, ball, cone, box, nonuniform, variable, n50
    )


# r, theta, s, measured slope; then ball, cone, box, box + non-uniform, box + variable eps.
MODELS = (
    _model(
        "Pythia-160M", 768, 50304, "63.62 1.96 12.87 90.4", "9.24 9.10 7.92 6.66 8.65",
        (88.9, 182.4, 277.5, 366.7, 448.6),
    ),
    _model(
        "Pythia-410M", 1024, 50304, "54.90 1.87 14.54 112.4", "9.79 9.60 8.15 5.99 9.83",
        (94.2, 213.8, 326.7, 436.3, 538.7),
    ),
    _model(
        "Pythia-1B", 2048, 50304, "65.68 2.22 14.71 287.4", "7.77 7.70 6.12 4.56 7.71",
        (209.8, 496.6, 758.8, 993.8),
    ),
    _model(
        "Qwen2.5-0.5B", 896, 151936, "309.0 2.23 16.50 71.0", "14.1 14.01 10.96 7.92 12.32",
        (56.1, 125.6, 207.4, 268.5, 339.7),
    ),
    _model(
        "Qwen2.5-1.5B", 1536, 151936, "153.62 2.34 16.87 79.6", "20.4 20.34 15.30 10.82 18.81",
        (50.0, 121.6, 204.3, 291.0, 363.1),
    ),
    _model(
        "Llama-3.2-1B", 2048, 128256, "41.06 1.73 15.79 137.8", "14.3 13.98 11.86 10.71 14.63",
        (45.2, 144.5, 277.7, 454.7, 578.9),
    ),
    _model(
        "Gemma-3-270M", 640, 262144, "10.74 1.82 13.03 44.54", "11.52 11.24 11.12 8.79 13.42",
        (17.1, 42.4, 89.5, 141.2, 190.4),
    ),
)  # fmt: skip

NOTEBOOK = (
    NotebookModel(
        "Pythia-1.4B", 2048, 50304, "59.90625", "2.219370", "261.4",
        "6.019802", "5.938543", "4.316811",
    ),
    NotebookModel(
        "Pythia-2.8B", 2560, 50304, "52.21875", "2.159577", "197.9",
        "9.939214", "9.787080", "7.161607",
    ),
    NotebookModel(
        "Pythia-6.9B", 4096, 50432, "50.96875", "2.213061", "283.55",
        "11.099110", "10.948394", "7.704780",
    ),
)  # fmt: skip
