/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arming and waking by packets (transfer/publish.c and engine/drive.c in src/soft/shm).
 * The peer publishes: shm_conn_wake, shm_conn_wake_if_armed. The service thread reads packets and
 * ticks: shm_service_conn, shm_conn_disarm, shm_settle, service_progress. A thread of the
 * consumer polls and arms: shm_drive, shm_fence_count_taken, shm_conn_arm. models/bell.pml adds
 * threads that sleep on the bell.
 *
 * Property: when no process can go on, every message was taken. A wake-up that is lost leaves the
 * service thread asleep with a message in the ring.
 *
 * The lock of the endpoint is a word that is taken by a locked instruction and released by a plain
 * store. What it guards is not in store buffers. Whether a thread of the consumer drives the
 * connections, whether the peer may omit its fence and whether the socket is full are chosen
 * freely.
 *
 * mutant WAKE_NO_FENCE: the peer reads `armed` without a full fence
 * mutant WAKE_ARMED_FIRST: the peer reads `armed` before it publishes
 * mutant WAKE_POLLED_FIRST: the peer reads is_polled before it publishes
 * mutant WAKE_ONCE: the peer answers only the first number
 * mutant WAKE_NO_RETRY: a packet that could not be sent is not sent later
 * mutant ARM_NO_FENCE: no full fence behind the store of `armed`
 * mutant ARM_NO_CHECK: sleeps without reading the peer's words once more
 * mutant ARM_CHECK_FIRST: reads the peer's words, then stores `armed`
 * mutant ARM_SAME: `armed` is 1 each time
 * mutant POLLED_NO_HEAVY: no heavy fence behind the end of is_polled
 * mutant POLLED_KEPT: is_polled stays set while the side sleeps
 * mutant POLLED_LATE: is_polled is cleared behind `armed`
 * mutant POLLED_ARMED: is_polled is set although the connection is armed
 * mutant DISARM_KEEPS: the reader of a packet leaves `armed` as it is
 */
#define THREADS 3
#define DEPTH 2
#define MESSAGES 3
#define ROUNDS 2 /* of the consumer's thread */

#define PUBLISHED 0
#define ARMED 1
#define POLLED 2
#define LOCK 3
#define WORDS 4

#define PEER 0
#define SERVICE 1
#define CONSUMER 2

#include "memory.pml"

/* guarded by the lock of the endpoint */
byte taken; /* messages */
bool is_disarmed = true;
bool is_active = true; /* on the list of active connections */
byte packets;

inline lock(t)
{
	d_step { mem[LOCK] == 0; mem[LOCK] = 1 }
}

inline unlock(t)
{
	store(t, LOCK, 0)
}

/* --- the peer --- */

inline send_packet()
{
	if
	:: packets++; woken = armed; is_pending = false
	:: failures < 2 -> failures++; /* the socket is full */
#ifdef WAKE_NO_RETRY
	   woken = armed
#else
	   is_pending = true
#endif
	fi
}

inline wake_if_armed()
{
#ifndef WAKE_NO_FENCE
	fence(PEER);
#endif
#ifndef WAKE_ARMED_FIRST
	armed = LOAD(PEER, ARMED);
#endif
	if
#ifdef WAKE_ONCE
	:: !(armed & 1) || woken -> is_pending = false
	:: (armed & 1) && !woken -> send_packet()
#else
	:: !(armed & 1) || armed == woken -> is_pending = false
	:: (armed & 1) && armed != woken -> send_packet()
#endif
	fi;
	armed = 0
}

inline wake()
{
#ifndef WAKE_POLLED_FIRST
	is_polled = LOAD(PEER, POLLED);
#endif
	if
	:: is_polled -> is_pending = false
	:: !is_polled -> wake_if_armed()
	fi;
	is_polled = 0
}

active proctype peer()
{
	byte message, armed, woken, is_polled;
	byte failures;
	bool is_pending;

	for (message : 1 .. MESSAGES) {
#ifdef WAKE_ARMED_FIRST
		armed = LOAD(PEER, ARMED);
#endif
#ifdef WAKE_POLLED_FIRST
		is_polled = LOAD(PEER, POLLED);
#endif
		store(PEER, PUBLISHED, message);
		wake()
	};
	do
	:: is_pending -> wake()
	:: !is_pending -> break
	od
}

/* --- one pass over the connection; locked --- */

inline count_taken(t)
{
	if
#ifdef POLLED_ARMED
	:: !LOAD(t, POLLED) -> store(t, POLLED, 1)
#else
	:: is_disarmed && !LOAD(t, POLLED) -> store(t, POLLED, 1)
#endif
	:: skip
	fi
}

inline pass(t)
{
	if
	:: LOAD(t, PUBLISHED) != taken ->
		taken = LOAD(t, PUBLISHED);
		count_taken(t)
	:: LOAD(t, PUBLISHED) == taken
	fi
}

/* --- arm and disarm; locked --- */

inline end_polling(t)
{
#ifndef POLLED_KEPT
	if
	:: LOAD(t, POLLED) ->
		store(t, POLLED, 0);
#ifndef POLLED_NO_HEAVY
		heavy(t, done)
#endif
	:: !LOAD(t, POLLED)
	fi
#else
	skip
#endif
}

/* has_work: there is work to do first. */
inline arm(t)
{
	number = LOAD(t, ARMED);
#ifndef POLLED_LATE
	end_polling(t);
#endif
#ifdef ARM_CHECK_FIRST
	has_work = (LOAD(t, PUBLISHED) != taken);
#endif
	if
#ifdef ARM_SAME
	:: !(number & 1) -> store(t, ARMED, 1)
#else
	:: !(number & 1) -> store(t, ARMED, number + 1)
#endif
	:: (number & 1)
	fi;
#ifndef ARM_NO_FENCE
	fence(t);
#endif
#if !defined(ARM_CHECK_FIRST) && !defined(ARM_NO_CHECK)
	has_work = (LOAD(t, PUBLISHED) != taken);
#endif
#ifdef POLLED_LATE
	end_polling(t);
#endif
	if
	:: has_work && !(number & 1) ->
		store(t, ARMED, number + 2)
	:: has_work && (number & 1)
	:: !has_work -> atomic { is_disarmed = false; is_active = false }
	fi;
	number = 0
}

inline disarm(t)
{
#ifndef DISARM_KEEPS
	number = LOAD(t, ARMED);
	if
	:: (number & 1) -> store(t, ARMED, number + 1)
	:: !(number & 1)
	fi;
	fence(t);
#endif
	atomic { number = 0; is_disarmed = true; is_active = true }
}

inline settle(t)
{
	do
	:: arm(t);
	   if
	   :: has_work -> has_work = 0; pass(t)
	   :: !has_work -> break
	   fi
	od
}

/* --- the service thread --- */

inline serve_packet()
{
	lock(SERVICE);
	disarm(SERVICE);
	pass(SERVICE);
	unlock(SERVICE);
	packets--;
	lock(SERVICE);
	if
	:: !is_disarmed -> disarm(SERVICE); pass(SERVICE)
	:: is_disarmed
	fi;
	unlock(SERVICE);
	if
	:: skip /* a thread of the consumer drives the connections */
	:: lock(SERVICE);
	   settle(SERVICE);
	   unlock(SERVICE)
	fi
}

inline tick()
{
	lock(SERVICE);
	if
	:: is_active -> pass(SERVICE); arm(SERVICE); has_work = 0
	:: !is_active
	fi;
	unlock(SERVICE)
}

active proctype service()
{
	byte number, has_work, done;
	bool is_asleep; /* without limit */

	do
	:: packets -> is_asleep = false; serve_packet()
	:: !is_asleep && is_disarmed -> tick()
	:: !is_asleep && !is_disarmed -> is_asleep = true
	:: timeout -> assert(taken == MESSAGES); break
	od
}

/* --- the consumer's thread --- */

active proctype consumer()
{
	byte number, has_work, done, round;

	for (round : 1 .. ROUNDS) {
		/* a post puts the connection on the list and leaves it armed */
		if
		:: is_active = true
		:: skip
		fi;
		if
		:: is_active ->
			lock(CONSUMER);
			pass(CONSUMER);
			if
			:: arm(CONSUMER); has_work = 0
			:: skip
			fi;
			unlock(CONSUMER)
		:: !is_active
		fi
	}
}
