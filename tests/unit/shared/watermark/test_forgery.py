"""Attacks that recover what other implementations hide, against our PRF, and against one like theirs.

transformers' SynthID-Text hashes with a linear congruential generator and looks the bit up in a public table:
2,000 known bits give a layer's secret away, and n-grams that collide do so under every key.
"""

from functools import partial

import numpy as np

from ttmark.shared.watermark.prf import absorb_context, key_lanes, prf_words

H, R = 4, 2
STATES = 1 << 16
MULTIPLIER, INCREMENT = 6364136223846793005 % STATES, 1
LAYERS = 30
TABLE = np.random.default_rng(0).choice([-1, 1], STATES)
# Standard errors that one of 30 layers exceeds by chance once in a thousand tests.
CHANCE = 4.2


def public_state(ngrams):
    """The lowest 16 bits of the congruential hash of n-grams [N, T], before any key."""
    state = np.ones(ngrams.shape[0], dtype=np.int64)
    for column in ngrams.T:
        state = ((state + column) * MULTIPLIER + INCREMENT) % STATES
    return state


def table_bits(ngrams, layer_keys):
    """Signs [N, layers] of the generator under attack: the hash takes each layer's key, the table answers."""
    keyed = (public_state(ngrams)[:, None] + layer_keys) * MULTIPLIER + INCREMENT
    return TABLE[keyed % STATES]


def our_words(ngrams, key):
    state = absorb_context(key_lanes(key), ngrams[:, :H])
    return prf_words(state, ngrams[:, H:])


def our_bits(ngrams, key):
    """Signs [N, layers] of the lowest bits of word 0, the bits of a SynthID-Text tournament."""
    return 2 * ((our_words(ngrams, key)[:, :1] >> np.arange(LAYERS)) & 1) - 1


def recovered_offset(states, signs):
    """The shift of the public table that agrees with most signs, over all 2**16 at once."""
    seen = np.bincount(states, weights=signs, minlength=STATES)
    agreement = np.fft.irfft(np.fft.rfft(TABLE) * np.conj(np.fft.rfft(seen)), STATES)
    return int(np.argmax(agreement))


def accuracy_of_recovered_tables(bits, known=2_000, unseen=20_000):
    """Share of unseen n-grams whose bit the attacker names, per layer, after `known` n-grams."""
    ngrams = np.random.default_rng(1).integers(0, 50_000, (known + unseen, H + R))
    signs, states = bits(ngrams), public_state(ngrams) * MULTIPLIER % STATES
    shares = []
    for layer in signs.T:
        offset = recovered_offset(states[:known], layer[:known])
        shares.append(np.mean(TABLE[(states[known:] + offset) % STATES] == layer[known:]))
    return np.array(shares)


def test_the_attack_recovers_every_layer_of_a_table_prf_and_predicts_ours_at_chance():
    keys = np.random.default_rng(2).integers(0, 2**31, LAYERS)
    assert np.all(accuracy_of_recovered_tables(lambda ngrams: table_bits(ngrams, keys)) == 1.0)
    for seed in range(2):
        ours = partial(our_bits, key=np.random.default_rng(seed).bytes(16))
        shares = accuracy_of_recovered_tables(ours)
        assert np.all(np.abs(shares - 0.5) < CHANCE * 0.5 / np.sqrt(20_000))


FEATURES = {
    "congruential hash": public_state,
    "first token of the block": lambda ngrams: ngrams[:, H] % STATES,
    "last token of the block": lambda ngrams: ngrams[:, -1] % STATES,
    "last token of the context": lambda ngrams: ngrams[:, H - 1] % STATES,
    "sum of the tokens": lambda ngrams: ngrams.sum(axis=1) % STATES,
    "exclusive or of the tokens": lambda ngrams: np.bitwise_xor.reduce(ngrams, axis=1) % STATES,
}


def accuracy_of_learned_table(bits, feature):
    """As above, with a table learned from 200,000 known bits of one layer: the majority of each state."""
    ngrams = np.random.default_rng(3).integers(0, 50_000, (220_000, H + R))
    signs, states = bits(ngrams), FEATURES[feature](ngrams)
    learned = np.sign(np.bincount(states[:200_000], weights=signs[:200_000], minlength=STATES))
    guesses = learned[states[200_000:]]
    return np.mean(guesses[guesses != 0] == signs[200_000:][guesses != 0]), np.count_nonzero(guesses)


def test_a_learned_table_learns_the_bits_of_a_table_prf_and_none_of_ours():
    """Whatever sixteen bits of state the table is over."""
    theirs = accuracy_of_learned_table(
        lambda ngrams: table_bits(ngrams, np.array([12345]))[:, 0], "congruential hash"
    )
    assert theirs[0] == 1.0
    assert theirs[1] > 15_000
    for feature in FEATURES:
        share, guesses = accuracy_of_learned_table(
            lambda ngrams: our_bits(ngrams, bytes(range(16)))[:, 0], feature
        )
        assert guesses > 5_000
        assert abs(share - 0.5) < CHANCE * 0.5 / np.sqrt(guesses)


def repeated_collisions(states_under):
    """Pairs of n-grams that collide in 16 bits under one key, and how many of them do under another."""
    ngrams = np.random.default_rng(4).integers(0, 50_000, (20_000, H + R))
    first, second = states_under(ngrams, 0), states_under(ngrams, 1)
    order = np.argsort(first, kind="stable")
    same = first[order][1:] == first[order][:-1]
    return int(same.sum()), int(np.sum(same & (second[order][1:] == second[order][:-1])))


def our_states(keys, lane, ngrams, i):
    return our_words(ngrams, keys[i])[:, lane] % STATES


def test_collisions_of_a_congruential_hash_come_under_every_key_and_ours_do_not():
    offsets = (98765, 43210)
    pairs, repeated = repeated_collisions(lambda ngrams, i: (public_state(ngrams) + offsets[i]) % STATES)
    assert repeated == pairs > 1_000
    keys = (bytes(range(16)), bytes(range(1, 17)))
    for lane in (0, 1):
        pairs, repeated = repeated_collisions(partial(our_states, keys, lane))
        assert pairs > 1_000
        # Of 2,700 pairs 0.04 collide again by chance; three or more would once in 90,000 tests.
        assert repeated < 3
