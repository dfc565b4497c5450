// SPDX-License-Identifier: BSD-2-Clause
/*
 * The adapter instance: what one dat_ia_open made, as far as every room uses it. It holds the
 * settings, the limits, the transport, and the lists of all objects. The ia room opens, closes and
 * queries it.
 */
#ifndef CORE_INSTANCE_H
#define CORE_INSTANCE_H

#include "core/base/handle.h"
#include "core/base/netaddr.h"
#include "core/base/settings.h"

struct core_agents;
struct core_mem;
struct transport_ops;

#define CORE_TYPE_COUNT (DAT_HANDLE_TYPE_SRQ + 1)

/* One name registered with libdat; lives as long as the library, because handles point to it. */
struct core_adapter {
	DAT_PROVIDER provider; /* first: the address that handles and libdat carry */
	DAT_PROVIDER_INFO info;
	const struct transport_ops *ops;
	char *instance_data;
	struct core_adapter *next; /* list of all names, guarded by the adapter lock */
	bool is_registered;	   /* guarded by the adapter lock */
};

struct core_object_list {
	struct core_handle *first;
	uint32_t count;
	uint32_t max;	  /* the limit that dat_ia_query reports */
	uint32_t removed; /* counts core_ia_remove */
};

struct core_ia {
	/* set at creation, then constant */
	struct core_handle *cell;
	struct core_adapter *adapter;
	const struct transport_ops *ops;
	struct core_settings settings;
	char device[CORE_DEVICE_MAX];
	uint32_t port;		     /* of the device, as the instance data name it; 0: not */
	union core_sockaddr address; /* of this adapter; filled by the transport's ia_open */
	DAT_IA_ATTR attr;	     /* limits: filled by the transport's ia_open */
	DAT_PROVIDER_ATTR provider_attr;
	void *transport; /* the transport's side of the instance */
	union {
		struct {
			/* threads that have armed, and sleep or are about to; those of the consumer
			 * that sleep elsewhere, by CNO, among them */
			_Atomic uint32_t sleepers;
			/* the transport's: a dequeue has to ask progress() */
			_Atomic uint32_t refuses_polls;
		};
		_Atomic uint64_t slow_polls; /* one of them, or none: 0 */
	};
	struct core_mem *mem; /* the table of registered memory */

	/* guarded by the cell's lock */
	struct core_object_list objects[CORE_TYPE_COUNT];
	uint32_t tentative_eps; /* Provider-made endpoints of unanswered requests */
	bool is_closing;
	uint32_t active_calls;	    /* calls that work on the instance without its lock */
	pthread_cond_t idle;	    /* active_calls fell to 0 while closing */
	struct core_agents *agents; /* made when the first agent is set, then constant */
	DAT_EVD_HANDLE async_evd;   /* handle, or DAT_EVD_OUT_OF_SCOPE */
	struct core_ref async_ref;
	bool async_is_ours; /* made by dat_ia_open, destroyed by dat_ia_close */
};

/*
 * Enters a call that creates an object on the instance. Returns the instance, which then cannot
 * be closed until core_ia_leave(); NULL when the handle is no live IA.
 */
struct core_ia *core_ia_enter(DAT_IA_HANDLE handle);
void core_ia_leave(struct core_ia *ia);

/* What consumers call the instance; libdat's to say (opendat_extension). */
void core_ia_name(DAT_IA_HANDLE handle, DAT_IA_HANDLE consumer_handle);

/*
 * Adds a new object to the instance's list and makes its handle live. Fails with
 * DAT_INSUFFICIENT_RESOURCES at the limit of its type, DAT_INVALID_HANDLE when the IA is closing.
 */
DAT_RETURN core_ia_add(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type);

/* Takes a dead object off the list. */
void core_ia_remove(struct core_ia *ia, struct core_handle *cell, DAT_HANDLE_TYPE type);

/* A reference to the object at that place of the list; false at its end. */
bool core_ia_nth(struct core_ia *ia, DAT_HANDLE_TYPE type, uint32_t index,
		 struct core_ref *ref_out);
/* How often an object was removed: places have changed when this has. */
uint32_t core_ia_removed(struct core_ia *ia, DAT_HANDLE_TYPE type);
/* Counts the endpoints of unanswered requests, which do not hold up a graceful close. */
void core_ia_count_tentative(struct core_ia *ia, int change);

/* For a transport: from now on a dequeue may not, or may, be done on its fast path alone. */
static inline void core_ia_refuse_polls(struct core_ia *ia, bool is_refused)
{
	/* relaxed: a transport says what has to be seen with it */
	atomic_store_explicit(&ia->refuses_polls, is_refused, memory_order_relaxed);
}

/* May a dequeue poll and keep what it finds? Relaxed: a hint. */
CORE_INLINE bool core_ia_may_poll(const struct core_ia *ia)
{
	return core_is_same_64(&ia->slow_polls, 0);
}

#endif
