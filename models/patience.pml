/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Patience (src/soft/shm/transfer/patience.h). The peer reports what is done: shm_conn_flush,
 * shm_patience_needs_packet. A thread posts: shm_post_fast, shm_patience_check. Another one waits
 * for completions: core_evd_wait, shm_engine_arm. The service thread serves and arms the
 * connection: shm_conn_disarm, shm_conn_pass, shm_conn_arm, for packets and at other times, as for
 * a message.
 *
 * Property: when no process can go on, the waiter has all completions. The time after which a
 * packet follows a quiet report is left out, so it hides nothing.
 *
 * mutant POST_NO_FENCE: no full fence between the list and the look at the waiter's mark
 * mutant POST_LOOKS_FIRST: a post looks at the mark, then puts the connection on the list
 * mutant POST_NO_LOOK: a post does not look at the mark
 * mutant WAIT_NO_FENCE: no full fence between the mark and the look at the list
 * mutant WAIT_LIST_FIRST: looks at the list, then sets the mark
 * mutant ARM_UNLISTED: a patient connection with requests leaves the list
 * mutant ARM_AGAIN: patient although a thread of the consumer has armed it and taken it off the list
 * mutant REPORT_NO_FENCE: the peer looks at is_patient without a full fence
 * mutant REPORT_LOOKS_FIRST: the peer looks at is_patient, then reports
 * mutant END_NO_FENCE: the end of patience has no full fence
 * mutant END_NO_LOOK: the end of patience does not look at what is reported
 */
#define THREADS 4
#define DEPTH 3
#define MESSAGES 2
#define ROUNDS 2 /* of the service thread without a packet */

#define ENTRY 0 /* requests that are published */
#define DONE 1
#define PATIENT 2
#define LISTED 3
#define MARK 4
#define LOCK 5
#define WORDS 6

#define PEER 0
#define POSTER 1
#define WAITER 2
#define SERVICE 3

#include "memory.pml"

/* guarded by the lock of the endpoint */
byte posted, events; /* requests, and completions of them */
bool is_patient, is_armed;
bool is_pending; /* the service thread is to serve the connection */
bool has_packet;

inline lock(t)
{
	d_step { mem[LOCK] == 0; mem[LOCK] = 1 }
}

inline unlock(t)
{
	store(t, LOCK, 0)
}

inline set_patient(t, value)
{
	if
	:: is_patient != value -> is_patient = value; store(t, PATIENT, value)
	:: is_patient == value
	fi
}

/* shm_patience_check without its first fence */
inline check(t, mark)
{
	if
	:: is_patient && mark ->
		set_patient(t, false);
#ifndef END_NO_FENCE
		fence(t);
#endif
#ifndef END_NO_LOOK
		if
		:: LOAD(t, DONE) != events -> is_pending = true
		:: LOAD(t, DONE) == events
		fi
#endif
	:: !is_patient || !mark
	fi
}

inline pass(t)
{
	events = LOAD(t, DONE)
}

/* A thread of the consumer goes to sleep: shm_conn_arm. */
inline arm_as_consumer(t)
{
	lock(t);
	set_patient(t, false);
	fence(t);
	if
	:: LOAD(t, DONE) != events -> pass(t) /* stays as it was */
	:: LOAD(t, DONE) == events -> is_armed = true; store(t, LISTED, 0)
	fi;
	unlock(t)
}

/* --- the peer's service thread --- */

active proctype peer()
{
	byte done, patient;

	for (done : 1 .. MESSAGES) {
		LOAD(PEER, ENTRY) >= done;
#ifdef REPORT_LOOKS_FIRST
		patient = LOAD(PEER, PATIENT);
#endif
		store(PEER, DONE, done);
#ifndef REPORT_NO_FENCE
		fence(PEER);
#endif
#ifndef REPORT_LOOKS_FIRST
		patient = LOAD(PEER, PATIENT);
#endif
		if
		:: !patient -> has_packet = true
		:: patient
		fi;
		patient = 0
	}
}

/* --- a thread of the consumer that posts --- */

active proctype poster()
{
	byte message, mark;

	for (message : 1 .. MESSAGES) {
		lock(POSTER);
		posted = message;
#ifdef POST_LOOKS_FIRST
		mark = LOAD(POSTER, MARK);
#endif
		store(POSTER, ENTRY, message);
		store(POSTER, LISTED, 1);
#ifndef POST_NO_FENCE
		fence(POSTER);
#endif
#ifndef POST_LOOKS_FIRST
		mark = LOAD(POSTER, MARK);
#endif
#ifndef POST_NO_LOOK
		check(POSTER, mark);
#endif
		mark = 0;
		unlock(POSTER);
		/* it waits for something else for a while */
		if
		:: LOAD(POSTER, LISTED) -> arm_as_consumer(POSTER)
		:: skip
		fi
	}
}

/* --- one that waits for all completions --- */

inline arm_and_sleep()
{
#ifndef WAIT_LIST_FIRST
	is_listed = LOAD(WAITER, LISTED);
#endif
	if
	:: is_listed -> arm_as_consumer(WAITER)
	:: !is_listed
	fi;
	is_listed = 0;
	events != seen; /* sleeps */
	seen = 0
}

active proctype waiter()
{
	byte seen, is_listed;

#ifdef WAIT_LIST_FIRST
	is_listed = LOAD(WAITER, LISTED);
#endif
	store(WAITER, MARK, 1);
#ifndef WAIT_NO_FENCE
	fence(WAITER);
#endif
	do
	:: events == MESSAGES -> break
	:: atomic { events != MESSAGES -> seen = events }; arm_and_sleep()
	od
}

/* --- the service thread --- */

inline arm()
{
#ifdef ARM_AGAIN
	set_patient(SERVICE, true);
#else
	if
	:: !is_armed || is_patient -> set_patient(SERVICE, true)
	:: is_armed && !is_patient
	fi;
#endif
	fence(SERVICE);
	mark = LOAD(SERVICE, MARK);
	check(SERVICE, mark);
	mark = 0;
	if
	:: LOAD(SERVICE, DONE) != events ->
		if
		:: !is_armed -> set_patient(SERVICE, false)
		:: is_armed
		fi
	:: LOAD(SERVICE, DONE) == events ->
		is_settled = true;
		is_armed = true;
		if
#ifndef ARM_UNLISTED
		:: is_patient && posted != events
		:: !is_patient || posted == events -> store(SERVICE, LISTED, 0)
#else
		:: store(SERVICE, LISTED, 0)
#endif
		fi
	fi
}

/* A packet or a message: disarm, then passes until it can be armed. */
inline serve()
{
	lock(SERVICE);
	set_patient(SERVICE, false);
	is_armed = false;
	fence(SERVICE);
	store(SERVICE, LISTED, 1);
	pass(SERVICE);
	unlock(SERVICE); /* reads the packet */
	lock(SERVICE);
	arm();
	do
	:: !is_settled -> pass(SERVICE); arm()
	:: is_settled -> break
	od;
	is_settled = false;
	unlock(SERVICE)
}

active proctype service()
{
	byte mark, round;
	bool is_settled;

	do
	:: round < ROUNDS -> round++; serve()
	:: has_packet -> has_packet = false; serve()
	:: is_pending -> is_pending = false; lock(SERVICE); pass(SERVICE); unlock(SERVICE)
	:: timeout -> assert(events == MESSAGES); break
	od
}
