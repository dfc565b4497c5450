/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a key against copies that a peer announces: shm_announce, shm_announce_end,
 * omit_fences (src/soft/shm/transfer/direct.c) and shm_write_mapped (fast.h) of the peer;
 * soft_keys_invalidate, soft_keys_give, soft_keys_release (src/soft/key.c), fence_peers,
 * shm_engine_wait_key (src/soft/shm/connect/revoke.c) and send_file (src/soft/shm/transfer/map.c) of
 * the owner.
 *
 * One entry of the table is used twice, with keys 1 and 2. A thread of the owner frees each. The
 * owner's service thread gives the memory to the peer. The peer copies by a key that it knows to
 * have been live: with a fence, or without one in mapped memory after that. Property: once
 * the thread has waited for a key, no store for that key reaches memory, and the peer does not load
 * from the region.
 *
 * The lock of the table orders what is done under it, but is no fence for anything else. The check
 * of the key in send_file spares the peer a mapping; the property holds without it.
 *
 * mutant FREE_NO_FENCE: the key becomes dead without a full fence
 * mutant FREE_NO_HEAVY: fence_peers runs no heavy fence
 * mutant FREE_WAIT_FIRST: waits for the announcement, then makes the key dead
 * mutant FREE_GIVEN_FIRST: the mark is read before the key is dead
 * mutant FREE_UNFENCED_FIRST: is_unfenced is read before the key is dead
 * mutant FREE_NO_WAIT: does not wait for the announcement
 * mutant GIVE_MARK_LATE: the memory is given before the mark is stored
 * mutant GIVE_NO_FENCE: the mark is stored without a full fence
 * mutant GIVE_NO_MARK: the memory is given without a mark
 * mutant OMIT_NO_FENCE: no full fence behind the store of is_unfenced
 * mutant OMIT_NOT_STORED: the peer omits fences without telling
 * mutant OMIT_UNMAPPED: fences are omitted for memory that is not mapped
 * mutant ANNOUNCE_NO_FENCE: announcements have no fence
 * mutant ANNOUNCE_LATE: announces after checking the key
 * mutant ANNOUNCE_NO_CHECK: does not check the key behind the announcement
 * mutant END_FIRST: withdraws the announcement before the copy
 */
#define THREADS 3
#define DEPTH 2
#define ROUNDS 3

#define KEY 0
#define GIVEN 1
#define UNFENCED 2
#define ANNOUNCE 3
#define DATA 4
#define WORDS 5

#define OWNER 0
#define SERVICE 1
#define PEER 2

byte freed; /* the owner has waited for the keys up to this one */
#define ARRIVES(t, w, v) assert((w) != DATA || (v) > freed)
#include "memory.pml"

byte taken; /* the key of the entry, guarded by the lock of the table; 0: free */
chan ask = [1] of { byte };
chan give = [1] of { byte };

inline wait_announced(key)
{
#ifdef FREE_NO_WAIT
	skip
#else
	LOAD(OWNER, ANNOUNCE) != key
#endif
}

active proctype owner()
{
	byte key, is_given, is_unfenced, done;

	for (key : 1 .. 2) {
		d_step { buf[OWNER].used == 0; taken = key; mem[GIVEN] = 0 }
		store_full(OWNER, KEY, key);
		/* the consumer frees the region */
#ifdef FREE_GIVEN_FIRST
		is_given = LOAD(OWNER, GIVEN);
#endif
#ifdef FREE_UNFENCED_FIRST
		is_unfenced = LOAD(OWNER, UNFENCED);
#endif
#ifdef FREE_WAIT_FIRST
		wait_announced(key);
#endif
#ifdef FREE_NO_FENCE
		store(OWNER, KEY, 0);
#else
		store_full(OWNER, KEY, 0);
		fence(OWNER);
#endif
#ifndef FREE_GIVEN_FIRST
		is_given = LOAD(OWNER, GIVEN);
#endif
#ifndef FREE_UNFENCED_FIRST
		is_unfenced = LOAD(OWNER, UNFENCED);
#endif
#ifndef FREE_NO_HEAVY
		if
		:: is_given && is_unfenced -> heavy(OWNER, done)
		:: else
		fi;
#endif
#ifndef FREE_WAIT_FIRST
		wait_announced(key);
#endif
		d_step { freed = key; is_given = 0; is_unfenced = 0 }
		taken = 0
	}
}

inline mark()
{
#ifndef GIVE_NO_MARK
#ifdef GIVE_NO_FENCE
	store(SERVICE, GIVEN, 1)
#else
	store_full(SERVICE, GIVEN, 1)
#endif
#else
	skip
#endif
}

active proctype service()
{
	byte key;

end:
	do
	:: ask ? key ->
#ifdef GIVE_MARK_LATE
		if
		:: LOAD(SERVICE, KEY) == key ->
end_early:		give ! key
		:: else
		fi;
#endif
		if
		:: taken != key
		:: atomic { taken == key -> mark() }
#ifndef GIVE_NO_FENCE
			fence(SERVICE);
#endif
			if
			:: LOAD(SERVICE, KEY) == key ->
#ifndef GIVE_MARK_LATE
end_give:			give ! key
#else
				skip
#endif
			:: else
			fi
		fi;
		key = 0
	od
}

inline copy()
{
	assert(known > freed); /* a load from the region */
	store(PEER, DATA, known)
}

inline announce()
{
	store(PEER, ANNOUNCE, known);
#ifndef ANNOUNCE_NO_FENCE
#ifdef OMIT_UNMAPPED
	if
	:: !omits -> fence(PEER)
	:: else
	fi
#else
	if
	:: !(is_mapped && omits) -> fence(PEER)
	:: else
	fi
#endif
#endif
}

active proctype peer()
{
	byte known, key, map, is_mapped, omits, round;

	for (round : 1 .. ROUNDS) {
		/* the consumer learns a key that is live, or keeps the one that it knows */
		if
		:: d_step { LOAD(PEER, KEY) != 0 -> known = LOAD(PEER, KEY) }
		:: known
		:: freed == 2 -> break
		fi;
		/* it asks for the memory, and uses it when the answer is there */
		if
		:: map != known && empty(ask) -> ask ! known
		:: give ? map
		:: skip
		fi;
		is_mapped = (map == known);
		if
		:: is_mapped && !omits ->
#ifndef OMIT_NOT_STORED
			store(PEER, UNFENCED, 1);
#ifndef OMIT_NO_FENCE
			fence(PEER);
#endif
#endif
			omits = 1
		:: skip
		fi;
#ifdef ANNOUNCE_NO_CHECK
		key = known;
#elif defined(ANNOUNCE_LATE)
		key = LOAD(PEER, KEY);
#endif
		announce();
#if !defined(ANNOUNCE_NO_CHECK) && !defined(ANNOUNCE_LATE)
		key = LOAD(PEER, KEY);
#endif
#ifdef END_FIRST
		store(PEER, ANNOUNCE, 0);
#endif
		if
		:: key == known -> copy()
		:: else
		fi;
#ifndef END_FIRST
		store(PEER, ANNOUNCE, 0);
#endif
		d_step { key = 0; is_mapped = 0 }
	}
}
