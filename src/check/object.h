// SPDX-License-Identifier: BSD-2-Clause
/*
 * The objects that the program sees. Each stands for one of the provider below, which is called the
 * inner one. A handle is the address of a cell in one range of memory, as libdat requires of a
 * provider that wants its handles checked (shared/opendat.h).
 *
 * One lock guards everything here. It is never held during a call into the provider below or into
 * the program.
 */
#ifndef CHECK_OBJECT_H
#define CHECK_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "check/calls.h"
#include "check/request.h"

#define CHECK_FRAMES 10u
#define CHECK_STEPS 8u
#define CHECK_KEYS 1024u

/* The lists of an instance: endpoints and SRQs, and the rest. */
enum { CHECK_POSTERS, CHECK_OTHERS };

/* Where in the program a call was made. */
struct check_place {
	void *frames[CHECK_FRAMES];
	int count;
	int thread;
};

/* What happened to an object: a call, or an event. */
struct check_step {
	const char *what;
	DAT_RETURN result;
	int thread;
};

struct check_ia {
	DAT_IA_HANDLE consumer; /* the program's handle; NULL before dat_ia_open has returned */
	bool is_thread_safe;
	/* live ones, the instance not among them; endpoints and SRQs in a list of their own */
	struct check_object *objects[2];
	struct check_requests srq_orphans;
	struct check_object *async_evd;
	struct check_object *keys[CHECK_KEYS]; /* regions by lmr_context, dead ones too */
};

struct check_evd {
	DAT_COUNT length;   /* events that it can hold */
	DAT_COUNT expected; /* events of posted requests that were not taken yet */
	int waiters;
	_Atomic int takers;	       /* threads that are in a call which takes an event */
	struct check_requests orphans; /* of endpoints that are gone; an event may still come */
	_Atomic uint64_t orphaned;     /* how many there ever were */
};

/* The connection of an endpoint in the file of transfers (trace_wire.c): 0 is out, 1 is in. */
struct check_flow {
	bool is_open, is_passive;
	uint16_t port;
	uint32_t sequence[2];	 /* of TCP */
	uint32_t messages[2][2]; /* by queue of DDP */
};

struct check_ep {
	struct check_object *recv_evd, *request_evd;
	struct check_requests requests;
	struct check_requests receives;
	DAT_COUNT max_requests;
	struct check_flow flow;
	uint64_t empty_ns; /* since when it has no Receive, on the monotonic clock; 0: it has one */
	bool has_ended;	   /* its connection, or the attempt: everything is flushed */
};

struct check_srq {
	struct check_object *pz;
	struct check_requests receives;
	uint64_t empty_ns; /* as that of an endpoint */
};

struct check_lmr {
	struct check_object *pz;
	struct check_object *next_key;
	DAT_REGION_DESCRIPTION description;
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT remote_key;
	uint64_t address;
	uint64_t length;
};

struct check_rmr {
	struct check_object *pz;
	unsigned binds;		 /* outstanding, with an event */
	unsigned silent_binds;	 /* those without one, and no later request has completed */
	DAT_RMR_CONTEXT keys[2]; /* of the last bind, and of the one before; 0: none */
};

struct check_cno {
	DAT_OS_WAIT_PROXY_AGENT agent;
};

struct check_sp {
	struct check_object *evd, *ep;
};

struct check_cr {
	struct check_object *ep;
};

/* What is known of an object. */
struct check_life {
	/* all of them: leak checkers do not look into the range of cells */
	struct check_life *next, *previous;
	const char *maker; /* the call, or the event */
	struct check_place made;
	const char *ender; /* the call that freed it; NULL: none, or it went with its instance */
	struct check_place ended;
	struct check_step steps[CHECK_STEPS];
	unsigned step_count;
	uint32_t reported; /* a bit for each rule */
	/* the thread in a call that must not overlap with others, and that call; 0: none */
	_Atomic int user;
	_Atomic(const char *) used_by;
	unsigned nested; /* such calls of that thread inside its first one */
	union {
		struct check_ia ia;
		struct check_evd evd;
		struct check_ep ep;
		struct check_srq srq;
		struct check_lmr lmr;
		struct check_rmr rmr;
		struct check_cno cno;
		struct check_sp sp;
		struct check_cr cr;
	};
};

struct check_object {
	const DAT_PROVIDER *provider; /* first word: libdat and compiled programs call through it */
	_Atomic uint32_t tag;	      /* DAT_HANDLE_TYPE + 1; 0: not in use */
	_Atomic bool is_dead;	      /* freed; the cell waits before it is used again */
	uint8_t type;		      /* DAT_HANDLE_TYPE, also of a dead one */
	DAT_HANDLE inner;	      /* an instance: the small integer */
	struct check_object *ia;      /* an instance: itself */
	struct check_life *life;
	struct check_object *next, *previous; /* of the instance; `next` also of the free cells */
	struct check_object *next_inner;
};

void check_lock(void);
void check_unlock(void);

/* The call that is being made, for reports. */
struct check_call {
	const char *name;
	struct check_object *object; /* live; NULL: none, or a handle that is not ours */
	const void *posted_at;	     /* of a completion: where its request was posted */
	bool is_exclusive;
	int cancel_state; /* of the thread; a call cannot be cancelled but where it waits */
};

/* ---- handles ---- */

/* The object with that handle, or NULL; also a dead one. */
struct check_object *check_find(DAT_HANDLE handle);
/* The inner handle. One that is not ours is returned as it is, so that the provider refuses it. */
DAT_HANDLE check_inner(DAT_HANDLE handle);
/* The program's handle of an inner one, or the inner one itself. */
DAT_HANDLE check_outer(DAT_HANDLE inner);
struct check_object *check_outer_locked(DAT_HANDLE inner);
struct check_object *check_outer_object(DAT_HANDLE inner);

/* ---- life ---- */

/*
 * Makes the object of an inner one, in that instance. NULL: memory is exhausted; then the program
 * gets the inner handle, which libdat accepts, and the object is not checked.
 */
struct check_object *check_object_make(const char *maker, struct check_object *ia,
				       DAT_HANDLE_TYPE type, DAT_HANDLE inner);
/* The handle for the program: that of check_object_make. */
DAT_HANDLE check_wrap(const char *maker, struct check_object *ia, DAT_HANDLE_TYPE type,
		      DAT_HANDLE inner);
/* Makes an instance, which must not fail unchecked. */
struct check_object *check_object_make_ia(const DAT_PROVIDER *provider, DAT_IA_HANDLE inner);
/* The object is gone: its handle is refused from now on. Locked. */
void check_object_kill_locked(struct check_object *object);
void check_object_kill(struct check_object *object);

/* The next object, dead ones included, in the order of their numbers; NULL: no more. Locked. */
struct check_object *check_next_locked(const struct check_object *after);

void check_step_locked(struct check_object *object, const char *what, DAT_RETURN result);

/* ---- calls ---- */

/* The name of the function, with "dat_". */
const char *check_call_name(enum check_call_number number);
/*
 * Begins a call on an object: reports a handle that was freed, and two threads in calls that must
 * not overlap. Returns the live object, or NULL.
 */
struct check_object *check_begin(struct check_call *call, enum check_call_number number,
				 DAT_HANDLE handle, DAT_HANDLE_TYPE type);
/* Ends it, and explains what the provider refused. Returns the result. */
DAT_RETURN check_end(struct check_call *call, DAT_RETURN result);
/* Ends a call after which the object is gone, if it succeeded. */
DAT_RETURN check_end_free(struct check_call *call, DAT_RETURN result);

extern struct opendat_handle_arena opendat_handle_arena;

#endif
