/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hand-out of a shared receive queue (src/core/srq/srq.c): core_srq_take,
 * core_srq_serve, core_srq_end_offer, core_srq_cancel_wait, with core_srq_post_recv (srq.c),
 * core_ep_offer (src/core/ep/ep.c), shm_ep_post_recv and shm_engine_serve_srqs.
 *
 * Messages arrive at three endpoints, two threads post buffers, one endpoint is closed, and the
 * service thread serves the queue when it is kicked. A pass over a connection that waits may try
 * again at any time. Properties: when no process can go on, no connected endpoint waits while a
 * buffer is available; and an endpoint takes a buffer only if fewer endpoints than there are
 * buffers began to wait before it.
 *
 * An offer that is in progress serves the endpoints behind one that leaves, so the search cannot
 * show that cancelling and its kick are needed.
 *
 * The lock of the queue and those of the endpoints guard everything, so there are no store buffers.
 *
 * mutant POST_NO_SERVE: posting a buffer does not serve the endpoints that wait
 * mutant SERVE_ONCE: only the first endpoint is offered a buffer
 * mutant OFFER_KEPT: a new wait keeps the mark of an earlier offer
 * mutant OFFER_ANY: the end of an offer also removes an endpoint that has asked and waits again
 * mutant OFFER_NOT_ENDED: an endpoint that does not take what it was offered stays on the list
 * mutant TAKE_STAYS: an endpoint that takes a buffer stays on the list
 * mutant TAKE_ANY: an endpoint takes a buffer whenever one is available
 * mutant WAIT_FRONT: an endpoint that begins to wait goes to the front
 */
#define ENDPOINTS 3
#define CLOSED 1 /* the endpoint that is closed */

bool ep_locked[ENDPOINTS];
/* guarded by the lock of the endpoint */
byte messages[ENDPOINTS]; /* that have arrived */
bool is_blocked[ENDPOINTS];
bool is_closing[ENDPOINTS];
bool has_asked[ENDPOINTS]; /* has called core_srq_take since the offer began */
/* guarded by the lock of the queue */
byte available;
byte list[ENDPOINTS];
byte waiting;
bool is_waiting[ENDPOINTS], is_offered[ENDPOINTS];

bool is_kicked;
/* when each endpoint began to wait, counted from 1; 0: it does not */
byte since[ENDPOINTS];
byte clock;

/* The place on the list, or its length. */
inline find(e)
{
	at = 0;
	do
	:: at < waiting && list[at] != e -> at++
	:: else -> break
	od
}

inline remove(e)
{
	if
	:: is_waiting[e] ->
		find(e);
		do
		:: at + 1 < waiting -> list[at] = list[at + 1]; at++
		:: else -> break
		od;
		waiting--;
		list[waiting] = 0;
		is_waiting[e] = false
	:: else
	fi;
	at = 0
}

inline add(e)
{
#ifndef OFFER_KEPT
	is_offered[e] = false;
#endif
	if
	:: !is_waiting[e] ->
		is_waiting[e] = true;
#ifdef WAIT_FRONT
		at = waiting;
		do
		:: at > 0 -> list[at] = list[at - 1]; at--
		:: else -> break
		od;
		list[0] = e;
#else
		list[waiting] = e;
#endif
		waiting++
	:: else
	fi;
	at = 0
}

/* Fewer endpoints than there are buffers began to wait before it and still do. */
inline assert_turn(e)
{
	at = 0;
	earlier = 0;
	do
	:: at < ENDPOINTS ->
		if
		:: at != e && since[at] && !is_closing[at] && (!since[e] || since[at] < since[e]) ->
			earlier++
		:: else
		fi;
		at++
	:: else -> break
	od;
	assert(earlier < available);
	earlier = 0;
	at = 0
}

/* core_srq_take */
inline take(e)
{
	d_step {
		has_asked[e] = true;
		if
		:: is_waiting[e] -> find(e)
		:: else -> at = waiting
		fi;
#ifdef TAKE_ANY
		at = 0;
#endif
		if
		:: at < available ->
			assert_turn(e);
#ifndef TAKE_STAYS
			remove(e);
#endif
			available--;
			messages[e]--;
			is_blocked[e] = false;
			since[e] = 0
		:: else ->
			add(e);
			is_blocked[e] = true;
			if
			:: !since[e] -> clock++; since[e] = clock
			:: else
			fi
		fi;
		at = 0
	}
}

/* Carries out the messages of a connection, until one has to wait. */
inline receive(e)
{
	do
	:: messages[e] && !is_closing[e] ->
		take(e);
		if
		:: is_blocked[e] -> break
		:: !is_blocked[e]
		fi
	:: else -> break
	od
}

/* core_ep_offer. The queue is not locked between the two parts. */
inline offer(e)
{
	atomic {
		!ep_locked[e];
		ep_locked[e] = true;
		has_asked[e] = false;
		if
		:: is_blocked[e] && !is_closing[e] -> receive(e)
		:: else
		fi
	}
	atomic {
#ifndef OFFER_NOT_ENDED
		if
#ifdef OFFER_ANY
		:: is_offered[e] -> remove(e)
#else
		:: is_offered[e] && !has_asked[e] -> remove(e)
#endif
		:: else
		fi;
#endif
		ep_locked[e] = false
	}
}

/* core_srq_serve */
inline serve()
{
	do
	:: atomic {
		at = 0;
		do
		:: at < waiting && at < available && is_offered[list[at]] -> at++
		:: else -> break
		od;
		next = ENDPOINTS;
		if
		:: at < waiting && at < available ->
			next = list[at];
			is_offered[next] = true
		:: else
		fi;
		at = 0
	   }
	   if
	   :: next < ENDPOINTS -> offer(next)
	   :: else -> break
	   fi;
#ifdef SERVE_ONCE
	   break
#endif
	od;
	next = 0
}

/* A pass takes what has arrived. One that finds no new message may try again. */
proctype connection(byte e; byte count; byte tries)
{
	byte at, earlier;

	do
	:: atomic { count > 0 && !ep_locked[e] -> count--; messages[e]++; receive(e) }
	:: atomic { tries > 0 && !ep_locked[e] -> tries--; receive(e) }
	:: count == 0 -> break
	od
}

proctype poster(byte count)
{
	byte at, earlier, next;
	bool has_waiting;

	do
	:: count > 0 ->
		d_step { available++; has_waiting = waiting > 0; count-- };
#ifndef POST_NO_SERVE
		if
		:: has_waiting -> has_waiting = false; serve()
		:: !has_waiting
		fi
#endif
	:: count == 0 -> break
	od
}

/* The connection ends; then the core flushes the endpoint, which cancels the wait, or not yet. */
proctype closer()
{
	byte at;
	bool is_next;

	atomic { !ep_locked[CLOSED] -> is_closing[CLOSED] = true };
	if
	:: atomic {
		!ep_locked[CLOSED];
		is_next = is_waiting[CLOSED] && available;
		remove(CLOSED);
		is_kicked = is_kicked || is_next;
		is_blocked[CLOSED] = false
	   }
	:: true /* a copy of the peer is under way */
	fi
}

active proctype service()
{
	byte at, earlier, next;

	do
	:: is_kicked -> is_kicked = false; serve()
	:: timeout -> break
	od;
	for (next : 0 .. ENDPOINTS - 1) {
		assert(!available || !is_blocked[next] || is_closing[next])
	}
}

init {
	atomic {
		run connection(0, 2, 1);
		run connection(1, 1, 0);
		run connection(2, 1, 0);
		run poster(2);
		run poster(1);
		run closer()
	}
}
