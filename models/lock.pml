/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The biased lock (src/core/base/lock.h, lock.c): core_lock_enter, core_lock_acquire,
 * core_lock_try, core_lock_release, core_lock_wait, lock_unbias, revoke_bias, lock_consider_bias.
 *
 * Three threads take the lock, by the mutex or, if it is biased to them, by `inside`. Properties:
 * one thread holds it at a time, each sees what the holder before it has stored, no thread unlocks
 * a mutex that is not locked, and all threads finish.
 *
 * A thread that takes the mutex may bias the lock each time, not after a streak only. The mutex is
 * a word that is taken by a locked instruction and released by a plain store. A wait on a condition
 * variable releases the mutex and takes it again. Threads have pages of their own.
 *
 * violation: deadlock
 * mutant ENTER_NO_CHECK: the owner does not load `owner` behind the store of `inside`
 * mutant ENTER_LATE: the owner stores `inside` behind both loads of `owner`
 * mutant ENTER_STAYS: an owner that finds itself revoked leaves `inside` set
 * mutant REVOKE_NO_HEAVY: no heavy fence between `owner` and `inside`
 * mutant REVOKE_NO_WAIT: does not wait while `inside` is set
 * mutant REVOKE_WAIT_FIRST: waits for `inside`, then clears `owner`
 * mutant REVOKE_FENCE_FIRST: the heavy fence runs before `owner` is cleared
 * mutant REVOKE_KEEPS: `owner` is not cleared
 * mutant ACQUIRE_NO_REVOKE: the mutex alone is taken for the lock
 * mutant FORMER_UNUSED: another thread becomes the owner at once
 * mutant FORMER_ANY: any thread that takes the mutex clears `former`
 * mutant ENTERED_KEPT: is_entered stays set when the lock is taken by the mutex
 * mutant ENTERED_NOT_SET: is_entered is not set when the lock was biased
 * mutant ENTERED_LATE: is_entered is set behind the release of the mutex
 * mutant RELEASE_FIRST: the lock is released before the last store inside
 * mutant WAIT_NO_UNBIAS: a bias that arose during a wait stays
 * mutant WAIT_ENTERED: waits on the condition although the lock is held by `inside`
 */
#define THREADS 3
#define DEPTH 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

#define OWNER 0
#define INSIDE 1
#define MUTEX 2
#define ENTERED 3
#define DATA 4
#define WORDS 5

#include "memory.pml"

#define NOBODY 0
#define SELF (t + 1)

byte former; /* guarded by the mutex */
byte holders, count;

inline mutex_lock()
{
	d_step { mem[MUTEX] == 0; mem[MUTEX] = 1 }
}

inline mutex_unlock()
{
	atomic {
		assert(mem[MUTEX] == 1);
		store(t, MUTEX, 0)
	}
}

inline revoke()
{
	former = owner;
#ifdef REVOKE_FENCE_FIRST
	heavy(t, done);
#endif
#ifdef REVOKE_WAIT_FIRST
	LOAD(t, INSIDE) == 0;
#endif
#ifndef REVOKE_KEEPS
	store(t, OWNER, NOBODY);
#endif
#if !defined(REVOKE_NO_HEAVY) && !defined(REVOKE_FENCE_FIRST)
	heavy(t, done);
#endif
#if !defined(REVOKE_NO_WAIT) && !defined(REVOKE_WAIT_FIRST)
	LOAD(t, INSIDE) == 0;
#endif
	skip
}

inline unbias()
{
	owner = LOAD(t, OWNER);
	if
#ifndef ACQUIRE_NO_REVOKE
	:: owner != NOBODY -> revoke()
#else
	:: owner != NOBODY
#endif
	:: owner == NOBODY
	fi;
	owner = 0;
#ifndef ENTERED_KEPT
	store(t, ENTERED, 0)
#endif
}

inline consider_bias()
{
#ifdef FORMER_UNUSED
	former = NOBODY;
#endif
	if
#ifdef FORMER_ANY
	:: former != NOBODY -> former = NOBODY
#endif
	:: former == SELF -> former = NOBODY
	:: former != SELF
	fi;
	if
	:: former == NOBODY -> store(t, OWNER, SELF)
	:: skip
	fi
}

inline enter()
{
	if
	:: LOAD(t, OWNER) == SELF ->
#ifndef ENTER_LATE
		store(t, INSIDE, 1);
#endif
#ifndef ENTER_NO_CHECK
		if
		:: LOAD(t, OWNER) == SELF ->
#ifdef ENTER_LATE
			store(t, INSIDE, 1);
#endif
			is_held = true
		:: LOAD(t, OWNER) != SELF ->
#ifndef ENTER_STAYS
			store(t, INSIDE, 0)
#else
			skip
#endif
		fi
#else
		is_held = true
#endif
	:: LOAD(t, OWNER) != SELF
	fi
}

inline acquire()
{
	enter();
	if
	:: is_held
	:: !is_held ->
		mutex_lock();
		unbias();
		consider_bias();
		is_held = true
	fi
}

inline release()
{
	if
	:: LOAD(t, ENTERED) ->
		store(t, INSIDE, 0)
	:: !LOAD(t, ENTERED) ->
#ifdef ENTERED_NOT_SET
		mutex_unlock()
#else
		owner = LOAD(t, OWNER);
#ifdef ENTERED_LATE
		mutex_unlock();
		store(t, ENTERED, owner != NOBODY);
#else
		store(t, ENTERED, owner != NOBODY);
		mutex_unlock();
#endif
		owner = 0
#endif
	fi
}

/* core_lock_wait. The lock is released in between. */
inline wait()
{
	holders--;
#ifndef WAIT_ENTERED
	if
	:: LOAD(t, ENTERED) ->
		release();
		mutex_lock();
		unbias()
	:: !LOAD(t, ENTERED) ->
#endif
		store(t, OWNER, NOBODY);
		mutex_unlock();
		mutex_lock();
#ifndef WAIT_NO_UNBIAS
		unbias()
#else
		skip
#endif
#ifndef WAIT_ENTERED
	fi;
#endif
	d_step { assert(holders == 0); holders++ }
}

inline work()
{
	d_step { assert(holders == 0); holders++ };
	assert(LOAD(t, DATA) == count);
	if
	:: wait()
	:: skip
	fi;
#ifdef RELEASE_FIRST
	holders--;
	release();
	d_step { buf[t].used < DEPTH; count++ };
	store(t, DATA, count)
#else
	atomic { store(t, DATA, count + 1); count++; holders-- };
	release()
#endif
}

proctype thread(byte t)
{
	byte owner, done, round;
	bool is_held;

	for (round : 1 .. ROUNDS) {
		if
		:: acquire()
		:: enter() /* core_lock_try */
		fi;
		if
		:: is_held -> work()
		:: !is_held
		fi;
		is_held = false
	}
}

init {
	atomic {
		if
		:: mem[OWNER] = 1; mem[ENTERED] = 1
		:: skip
		fi;
		run thread(0);
		run thread(1);
		run thread(2)
	}
}
