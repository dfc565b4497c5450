/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that the sender places (src/soft/shm/transfer/place.h). The peer is patient. A thread of
 * it posts a Receive, which is offered: shm_ep_post_recv, shm_place_offer, shm_patience_check. The
 * sender announces, copies, puts its entry and completes the Send: shm_place_send. Another thread
 * of the peer may begin to wait for the message: core_evd_wait, shm_engine_arm, shm_conn_arm. Or
 * the connection ends: shm_conn_close, shm_conn_finish, shm_place_take_last. The end waits for the
 * announcement, or gives up at any time.
 *
 * There is one connection, arming it never fails, and nothing makes it patient again.
 *
 * Properties, when no process can go on: a thread that waits has the message if there is one, and
 * the Receive is complete if the Send is. models/close.pml models the copy.
 *
 * mutant OFFER_NO_FENCE: no full fence between the list and the look at the waiter's mark
 * mutant OFFER_LOOKS_FIRST: looks at the mark, then offers the Receive
 * mutant OFFER_NO_LOOK: does not look at the mark
 * mutant OFFER_UNLISTED: the connection is not put on the list
 * mutant PUT_NO_FENCE: no full fence behind the entry
 * mutant PUT_LOOKS_FIRST: the sender looks at is_patient, then puts the entry
 * mutant PUT_NO_LOOK: the sender does not look at is_patient
 * mutant COMPLETE_LOOKS_FIRST: the sender looks at `revoked`, then puts the entry
 * mutant COMPLETE_NO_LOOK: the sender completes the Send without a look at `revoked`
 * mutant WAIT_NO_FENCE: no full fence between the mark and the look at the list
 * mutant WAIT_LIST_FIRST: looks at the list, then sets the mark
 * mutant OVER_NO_FENCE: no full fence between the end of patience and the look at the ring
 * mutant OVER_LOOKS_FIRST: looks at the ring, then ends the patience
 * mutant END_NO_FENCE: `revoked` is stored without a full fence
 * mutant END_TAKES_FIRST: takes what was placed, then stores `revoked`
 * mutant END_NO_TAKE: does not take what was placed
 */
#define THREADS 3
#define DEPTH 3

#define OVER 0 /* the patience of the peer */
#define ENTRY 1
#define REVOKED 2
#define ANNOUNCE 3
#define OFFER 4
#define LISTED 5
#define MARK 6
#define LOCK 7
#define WORDS 8

#define SENDER 0
#define POSTER 1
#define WAITER 2

#include "memory.pml"

bool has_packet;
bool is_send_complete, is_receive_complete;
bool waits;
bool is_ended; /* what was not complete is flushed */

inline lock(t)
{
	d_step { mem[LOCK] == 0; mem[LOCK] = 1 }
}

inline unlock(t)
{
	store(t, LOCK, 0)
}

active proctype sender()
{
	byte is_over, revoked;

	LOAD(SENDER, OFFER) == 1;
	store(SENDER, ANNOUNCE, 1);
	fence(SENDER);
	if
	:: LOAD(SENDER, REVOKED) -> goto out
	:: !LOAD(SENDER, REVOKED)
	fi;
	/* the copy, which the gate may end */
	if
	:: LOAD(SENDER, REVOKED) -> goto out
	:: skip
	fi;
#ifdef PUT_LOOKS_FIRST
	is_over = LOAD(SENDER, OVER);
#endif
#ifdef COMPLETE_LOOKS_FIRST
	revoked = LOAD(SENDER, REVOKED);
#endif
	store(SENDER, ENTRY, 1);
#ifndef PUT_NO_FENCE
	fence(SENDER);
#endif
#if !defined(PUT_LOOKS_FIRST) && !defined(PUT_NO_LOOK)
	is_over = LOAD(SENDER, OVER);
#endif
	store(SENDER, ANNOUNCE, 0);
#if !defined(COMPLETE_LOOKS_FIRST) && !defined(COMPLETE_NO_LOOK)
	revoked = LOAD(SENDER, REVOKED);
#endif
	is_send_complete = !revoked;
	has_packet = is_over;
out:
	store(SENDER, ANNOUNCE, 0)
}

/* One pass, or the last look. */
inline take(t)
{
	if
	:: LOAD(t, ENTRY) && !is_ended -> is_receive_complete = true
	:: !LOAD(t, ENTRY) || is_ended
	fi
}

inline end_patience(t)
{
#ifdef OVER_LOOKS_FIRST
	take(t);
#endif
	store(t, OVER, 1);
#ifndef OVER_NO_FENCE
	fence(t);
#endif
#ifndef OVER_LOOKS_FIRST
	take(t);
#endif
	skip
}

/* --- a thread of the peer that posts the Receive, and ends the connection --- */

inline offer()
{
	lock(POSTER);
#ifdef OFFER_LOOKS_FIRST
	mark = LOAD(POSTER, MARK);
#endif
	store(POSTER, OFFER, 1);
#ifndef OFFER_UNLISTED
	store(POSTER, LISTED, 1);
#endif
#ifndef OFFER_NO_FENCE
	fence(POSTER);
#endif
#if !defined(OFFER_LOOKS_FIRST) && !defined(OFFER_NO_LOOK)
	mark = LOAD(POSTER, MARK);
#endif
	if
	:: mark -> end_patience(POSTER)
	:: !mark
	fi;
	unlock(POSTER)
}

inline end_connection()
{
	lock(POSTER);
#ifdef END_TAKES_FIRST
	take(POSTER);
#endif
#ifdef END_NO_FENCE
	store(POSTER, REVOKED, 1);
#else
	store_full(POSTER, REVOKED, 1);
#endif
	if
	:: LOAD(POSTER, ANNOUNCE) == 0
	:: LOAD(POSTER, ANNOUNCE) != 0 /* gives up */
	fi;
#if !defined(END_TAKES_FIRST) && !defined(END_NO_TAKE)
	take(POSTER);
#endif
	waits = false;
	is_ended = true;
	unlock(POSTER)
}

active proctype poster()
{
	byte mark;

	offer();
	if
	:: end_connection()
	:: skip
	fi;
	timeout;
	assert(!waits || !mem[ENTRY] || is_receive_complete);
	assert(!is_send_complete || is_receive_complete || !is_ended)
}

/* --- one that waits for it --- */

active proctype waiter()
{
	byte is_listed;

#ifdef WAIT_LIST_FIRST
	is_listed = LOAD(WAITER, LISTED);
#endif
	store(WAITER, MARK, 1);
#ifndef WAIT_NO_FENCE
	fence(WAITER);
#endif
#ifndef WAIT_LIST_FIRST
	is_listed = LOAD(WAITER, LISTED);
#endif
	if
	:: is_listed -> lock(WAITER); end_patience(WAITER); unlock(WAITER)
	:: !is_listed
	fi;
	waits = !LOAD(WAITER, REVOKED);
end:
	has_packet && !is_ended;
	is_receive_complete = true
}
