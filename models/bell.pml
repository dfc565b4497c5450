/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the consumer that sleeps on the bell of a connection, or on its semaphore
 * (src/soft/shm/engine/drive.c): shm_sleep_begin, shm_sleep_end, wake_sleeper
 * (src/soft/shm/transfer/publish.c), wait_step_locked (src/core/event/wait.c),
 * core_waker_wake_locked, core_bell_wake and core_bell_wait (src/core/base/waker.c), with the parts
 * of models/wake.pml that they need: shm_conn_arm, shm_conn_disarm, shm_settle,
 * shm_conn_wake_if_armed and shm_service_conn.
 *
 * Property: when no process can go on, the consumer's thread has got every message. It does not
 * poll: it waits for each.
 *
 * The kernel compares the bell and adds the sleeper to its queue in one step. A sleep may end for
 * another reason once. Whether the thread finds the bell taken by another sleeper is chosen freely.
 * The locks are as in models/wake.pml; what the lock of the EVD guards is not in store buffers.
 * Sleeping needs no fence behind `sleeps`, no order of the bell and `sleeps`, and no service of the
 * connection if the bell was not rung: a peer that has woken nobody sends a packet.
 *
 * mutant WAKE_NO_FENCE: the peer reads `armed` without a full fence
 * mutant RUNG_NO_PACKET: ringing replaces the packet although it has woken nobody
 * mutant ARM_NO_FENCE: no full fence behind the store of `armed`
 * mutant ARM_NO_CHECK: sleeps without reading the peer's words once more
 * mutant DISARM_KEEPS: the reader of a packet leaves `armed` as it is
 * mutant SLEPT_NOT_SERVED: a thread that has slept on the bell does not serve the connection
 * mutant SEEN_AT_SLEEP: the bell is read when the sleep begins
 * mutant RING_NO_COUNT: a thread of the same process wakes without changing the bell
 * mutant ASLEEP_LATE: is_asleep is set after the last look at the queue
 * mutant POST_NO_WAKE: an event is queued without waking the waiter
 * mutant POST_BELL_ONLY: a waiter that sleeps on the semaphore is woken by the bell
 */
#define THREADS 3
#define DEPTH 2
#define MESSAGES 2

#define PUBLISHED 0
#define ARMED 1
#define SLEEPS 2
#define BELL 3
#define LOCK 4
#define WORDS 5

#define PEER 0
#define SERVICE 1
#define CONSUMER 2

#include "memory.pml"

/* guarded by the lock of the endpoint */
byte taken; /* messages */
bool is_disarmed = true;
byte packets;
/* guarded by the lock of the EVD */
byte events;
bool is_asleep, is_on_bell;
byte sem;

bool has_all;   /* the consumer's thread has got every message */
bool is_queued; /* the consumer's thread is in the kernel's queue for the bell */

inline lock(t)
{
	d_step { mem[LOCK] == 0; mem[LOCK] = 1 }
}

inline unlock(t)
{
	store(t, LOCK, 0)
}

/* --- the peer --- */

inline wake_if_armed()
{
#ifndef WAKE_NO_FENCE
	fence(PEER);
#endif
	armed = LOAD(PEER, ARMED);
	if
	:: !(armed & 1) || armed == woken
	:: (armed & 1) && armed != woken ->
		if
		:: LOAD(PEER, SLEEPS) ->
			/* core_bell_wake */
			d_step { buf[PEER].used == 0; mem[BELL]++ };
			if
			:: d_step { is_queued -> is_queued = false; woken = armed }
#ifdef RUNG_NO_PACKET
			:: !is_queued -> woken = armed
#else
			:: !is_queued -> packets++; woken = armed
#endif
			fi
		:: !LOAD(PEER, SLEEPS) ->
			packets++;
			woken = armed
		fi
	fi;
	armed = 0
}

active proctype peer()
{
	byte message, armed, woken;

	for (message : 1 .. MESSAGES) {
		store(PEER, PUBLISHED, message);
		wake_if_armed()
	}
}

/* --- one pass over the connection; locked --- */

/* core_waker_wake_locked, by the service thread */
inline wake_waiter()
{
#ifndef POST_NO_WAKE
	if
#ifdef POST_BELL_ONLY
	:: d_step { is_asleep -> is_asleep = false }
#else
	:: d_step { is_asleep && is_on_bell -> is_asleep = false }
#endif
#ifndef RING_NO_COUNT
		d_step { buf[SERVICE].used == 0; mem[BELL]++ };
#endif
		is_queued = false
#ifndef POST_BELL_ONLY
	:: d_step { is_asleep && !is_on_bell -> is_asleep = false; sem++ }
#endif
	:: !is_asleep
	fi
#else
	skip
#endif
}

inline pass(t)
{
	if
	:: LOAD(t, PUBLISHED) != taken ->
		d_step { taken = LOAD(t, PUBLISHED); events = taken };
		if
		:: t == SERVICE -> wake_waiter()
		:: t == CONSUMER /* the thread itself is awake */
		fi
	:: LOAD(t, PUBLISHED) == taken
	fi
}

/* --- arm and disarm; locked --- */

/* has_work: there is work to do first. */
inline arm(t)
{
	number = LOAD(t, ARMED);
	if
	:: !(number & 1) -> store(t, ARMED, number + 1)
	:: (number & 1)
	fi;
#ifndef ARM_NO_FENCE
	fence(t);
#endif
#ifndef ARM_NO_CHECK
	has_work = (LOAD(t, PUBLISHED) != taken);
#endif
	if
	:: has_work && !(number & 1) -> store(t, ARMED, number + 2)
	:: has_work && (number & 1)
	:: !has_work -> is_disarmed = false
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
	atomic { number = 0; is_disarmed = true }
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
	settle(SERVICE);
	unlock(SERVICE)
}

active proctype service()
{
	byte number, has_work;

	do
	:: packets -> serve_packet()
	:: timeout -> assert(has_all); break
	od
}

/* --- the consumer's thread --- */

inline sleep_begin()
{
	if
	:: seen = LOAD(CONSUMER, BELL);
	   store(CONSUMER, SLEEPS, 1);
	   fence(CONSUMER);
	   if
	   :: LOAD(CONSUMER, PUBLISHED) == taken -> on_bell = 1
	   :: LOAD(CONSUMER, PUBLISHED) != taken -> store(CONSUMER, SLEEPS, 0)
	   fi
	:: skip /* another thread, or another connection, has the sleeper */
	fi
}

inline sleep_on_bell()
{
	if
#ifdef SEEN_AT_SLEEP
	:: is_queued = true;
#else
	:: d_step { mem[BELL] == seen -> is_queued = true };
#endif
	   if
	   :: !is_queued
	   :: d_step { is_queued && !has_ended -> is_queued = false; has_ended = true }
	   fi
#ifndef SEEN_AT_SLEEP
	:: mem[BELL] != seen
#endif
	fi
}

inline serve_wake()
{
#ifndef SLEPT_NOT_SERVED
	lock(CONSUMER);
	disarm(CONSUMER);
	pass(CONSUMER);
	settle(CONSUMER);
	unlock(CONSUMER)
#else
	skip
#endif
}

inline wait()
{
	sleep_begin();
	if
	:: events != got /* arrived meanwhile */
#ifdef ASLEEP_LATE
	:: events == got;
	   d_step { is_asleep = true; is_on_bell = on_bell }
#else
	:: d_step { events == got -> is_asleep = true; is_on_bell = on_bell }
#endif
	   if
	   :: on_bell -> sleep_on_bell(); has_slept = 1
	   :: !on_bell -> d_step { sem > 0 -> sem-- }
	   fi;
	   is_asleep = false
	fi;
	if
	:: on_bell -> store(CONSUMER, SLEEPS, 0)
	:: !on_bell
	fi;
	if
	:: has_slept -> serve_wake()
	:: !has_slept
	fi;
	d_step { seen = 0; on_bell = 0; has_slept = 0; sem = 0 }
}

active proctype consumer()
{
	byte got, number, has_work, seen, on_bell, has_slept;
	bool has_ended;

	do
	:: events == MESSAGES -> break
	:: d_step { events != MESSAGES -> got = events }
		lock(CONSUMER);
		pass(CONSUMER);
		arm(CONSUMER);
		unlock(CONSUMER);
		if
		:: !has_work -> wait()
		:: has_work -> has_work = 0
		fi
	od;
	has_all = true
}
