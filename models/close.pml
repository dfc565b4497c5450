/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection against copies of the peer: shm_conn_close, shm_conn_finish
 * and the time-out of shm_engine_wait_key (src/soft/shm/connect/revoke.c) of the owner;
 * shm_announce, shm_announce_end, omit_fences (src/soft/shm/transfer/direct.c), shm_write_mapped
 * (fast.h) and soft_gate_copy (src/soft/gate.c) of the peer.
 *
 * The peer copies by shm_announce, and by write_mapped once it omits fences. It may be stopped, and
 * then its store buffer is empty; if it is stopped inside a restartable sequence, it continues at
 * the check of the gate. The owner waits for the announcement, or gives up at any time. Then it
 * pauses for longer than a thread that runs needs for the rest of a sequence, and than a store
 * stays in a buffer. Property: after the end was reported, no store of the peer reaches memory; and
 * the peer does not load from the region, unless the owner has given up.
 *
 * mutant CLOSE_NO_FENCE: `revoked` is stored without a full fence
 * mutant CLOSE_NO_HEAVY: no heavy fence for a peer that omits fences
 * mutant CLOSE_WAIT_FIRST: waits for the announcement, then stores `revoked`
 * mutant CLOSE_UNFENCED_FIRST: is_unfenced is read before `revoked` is stored
 * mutant CLOSE_NO_WAIT: does not wait for the announcement
 * mutant CLOSE_NO_PAUSE: gives up without a pause
 * mutant ANNOUNCE_NO_FENCE: announcements have no fence
 * mutant ANNOUNCE_LATE: `revoked` is read before the announcement
 * mutant OMIT_NO_FENCE: no full fence behind the store of is_unfenced
 * mutant OMIT_NOT_STORED: the peer omits fences without telling
 * mutant END_FIRST: withdraws the announcement before the copy
 * mutant GATE_NOT_CHECKED: the copy does not check the gate
 * mutant GATE_CHECKED_BEFORE: the gate is checked before the sequence begins
 * mutant GATE_NO_RESTART: a sequence that was interrupted continues where it was
 */
#define THREADS 2
#define DEPTH 3
#define ROUNDS 3

#define REVOKED 0
#define UNFENCED 1
#define ANNOUNCE 2
#define DATA 3
#define WORDS 4

#define OWNER 0
#define PEER 1

bool is_ended, has_given_up;
#define ARRIVES(t, w, v) assert((w) != DATA || !is_ended)
#include "memory.pml"

bool is_stopped; /* the peer does not run */
bool is_inside;	 /* the peer is in a restartable sequence */

inline wait_announced()
{
#ifndef CLOSE_NO_WAIT
	if
	:: LOAD(OWNER, ANNOUNCE) == 0
	:: LOAD(OWNER, ANNOUNCE) != 0 -> has_given_up = true;
#ifndef CLOSE_NO_PAUSE
		buf[PEER].used == 0 && (is_stopped || !is_inside)
#endif
	fi;
#endif
	skip
}

active proctype owner()
{
	byte is_unfenced, done;

#ifdef CLOSE_UNFENCED_FIRST
	is_unfenced = LOAD(OWNER, UNFENCED);
#endif
#ifdef CLOSE_WAIT_FIRST
	wait_announced();
#endif
#ifdef CLOSE_NO_FENCE
	store(OWNER, REVOKED, 1);
#else
	store_full(OWNER, REVOKED, 1);
	fence(OWNER);
#endif
#ifndef CLOSE_UNFENCED_FIRST
	is_unfenced = LOAD(OWNER, UNFENCED);
#endif
#ifndef CLOSE_NO_HEAVY
	if
	:: is_unfenced -> heavy(OWNER, done)
	:: else
	fi;
#endif
#ifndef CLOSE_WAIT_FIRST
	wait_announced();
#endif
	is_ended = true
}

/* The peer is stopped for a while. */
inline stop()
{
	d_step { buf[PEER].used == 0; is_stopped = true };
	is_stopped = false
}

/* Stores two words while the gate is open. */
inline gate_copy()
{
	left = 2;
#ifdef GATE_CHECKED_BEFORE
	is_closed = LOAD(PEER, REVOKED);
#endif
	is_inside = true;
	do
	:: left == 2 ->
#ifdef GATE_NOT_CHECKED
		is_closed = 0;
#elif !defined(GATE_CHECKED_BEFORE)
		is_closed = LOAD(PEER, REVOKED);
#endif
		if
		:: is_closed -> break
		:: !is_closed -> left = 1
		:: stop()
		fi
	:: left == 1 ->
		if
		:: store(PEER, DATA, 1); left = 0
		:: stop();
#ifndef GATE_NO_RESTART
		   left = 2
#endif
		fi
	:: left == 0 ->
		if
		:: store(PEER, DATA, 1); break
		:: stop();
#ifndef GATE_NO_RESTART
		   left = 2
#endif
		fi
	od;
	atomic { is_inside = false; is_closed = 0; left = 0 }
}

active proctype peer()
{
	byte omits, is_closed, is_fast, left, round;

	for (round : 1 .. ROUNDS) {
		if
		:: !omits ->
#ifndef OMIT_NOT_STORED
			store(PEER, UNFENCED, 1);
#ifndef OMIT_NO_FENCE
			fence(PEER);
#endif
#endif
			omits = 1
		:: skip
		fi;
		if
		:: omits -> is_fast = 1
		:: skip
		fi;
#ifdef ANNOUNCE_LATE
		is_closed = LOAD(PEER, REVOKED);
#endif
		store(PEER, ANNOUNCE, 1);
#ifndef ANNOUNCE_NO_FENCE
		if
		:: !omits -> fence(PEER)
		:: else
		fi;
#endif
		/* write_mapped leaves the check to the copy */
#ifndef ANNOUNCE_LATE
		if
		:: !is_fast -> is_closed = LOAD(PEER, REVOKED)
		:: else
		fi;
#endif
		if
		:: stop()
		:: skip
		fi;
#ifdef END_FIRST
		store(PEER, ANNOUNCE, 0);
#endif
		if
		:: !is_closed -> gate_copy() /* RDMA Write */
		:: !is_closed && !is_fast -> assert(!is_ended || has_given_up) /* RDMA Read */
		:: is_closed -> is_closed = 0
		fi;
#ifndef END_FIRST
		store(PEER, ANNOUNCE, 0);
#endif
		is_fast = 0
	}
}
