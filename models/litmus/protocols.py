# SPDX-License-Identifier: BSD-2-Clause
"""The protocols with the orders that the source asks for, and weaker ones that must fail.

Each function returns (threads, initial values, bad): no allowed execution may be bad. A mutant is
a set of keyword arguments, each of which weakens one order or removes one fence.
"""
from check import F, HEAVY, LIGHT, If, R, W, X

NONE = If("none", 1, [])


def is_copied_late(copied, waited):
    """The copy ran, and a store of the owner behind its wait was seen or overwritten by it."""
    return lambda regs, last: (copied(regs) and waited(regs) and
                               (regs.get("copy") == 2 or last["data"] != 2))


COPY = [R("copy", "data", "rlx"), W("data", 1, "rlx")]
REUSE = [W("data", 2, "rlx")]


def pin(exchange="sc", check="sc", clear="sc", fence=F, wait="sc", unpin="rel"):
    """core_pin, core_mem_pin, core_unpin; core_mem_revoke, core_pins_wait"""
    user = [X("old", "pin", 1, exchange), R("key", "key", check),
            If("key", 1, COPY + [W("pin", 0, unpin)])]
    owner = [W("key", 0, clear), fence, R("pin", "pin", wait), If("pin", 0, REUSE)]
    return ([user, owner], {"key": 1},
            is_copied_late(lambda r: r["key"] == 1, lambda r: r["pin"] == 0))


def light_pin(mark="sc", see="sc", light=LIGHT, check="sc", heavy=HEAVY):
    """core_pin with is_light; pins_count_fenced; core_mem_revoke, core_pins_wait"""
    user = [R("light", "light", see),
            If("light", 1, [W("pin", 1, "rel"), light, R("key", "key", check),
                            If("key", 1, [W("data", 1, "rlx")])])]
    owner = [W("key", 0, "sc"), F, R("must", "light", "sc"), If("must", 1, [heavy]),
             R("pin", "pin", "sc")]
    marker = [W("light", 1, mark)]
    return ([user, owner, marker], {"key": 1},
            lambda r, last: r.get("key") == 1 and r["pin"] == 0)


def announce(fence=F, check="acq", dead="sc", owner_fence=F, wait="acq", end="rel"):
    """shm_announce, shm_announce_end; soft_keys_invalidate, soft_keys_end_remote,
    shm_wait_copies; shm_conn_close"""
    peer = [W("announce", 1, "rlx"), fence, R("key", "key", check),
            If("key", 1, COPY + [W("announce", 0, end)])]
    owner = [W("key", 0, dead), owner_fence, R("announced", "announce", wait),
             If("announced", 0, REUSE)]
    return ([peer, owner], {"key": 1},
            is_copied_late(lambda r: r["key"] == 1, lambda r: r["announced"] == 0))


def light_announce(omit=F, light=LIGHT, heavy=HEAVY):
    """omit_fences, shm_write_mapped; fence_peers, shm_fence_is_peer_unfenced"""
    peer = [W("unfenced", 1, "rlx"), omit, W("announce", 1, "rlx"), light, R("key", "key", "acq")]
    owner = [W("key", 0, "sc"), F, R("must", "unfenced", "rlx"), If("must", 1, [heavy]),
             R("announced", "announce", "acq")]
    return ([peer, owner], {"key": 1},
            lambda r, last: r["key"] == 1 and r["announced"] == 0)


def wake(publish="rel", fence=F, arm_fence=F):
    """shm_producer_put, shm_conn_wake_if_armed; shm_conn_arm"""
    peer = [W("stamp", 1, publish), fence, R("armed", "armed", "rlx")]
    sleeper = [W("armed", 1, "rlx"), arm_fence, R("stamp", "stamp", "rlx")]
    return [peer, sleeper], {}, lambda r, last: r["armed"] == 0 and r["stamp"] == 0


def light_wake(light=LIGHT, heavy=HEAVY, fence=F):
    """shm_conn_wake with is_polled; shm_fence_end_polled, shm_conn_arm"""
    peer = [W("stamp", 1, "rel"), light, R("polled", "polled", "rlx"),
            If("polled", 0, [fence, R("armed", "armed", "rlx")])]
    sleeper = [W("polled", 0, "rlx"), heavy, W("armed", 1, "rlx"), F, R("stamp", "stamp", "rlx")]
    return ([peer, sleeper], {"polled": 1},
            lambda r, last: r["stamp"] == 0 and (r["polled"] == 1 or r["armed"] == 0))


def bell(ring="rel"):
    """core_bell_wake and bell_ring; shm_sleep_begin"""
    peer = [W("stamp", 1, "rel"), X("old", "bell", 1, ring)]
    sleeper = [R("seen", "bell", "sc"), W("sleeps", 1, "rlx"), F, R("stamp", "stamp", "rlx")]
    return [peer, sleeper], {}, lambda r, last: r["seen"] == 1 and r["stamp"] == 0


def lock(light=LIGHT, heavy=HEAVY, release="rel", wait="acq"):
    """core_lock_enter, core_lock_release; revoke_bias"""
    owner = [R("owner", "owner", "rlx"), W("inside", 1, "rlx"), light, R("still", "owner", "rlx"),
             If("still", 1, COPY + [W("inside", 0, release)])]
    other = [W("owner", 0, "rlx"), heavy, R("inside", "inside", wait), If("inside", 0, REUSE)]
    return ([owner, other], {"owner": 1},
            is_copied_late(lambda r: r["still"] == 1, lambda r: r["inside"] == 0))


def ring(publish="rel", peek="acq", give_back="rel", refresh="acq"):
    """shm_producer_put, shm_consumer_peek; shm_consumer_give_back, shm_producer_refresh"""
    producer = [W("bytes", 1, "rlx"), W("stamp", 1, publish), R("space", "consumed", refresh),
                If("space", 1, [W("bytes", 2, "rlx")])]
    consumer = [R("stamp", "stamp", peek),
                If("stamp", 1, [R("bytes", "bytes", "rlx"), W("consumed", 1, give_back)])]
    return [producer, consumer], {}, lambda r, last: r["stamp"] == 1 and r["bytes"] != 1


def attributes(describe="rel", read="acq", first="acq"):
    """core_mem_revoke, core_mem_describe, core_mem_publish; core_mem_read_attr, soft_key_check"""
    owner = [W("key", 0, "sc"), W("address", 2, describe), W("key", 2, "rel")]
    reader = [R("before", "key", first), R("address", "address", read), R("after", "key", "rlx")]
    return ([owner, reader], {"key": 1, "address": 1},
            lambda r, last: r["before"] == r["after"] != 0 and r["address"] != r["before"])


PROTOCOLS = [
    (pin, {
        "PIN_RELAXED": {"exchange": "rlx"},
        "CHECK_RELAXED": {"check": "rlx"},
        "FREE_NO_FENCE": {"clear": "rlx", "fence": NONE},
        "WAIT_RELAXED": {"wait": "rlx"},
        "UNPIN_RELAXED": {"unpin": "rlx"},
    }),
    (light_pin, {
        "MARK_RELEASE": {"mark": "rel"},
        "MARK_SEEN_ACQUIRE": {"see": "acq"},
        "NO_LIGHT": {"light": NONE},
        "NO_HEAVY": {"heavy": NONE},
        "FENCE_FOR_HEAVY": {"heavy": F},
    }),
    (announce, {
        "NO_FENCE": {"fence": NONE},
        "OWNER_NO_FENCE": {"owner_fence": NONE},
        "CHECK_RELAXED_NO_FENCE": {"check": "rlx", "fence": NONE},
        "WAIT_RELAXED": {"wait": "rlx"},
        "END_RELAXED": {"end": "rlx"},
    }),
    (light_announce, {
        "OMIT_NO_FENCE": {"omit": NONE},
        "NO_LIGHT": {"light": NONE},
        "NO_HEAVY": {"heavy": NONE},
        "FENCE_FOR_HEAVY": {"heavy": F},
    }),
    (wake, {
        "NO_FENCE": {"fence": NONE},
        "ARM_NO_FENCE": {"arm_fence": NONE},
    }),
    (light_wake, {
        "NO_LIGHT": {"light": NONE},
        "NO_HEAVY": {"heavy": NONE},
        "FENCE_FOR_HEAVY": {"heavy": F},
        "NO_FENCE": {"fence": NONE},
    }),
    (bell, {"RING_RELAXED": {"ring": "rlx"}}),
    (lock, {
        "NO_LIGHT": {"light": NONE},
        "NO_HEAVY": {"heavy": NONE},
        "FENCE_FOR_HEAVY": {"heavy": F},
        "RELEASE_RELAXED": {"release": "rlx"},
        "WAIT_RELAXED": {"wait": "rlx"},
    }),
    (ring, {
        "PUBLISH_RELAXED": {"publish": "rlx"},
        "PEEK_RELAXED": {"peek": "rlx"},
        "GIVE_BACK_RELAXED": {"give_back": "rlx"},
    }),
    (attributes, {
        "DESCRIBE_RELAXED": {"describe": "rlx"},
        "READ_RELAXED": {"read": "rlx"},
    }),
]
