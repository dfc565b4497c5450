// SPDX-License-Identifier: BSD-2-Clause
/*
 * A front is one generation of the API: the table of calls of an adapter, and how far the objects
 * of its instances differ. The calls of a front convert at their boundary and call core_<name>
 * (calls.h), whose types are those of DAT 1.2. The core knows nothing else of fronts.
 */
#ifndef CORE_FRONT_H
#define CORE_FRONT_H

#include <dat/udat.h>
#include <dat/dat_registry.h>

#include "core/base/handle.h"

/* Atomic operations of peers; in DAT 1.2 DAT_OPENDAT_MEM_PRIV_REMOTE_ATOMIC. */
#define CORE_MEM_PRIV_REMOTE_ATOMIC ((DAT_MEM_PRIV_FLAGS)0x40)

/* The slots that later generations add behind the table of DAT 1.2. */
#define CORE_LATER_SLOTS 11

/* The table of any generation: DAT 2.0 has the slots of DAT 1.2 at their places, and more. */
struct core_table {
	DAT_PROVIDER provider;
	void (*later[CORE_LATER_SLOTS])(void);
};

struct core_front {
	DAT_UINT32 major;	 /* of the versions of DAT that it serves */
	struct core_table table; /* all slots but device_name and ia_open_func */
	DAT_IA_OPEN_FUNC open_unsafe, open_safe;
	/* What an instance has for its generation alone. Called when the transport has opened it,
	 * and before it is deleted. Either may be NULL. False: no memory */
	bool (*open)(struct core_ia *ia);
	void (*close)(struct core_ia *ia);
	DAT_MEM_PRIV_FLAGS mem_priv; /* that a region may have */
	DAT_EVD_FLAGS evd_flags;     /* that an EVD may have beside those of DAT 1.2 */
	uint32_t takes;		     /* enum transport_takes of a new endpoint */
	/* An endpoint with an SRQ reports by an asynchronous event that it has reported its last
	 * Receive. */
	bool tells_srq_end;
	/* PEER_REJECTED has the private data of the side that rejected. */
	bool tells_reject_data;
};

/* All generations, ended by NULL. Defined in src/dat2. */
extern const struct core_front *const core_fronts[];
/* DAT 1.2 */
extern const struct core_front core_front_1;

#endif
