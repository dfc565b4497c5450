// SPDX-License-Identifier: BSD-2-Clause
/* The end of a region of ours: waiting for threads that use its key for a peer. */
#include <sched.h>

#include "core/transport.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/engine/engine.h"

bool iw_engine_is_key_in_use(struct iw_engine *engine, uint32_t key)
{
	const struct iw_conn *conn;
	bool is_used = false;

	if (!atomic_load(&engine->is_started))
		return false;
	core_lock_acquire(&engine->lock);
	for (conn = engine->first; conn && !is_used; conn = conn->next)
		/* acquire: what was placed through the key is placed */
		is_used = atomic_load_explicit(&conn->announced, memory_order_acquire) == key;
	core_lock_release(&engine->lock);
	return is_used;
}

void iw_engine_wait_key(struct iw_engine *engine, uint32_t key)
{
	/* a thread of ours holds it for one copy or one read of a socket, which does not block */
	while (iw_engine_is_key_in_use(engine, key))
		sched_yield();
}
