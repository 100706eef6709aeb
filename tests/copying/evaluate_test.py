"""The evaluation: outputs made by hand, and copiers whose score is known (CPY-01, CPY-02)."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reach_jax.copying import copiers, evaluate, task
from reach_jax.models import kinds
from reach_jax.models.config import LSTMConfig

ORACLE, GUESSER = copiers.Oracle(), copiers.Guesser(jax.random.key(5))
LSTM = LSTMConfig(vocab_size=task.VOCABULARY, layers=1, width=8, tied=False)


@functools.cache
def runner(copier):
    return jax.jit(functools.partial(copiers.emitted, copier), static_argnums=3)


def asked(length, count, seed=0, before=()):
    rng = np.random.default_rng([seed, length])
    front = [task.examples(task.strings(rng, count, n)) for n in before]
    front_BS = np.concatenate(front, axis=1) if front else None
    return evaluate.questions(task.strings(rng, count, length), front_BS)


def says(*answers):
    """A run that emits these answers behind the separators, and noise elsewhere."""

    def run(prompt_BS, given_B, places, slots):
        out_BS = np.full((len(given_B), slots), task.PAD, np.int32)
        for row, given in enumerate(np.asarray(given_B)):
            ids = task.encode(answers[row % len(answers)])
            out_BS[row, given - 1 : given - 1 + len(ids)] = ids
        return jnp.asarray(out_BS)

    return run


def test_hand_counts_of_strings_and_symbols():
    batch = evaluate.joined(
        [evaluate.questions(task.encode(s)[None]) for s in ("ab", "abcdefghij", "cd", "ef", "gh")]
    )
    assert batch.given_B.tolist() == [4, 12, 4, 4, 4]
    run = says("ab.", "abcdexghij.", "cd*", "ef.zzz", "g.h")
    for rows in (5, 1, 3):  # neither the batch nor what fills it up matters
        scores = evaluate.evaluate(_by_prompt(run, batch), batch, rows)
        # wrong at a letter / at the end symbol / nothing wrong but noise after / end too early
        assert scores.copied_B.tolist() == [True, False, False, True, False]
        assert scores.right_B.tolist() == [3, 10, 2, 3, 1]
        assert scores.length_B.tolist() == [3, 11, 3, 3, 3]
        per_string = scores.right_B / scores.length_B
        assert scores.copied_B.mean() <= per_string.mean()


def _by_prompt(run, batch):
    """`run`, whichever rows of `batch` it is asked for."""
    known = {task.decode(p[:g]): i for i, (p, g) in enumerate(zip(*batch[:2], strict=True))}

    def of(prompt_BS, given_B, places, slots):
        everything = np.asarray(run(batch.prompt_BS, batch.given_B, places, slots))
        names = [task.decode(np.asarray(p[:g])) for p, g in zip(prompt_BS, given_B, strict=True)]
        return jnp.asarray(everything[[known[name] for name in names]])

    return of


def test_an_oracle_copies_every_length_and_a_guesser_one_symbol_in_thirty():
    lengths = (1, 12, 13, 24, 120)  # the training length, one more, twice, ten times
    batch = evaluate.joined([asked(n, 40) for n in lengths])
    scores = evaluate.evaluate(runner(ORACLE), batch, 64)
    assert scores.copied_B.all()
    assert (scores.right_B == scores.length_B).all()

    scores = evaluate.evaluate(runner(GUESSER), batch, 64)
    total = scores.length_B.sum()
    share = scores.right_B.sum() / total
    assert abs(share - 1 / 30) < 4 * (1 / 30 / total) ** 0.5
    assert scores.copied_B.mean() < 0.05


def test_what_stands_before_a_question_is_no_part_of_the_score():
    batch = asked(5, 8, before=(3, 9))
    assert batch.given_B.tolist() == [task.size(3) + task.size(9) + 7] * 8
    assert batch.length_B.tolist() == [6] * 8
    assert evaluate.evaluate(runner(ORACLE), batch, 8).copied_B.all()


def test_a_models_score_depends_on_no_bucket_batch_or_neighbour():
    params = kinds.init(LSTM, jax.random.key(1))
    run = functools.partial(copiers.model_emitted, LSTM, params, None)
    short, long = asked(4, 6), asked(20, 6)
    both = evaluate.evaluate(run, evaluate.joined([short, long]), 8)
    alone = [evaluate.evaluate(run, batch, 8) for batch in (short, long)]
    wide = evaluate.evaluate(run, evaluate.padded(short, 30, 30), 8)
    right_B = np.concatenate([scores.right_B for scores in alone])
    assert right_B.sum() > 0
    np.testing.assert_array_equal(both.right_B, right_B)
    np.testing.assert_array_equal(wide.right_B, alone[0].right_B)


def test_decoding_feeds_back_what_was_said_and_not_the_answer():
    """Token by token by hand, with the module's own step."""
    params = kinds.init(LSTM, jax.random.key(1))
    batch = asked(4, 2)
    out_BS = copiers.model_emitted(
        LSTM, params, None, batch.prompt_BS, batch.given_B, jnp.int32(11), 32
    )
    copier = copiers.ModelCopier(LSTM, params)
    step = jax.jit(copier.step)
    for row in range(2):
        state, token, said = copier.start(32), int(batch.prompt_BS[row, 0]), []
        for place in range(11):
            logits_V, state = step(state, jnp.int32(token), jnp.int32(place))
            said.append(int(jnp.argmax(logits_V)))
            inside = place + 1 < batch.given_B[row]
            token = int(batch.prompt_BS[row, place + 1]) if inside else said[-1]
        assert said == np.asarray(out_BS)[row, :11].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b._replace(given_B=np.array([4, 4])), "symbol 4 of prompt 1"),
        (lambda b: b._replace(length_B=np.array([3, 3])), "symbol 3 of answer 1"),
        (lambda b: b._replace(given_B=np.array([4, 90])), "lengths of prompts"),
        (lambda b: b._replace(given_B=np.array([4])), "lengths of prompts"),
        (lambda b: b._replace(prompt_BS=np.where(b.prompt_BS == 29, 0, b.prompt_BS)), "mixed"),
    ],
)
def test_a_batch_of_mixed_lengths_must_say_them(change, message):
    batch = evaluate.joined([asked(2, 1), asked(6, 1)])
    evaluate.check(batch)
    with pytest.raises(ValueError, match=message):
        evaluate.evaluate(runner(ORACLE), change(batch), 2)


def test_a_bucket_holds_its_symbols_and_is_less_than_half_empty():
    for symbols in range(1, 3000):
        slots = evaluate.bucket(symbols)
        assert slots >= symbols
        assert slots <= max(32, 1.5 * symbols)
    assert len({evaluate.bucket(n) for n in range(1, 2049)}) == 13  # programs at most
