// SPDX-License-Identifier: BSD-2-Clause
/*
 * The adapter instance: one dat_ia_open. It holds the settings, the limits, the transport and the
 * lists of all objects. src/core/ia opens, closes and queries it; this is the part that the other
 * folders use.
 */
#ifndef CORE_INSTANCE_H
#define CORE_INSTANCE_H

#include "core/base/front.h"
#include "core/base/handle.h"
#include "core/base/netaddr.h"
#include "core/base/settings.h"
#include "core/base/thread.h"

struct core_agents;
struct core_mem;

#define CORE_TYPE_COUNT (DAT_HANDLE_TYPE_SRQ + 1)

/* One adapter name registered with libdat. Never freed, because handles point to it. */
struct core_adapter {
	union {
		DAT_PROVIDER provider; /* first: handles and libdat hold its address */
		struct core_table table;
	};
	const struct core_front *front;
	DAT_PROVIDER_INFO info;
	char *instance_data;
	struct core_adapter *next; /* list of all names, guarded by the adapter lock */
	uint32_t registrations;	   /* of several versions; guarded by the adapter lock */
	/* of the registry that it was registered with first, or NULL; guarded by the same */
	DAT_RETURN (*registry_ia_handle)(unsigned long handle, DAT_IA_HANDLE *consumer_out);
};

/* What the transport knows of the port, as named attributes tell it; 0: nothing. */
struct core_link {
	const char *device; /* NULL: the instance's */
	uint8_t guid[8];
	uint8_t gid[16];
	bool has_gid;
	uint32_t mtu;
	uint32_t port;
	bool is_down;
	bool has_atomics;   /* connections between our own peers carry them */
	bool has_immediate; /* likewise */
};

struct core_object_list {
	struct core_handle *first;
	uint32_t count;
	uint32_t max;	  /* the limit that dat_ia_query reports */
	uint64_t removed; /* number of objects removed so far */
};

/* What DAT 2.0 counts of an instance beside the objects in its lists. */
enum core_ia_count {
	CORE_COUNT_PSP, /* service points made, by the call */
	CORE_COUNT_PSP_ANY,
	CORE_COUNT_RSP,
	CORE_COUNT_ACCEPT,  /* connection requests that the program accepted, */
	CORE_COUNT_REJECT,  /* and rejected */
	CORE_COUNT_ACTIVE,  /* connections established that this side began, */
	CORE_COUNT_PASSIVE, /* and that it accepted */
	CORE_COUNT_ASYNC_ERROR,
	CORE_IA_COUNTS,
};

struct core_ia {
	/* set at creation, then constant */
	struct core_handle *cell;
	struct core_adapter *adapter;
	struct core_settings settings;
	struct core_sched sched; /* of its threads */
	char device[CORE_DEVICE_MAX];
	bool is_query; /* opened for its attributes alone: it has no thread and no objects */
	uint32_t port; /* of the device, from the instance data; 0: none given */
	union core_sockaddr address; /* of this adapter; filled by the transport's ia_open */
	DAT_IA_ATTR attr;	     /* limits: filled by the transport's ia_open */
	DAT_PROVIDER_ATTR provider_attr;
	struct core_link link;
	void *front_data; /* of its generation */
	void *transport;  /* the transport's side of the instance */
	union {
		struct {
			/* threads that have armed the transport and sleep or are about to, plus
			 * CNOs whose consumer sleeps on a descriptor or for an agent (cno.h) */
			_Atomic uint32_t sleepers;
			/* set by the transport: a dequeue must call progress() */
			_Atomic uint32_t refuses_polls;
		};
		_Atomic uint64_t slow_polls; /* both: 0 if neither is set */
	};
	struct core_mem *mem; /* the table of registered memory */
	_Atomic uint64_t counts[CORE_IA_COUNTS];

	/* guarded by the cell's lock */
	struct core_object_list objects[CORE_TYPE_COUNT];
	uint32_t tentative_eps;	    /* endpoints that the provider made for unanswered requests */
	_Atomic bool is_closing;    /* transports read it without the lock */
	uint32_t active_calls;	    /* calls that use the instance without holding its lock */
	pthread_cond_t idle;	    /* active_calls fell to 0 while closing */
	struct core_agents *agents; /* made when the first agent is set, then constant */
	DAT_EVD_HANDLE async_evd;   /* or DAT_EVD_OUT_OF_SCOPE */
	struct core_ref async_ref;
	bool async_is_ours;	  /* made by dat_ia_open, destroyed by dat_ia_close */
	uint64_t *counted_before; /* what its generation has reset; or NULL */
};

/*
 * Begins a call on the instance: it is not closed before core_ia_leave(). NULL: the handle is not a
 * live IA.
 */
struct core_ia *core_ia_enter(DAT_IA_HANDLE handle);
void core_ia_leave(struct core_ia *ia);

/* Stores the handle by which the consumer knows the instance. libdat calls it through
 * opendat_extension. */
void core_ia_set_consumer_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE consumer_handle);

/*
 * Adds a new object to the instance's list and makes its handle live. Fails with
 * DAT_INSUFFICIENT_RESOURCES at the limit of its type, DAT_INVALID_HANDLE when the IA is closing.
 */
DAT_RETURN core_ia_add(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type);

/* Removes a dead object from the list. */
void core_ia_remove(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type);
/* The same for one that the consumer never had: its call fails. */
void core_ia_take_back(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type);

/* A reference to the object at that index of the list. False: the list is shorter. */
bool core_ia_nth(struct core_ia *ia, DAT_HANDLE_TYPE type, uint32_t index,
		 struct core_ref *ref_out);
/* Calls `use` with one live object of that type after another, locked, until it returns true. The
 * lock of the IA is held. Returns the last result. */
bool core_ia_find(struct core_ia *ia, DAT_HANDLE_TYPE type, bool (*use)(void *object, void *arg),
		  void *arg);
/* The number of objects removed so far. When it changes, indexes have changed. */
uint64_t core_ia_removed(struct core_ia *ia, DAT_HANDLE_TYPE type);
/* Counts endpoints of unanswered requests, which do not prevent a graceful close. */
void core_ia_count_tentative(struct core_ia *ia, int change);

/* Relaxed: a reader takes each count by itself. */
static inline void core_ia_count(struct core_ia *ia, enum core_ia_count count)
{
	atomic_fetch_add_explicit(&ia->counts[count], 1, memory_order_relaxed);
}

/* For a transport: from now on dat_evd_dequeue must (or need not) call progress(). */
static inline void core_ia_set_slow_poll(struct core_ia *ia, bool is_refused)
{
	/* relaxed: the transport orders whatever must be seen together with it */
	atomic_store_explicit(&ia->refuses_polls, is_refused, memory_order_relaxed);
}

/* May a dequeue poll on its fast path? A relaxed load: only a hint. */
CORE_INLINE bool core_ia_can_poll_fast(const struct core_ia *ia)
{
	return core_is_same_64(&ia->slow_polls, 0);
}

#endif
