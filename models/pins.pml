/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dat_lmr_free against copies under pins (src/core/base/pins.h): core_pin, core_pin_one,
 * pins_count_fenced, core_unpin, core_pins_begin and core_pins_wait, with core_mem_pin,
 * core_mem_publish and core_mem_revoke (src/core/mem).
 *
 * One slot of the table is registered and freed twice, with keys 1 and 2. Two threads pin it, by a
 * key that they know to have been live, and copy. Property: once dat_lmr_free has returned for a
 * key, no thread loads from the region, and no store to it reaches memory, for that key.
 *
 * A set holds one pin of this region; whether a set is full of other pins is chosen freely, so a
 * pin may be counted in `others`. Pins are light after two pins with a fence.
 *
 * mutant FREE_NO_FENCE: the key is cleared without a full fence before the pins are read
 * mutant FREE_NO_HEAVY: no heavy fence for a region with light pins
 * mutant FREE_WAIT_FIRST: waits for the pins, then clears the key
 * mutant FREE_LIGHT_FIRST: is_light is read before the key is cleared
 * mutant FREE_NO_WAIT: does not wait for pins
 * mutant FREE_ONE_SET: searches the set of one thread only
 * mutant FREE_NO_OTHERS: does not read `others`
 * mutant PIN_NO_FENCE: core_pin stores the pin without a full fence
 * mutant PIN_LATE: a light pin is stored after the key is loaded
 * mutant PIN_NO_CHECK: the key is not loaded after the pin
 * mutant PIN_ALWAYS_LIGHT: a light fence before is_light is set
 * mutant LIGHT_NO_FENCE: is_light is set without a full fence
 * mutant UNPIN_FIRST: the pin is removed before the copy
 * mutant BEGIN_LATE: core_pins_begin runs after the key is live
 */
#define THREADS 3
#define DEPTH 3
#define LIGHT_AFTER 2
#define ROUNDS 2

#define KEY 0
#define LIGHT 1
#define FENCED 2
#define OTHERS 3
#define DATA 4
#define PIN 4 /* + the number of the thread */
#define WORDS 7

byte freed; /* dat_lmr_free has returned for the keys up to this one */
#define ARRIVES(t, w, v) assert((w) != DATA || (v) > freed)
#include "memory.pml"

inline pins_begin(t)
{
	store(t, FENCED, 0);
	store(t, LIGHT, 0)
}

inline publish(t, key)
{
#ifdef BEGIN_LATE
	store(t, KEY, key);
	pins_begin(t)
#else
	pins_begin(t);
	store(t, KEY, key)
#endif
}

inline wait_pins(t)
{
#ifndef FREE_NO_WAIT
	LOAD(t, PIN + 1) == 0;
#ifndef FREE_ONE_SET
	LOAD(t, PIN + 2) == 0;
#endif
#ifndef FREE_NO_OTHERS
	LOAD(t, OTHERS) == 0;
#endif
#endif
	skip
}

active proctype revoker()
{
	byte key, light, done;

	for (key : 1 .. 2) {
		publish(0, key);
#ifdef FREE_LIGHT_FIRST
		light = LOAD(0, LIGHT);
#endif
#ifdef FREE_WAIT_FIRST
		wait_pins(0);
#endif
#ifdef FREE_NO_FENCE
		store(0, KEY, 0);
#else
		store_full(0, KEY, 0);
		fence(0);
#endif
#ifndef FREE_LIGHT_FIRST
		light = LOAD(0, LIGHT);
#endif
#ifndef FREE_NO_HEAVY
		if
		:: light -> heavy(0, done)
		:: else
		fi;
#endif
#ifndef FREE_WAIT_FIRST
		wait_pins(0);
#endif
		freed = key;
		light = 0
	}
}

/* Removes the pin. `counted`: it is counted in `others`. */
inline unpin(t)
{
	if
	:: d_step { counted && buf[t].used == 0 -> mem[OTHERS]--; counted = 0 }
	:: !counted -> store(t, PIN + t, 0)
	fi
}

inline count_fenced(t)
{
	fenced = LOAD(t, FENCED) + 1;
	store(t, FENCED, fenced);
	if
	:: fenced >= LIGHT_AFTER ->
		fenced = 0;
#ifdef LIGHT_NO_FENCE
		store(t, LIGHT, 1)
#else
		store_full(t, LIGHT, 1)
#endif
	:: else ->
		fenced = 0
	fi
}

inline pin(t)
{
#ifdef PIN_ALWAYS_LIGHT
	light = 1;
#else
	light = LOAD(t, LIGHT);
#endif
	if
	:: d_step { buf[t].used == 0 -> mem[OTHERS]++; counted = 1 } /* the set is full */
	:: !light ->
#ifdef PIN_NO_FENCE
		store(t, PIN + t, 1);
#else
		store_full(t, PIN + t, 1);
#endif
		count_fenced(t)
	:: light ->
#ifndef PIN_LATE
		store(t, PIN + t, 1)
#endif
	fi
}

inline copy(t)
{
	assert(known > freed); /* a load from the region */
	store(t, DATA, known)
}

proctype user(byte t)
{
	byte known, key, light, counted, fenced, round;

	for (round : 1 .. ROUNDS) {
		/* the consumer learns a key that is live, or keeps the one that it knows */
		if
		:: d_step { LOAD(t, KEY) != 0 -> known = LOAD(t, KEY) }
		:: known
		:: freed == 2 -> break
		fi;
		pin(t);
#ifdef PIN_NO_CHECK
		key = known;
#else
		key = LOAD(t, KEY);
#endif
#ifdef PIN_LATE
		if
		:: light && !counted -> store(t, PIN + t, 1)
		:: else
		fi;
#endif
		light = 0;
		if
		:: key == known ->
#ifdef UNPIN_FIRST
			unpin(t);
			copy(t)
#else
			copy(t);
			unpin(t)
#endif
		:: else ->
			unpin(t)
		fi;
		key = 0
	}
}

init {
	atomic {
		run user(1);
		run user(2)
	}
}
