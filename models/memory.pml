/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory with store buffers, as on x86 (TSO). A model defines THREADS, WORDS and DEPTH and includes
 * this file. Thread t stores into its own buffer; the process `memory` moves the oldest store of a
 * buffer to memory at any time. A load returns the newest store to that word in the thread's own
 * buffer, else the word in memory.
 *
 * A full fence waits until the thread's own buffer is empty. A light fence (core_fence_light) only
 * keeps the compiler from reordering, so it is the order of two statements here. A heavy fence
 * (core_fence_heavy, membarrier) has each thread execute a full fence at some moment before it
 * returns, in any order.
 *
 * ARRIVES(t, w, v) is what a model checks when a store reaches memory.
 */
#ifndef ARRIVES
#define ARRIVES(t, w, v) skip
#endif

typedef buffer {
	byte used;
	byte word[DEPTH];
	byte value[DEPTH]
};
byte mem[WORDS];
buffer buf[THREADS];

#define NEWEST(t, w, i, rest) (buf[t].used > i && buf[t].word[i] == (w) -> buf[t].value[i] : rest)
#if DEPTH == 2
#define LOAD(t, w) NEWEST(t, w, 1, NEWEST(t, w, 0, mem[w]))
#elif DEPTH == 3
#define LOAD(t, w) NEWEST(t, w, 2, NEWEST(t, w, 1, NEWEST(t, w, 0, mem[w])))
#else
#error "DEPTH must be 2 or 3"
#endif

/* A store that is not a full fence: relaxed or release. Waits while the buffer is full. */
inline store(t, w, v)
{
	d_step {
		buf[t].used < DEPTH;
		buf[t].word[buf[t].used] = w;
		buf[t].value[buf[t].used] = v;
		buf[t].used++
	}
}

/* Full fence. */
inline fence(t)
{
	buf[t].used == 0
}

/* A sequentially consistent store, or another locked instruction that writes the word. */
inline store_full(t, w, v)
{
	d_step {
		buf[t].used == 0;
		mem[w] = v;
		ARRIVES(t, w, mem[w])
	}
}

/* Heavy fence of thread t. `done` is a byte of the caller: the threads that had their fence. */
inline heavy(t, done)
{
	fence(t);
	done = 1 << t;
	do
	:: done == (1 << THREADS) - 1 -> break
	:: d_step { !(done & 1) && buf[0].used == 0 -> done = done | 1 }
	:: d_step { !(done & 2) && buf[1].used == 0 -> done = done | 2 }
#if THREADS > 2
	:: d_step { !(done & 4) && buf[2].used == 0 -> done = done | 4 }
#endif
#if THREADS > 3
	:: d_step { !(done & 8) && buf[3].used == 0 -> done = done | 8 }
#endif
	od;
	done = 0
}

#define ARRIVE(t) \
	d_step { \
		buf[t].used > 0; \
		mem[buf[t].word[0]] = buf[t].value[0]; \
		ARRIVES(t, buf[t].word[0], buf[t].value[0]); \
		buf[t].used--; \
		slot = 0; \
		do \
		:: slot < DEPTH - 1 -> \
			buf[t].word[slot] = buf[t].word[slot + 1]; \
			buf[t].value[slot] = buf[t].value[slot + 1]; \
			slot++ \
		:: else -> \
			break \
		od; \
		buf[t].word[DEPTH - 1] = 0; \
		buf[t].value[DEPTH - 1] = 0; \
		slot = 0 \
	}

active proctype memory()
{
	byte slot;
end:
	do
	:: ARRIVE(0)
	:: ARRIVE(1)
#if THREADS > 2
	:: ARRIVE(2)
#endif
#if THREADS > 3
	:: ARRIVE(3)
#endif
	od
}
